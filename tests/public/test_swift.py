"""What operators of Swift reported, and what is right for each."""

import gzip
import hashlib
import json
import struct
import zlib
from collections import Counter

import numpy as np
import pytest

import evenkeel as ek
from tests.systems.swift.test_format import unpacked


def read_ring(file):
    """The header of a ring and the devices of each partition, read without the library."""
    head, rows = unpacked(file)
    return head, [[row[part] for row in rows if part < len(row)] for part in range(len(rows[0]))]


def zones_of(head, row):
    """How many replicas of a partition each zone has."""
    return Counter((head["devs"][one]["region"], head["devs"][one]["zone"]) for one in row)


def solved(case, ring, *words, code=0):
    answer = case.run("solve", ring, *words, "-o", "new.ring.gz")
    assert answer.code == code, answer.text
    return answer, *read_ring(case.folder / "new.ring.gz")


def test_a_third_zone_gets_a_replica_of_each_partition(public):
    _, head, rows = solved(public("swift/third-zone"), "one_pass.ring.gz")
    zones = [zones_of(head, row) for row in rows]
    assert sum(len(one) == 3 for one in zones) >= 183
    assert max(one[1, 1] for one in zones) == max(one[1, 2] for one in zones) == 1
    assert all(head["devs"][one]["weight"] > 0 for row in rows for one in row)


@pytest.mark.parametrize("ring", ["frac.ring.gz", "nextpower.ring.gz"])
def test_what_the_file_has_besides_comes_back(public, ring):
    case = public("swift/fraction-of-a-replica")
    was, before = read_ring(case.path(ring))
    _, head, rows = solved(case, ring)
    assert [len(row) for row in rows] == [len(row) for row in before]
    assert head | {"version": 0} == was | {"version": 0}
    assert all(len({*row}) == len(row) for row in rows)


def count_of(rows):
    """How many replicas each device has."""
    return Counter(one for row in rows for one in row)


def test_a_heavy_device_gets_one_replica_of_each_partition(public):
    case = public("swift/heavy-device-joins")
    _, head, rows = solved(case, "object.ring.gz", "--level", "0")
    count = count_of(rows)
    assert count[4] == 128 and all(row.count(4) == 1 for row in rows)
    assert {count[one] for one in range(4)} == {64}
    zones = [zones_of(head, row) for row in rows]
    assert sum(one[1, 1] == 2 for one in zones) <= 64
    assert all(one[1, zone] <= 1 for one in zones for zone in (2, 3, 4))


def test_two_devices_cannot_hold_three_replicas_apart(public):
    case = public("swift/two-devices-for-three-replicas")
    _, before = read_ring(case.path("object.ring.gz"))
    answer, _, rows = solved(case, "object.ring.gz", code=3)
    assert rows == before
    assert "128" in answer.text


def test_all_replicas_of_one_device_are_spread(public):
    _, _, rows = solved(public("swift/added-again-in-another-zone"), "object.ring.gz")
    assert all(sorted(row) == [0, 1, 2] for row in rows)


def test_a_box_that_is_gone_is_emptied_onto_the_others_alike(public):
    case = public("swift/zone-with-one-box-left")
    _, head, rows = solved(case, "object.ring.gz", "--level", "0")
    count = count_of(rows)
    assert count[1] == 0
    assert {count[one] for one in range(10) if one != 1} <= {84, 85, 86}
    assert all(max(zones_of(head, row).values()) == 1 for row in rows)


def test_disks_hold_parts_by_their_weights(public):
    _, head, rows = solved(public("swift/disks-of-two-sizes"), "object.ring.gz")
    total = sum(one["weight"] for one in head["devs"])
    count = count_of(rows)
    for one in head["devs"]:
        assert abs(count[one["id"]] - 768 * one["weight"] / total) <= 1.0
    assert all(max(zones_of(head, row).values()) == 1 for row in rows)


def test_a_region_of_little_weight_gets_its_share(public):
    case = public("swift/second-region-joins-with-little-weight")
    _, head, rows = solved(case, "object.ring.gz", "--floor", "5%")
    zones = [zones_of(head, row) for row in rows]
    assert 66 <= sum(one[2, 1] for one in zones) <= 74
    assert max(one[2, 1] for one in zones) == 1
    assert max(one[1, zone] for one in zones for zone in (1, 2)) == 2
    count = count_of(rows)
    for one in head["devs"]:
        share = 768 * one["weight"] / 660
        assert abs(count[one["id"]] - share) <= 0.05 * share + 1


def test_one_disk_of_a_third_server_gets_its_share(public):
    case = public("swift/third-server-with-one-disk")
    _, head, rows = solved(case, "object.ring.gz", "--floor", "5%")
    servers = [Counter(head["devs"][one]["ip"] for one in row) for row in rows]
    assert max(max(one.values()) for one in servers) == 2
    assert all(one["10.0.0.9"] <= 1 for one in servers)
    assert {*count_of(rows).values()} <= {40, 41, 42, 43, 44}


def test_fragments_leave_a_disk_and_no_zone_has_five(public):
    _, head, rows = solved(public("swift/erasure-coded-policy"), "object-1.ring.gz")
    assert all(len({*row}) == 14 and 5 not in row for row in rows)
    assert max(max(zones_of(head, row).values()) for row in rows) == 4


def test_a_zone_is_given_up_with_no_other_move(public):
    case = public("swift/zone-is-given-up")
    _, before = read_ring(case.path("object.ring.gz"))
    for level in ("5%", "0"):
        _, head, rows = solved(case, "object.ring.gz", "--level", level)
        assert all(len(zones_of(head, row)) == 3 for row in rows)
        assert count_of(rows) == dict.fromkeys(range(6), 64)
        moved = sum(len({*new} - {*old}) for old, new in zip(before, rows, strict=True))
        assert moved == 96


def test_no_device_takes_two_replicas_of_a_partition_however_heavy(public):
    case = public("swift/two-replicas-and-a-disk-too-heavy")
    _, head, rows = solved(case, "object.ring.gz")
    assert all(len({*row}) == 2 for row in rows)
    assert 120 <= count_of(rows)[3] <= 128
    zones = [zones_of(head, row) for row in rows]
    assert max(one[1, 1] for one in zones) == 1
    assert sum(one[1, 2] == 2 for one in zones) <= 0.55 * 128


def test_a_server_is_an_address_whatever_its_ports(public):
    case = public("swift/servers-per-port")
    answer = case.run("check", "object.ring.gz")
    assert answer.code == 1 and "32 hard violations" in answer.text
    _, head, rows = solved(case, "object.ring.gz")
    assert all(len({head["devs"][one]["ip"] for one in row}) == 3 for row in rows)


def test_a_ring_of_a_big_endian_host_comes_back_as_it_was(public):
    case = public("swift/big-endian-and-ipv6")
    was, before = read_ring(case.path("object.ring.gz"))
    _, head, rows = solved(case, "object.ring.gz")
    assert (head, rows) == (was, before)
    assert head["byteorder"] == "big"


def moved(case, rows):
    """How many replicas are on other devices than in the ring of the case."""
    _, before = read_ring(case.path("object.ring.gz"))
    return sum(len({*was} - {*now}) for was, now in zip(before, rows, strict=True))


def test_a_server_of_weight_0_is_emptied(public):
    case = public("swift/zeroed-server")
    _, head, rows = solved(case, "object.ring.gz", "--level", "none")
    count = count_of(rows)
    assert count[2] == count[3] == 0 and moved(case, rows) == 128
    assert max(zones_of(head, row)[1, 1] for row in rows) == 1


def test_a_zone_of_less_weight_has_its_share(public):
    case = public("swift/third-zone-of-half-the-weight")
    assert case.run("check", "object.ring.gz").code == 0
    _, head, rows = solved(case, "object.ring.gz", "--level", "5%")
    count = count_of(rows)
    assert max(count[4], count[5]) <= 41
    assert max(max(zones_of(head, row).values()) for row in rows) == 2


def test_a_region_of_weight_0_is_emptied(public):
    case = public("swift/region-is-given-up")
    _, head, rows = solved(case, "object.ring.gz", "--level", "none")
    assert moved(case, rows) == 128
    assert all(zones_of(head, row) == {(1, 1): 1, (1, 2): 1, (1, 3): 1} for row in rows)


def test_six_fragments_do_not_fit_on_five_disks(public):
    case = public("swift/six-fragments-on-five-disks")
    answer, _, rows = solved(case, "object.ring.gz", "--level", "none", code=4)
    assert "infeasible" in answer.text
    assert all(len({*row}) == 6 for row in rows)


def test_a_large_disk_of_the_only_server_gets_its_share(public):
    case = public("swift/all-in-one")
    assert case.run("check", "object.ring.gz").code == 0
    _, _, rows = solved(case, "object.ring.gz", "--level", "5%", "--floor", "5%")
    assert 52 <= count_of(rows)[5] <= 57
    assert all(len({*row}) == 3 for row in rows)


def test_moves_may_be_few(public):
    case = public("swift/heavier-disk-by-twenty-moves")
    words = ("--level", "5%", "--moves", "20")
    answer, _, rows = solved(case, "object.ring.gz", *words, code=3)
    assert moved(case, rows) <= 20 and "Limits reached" in answer.text
    _, before = read_ring(case.path("object.ring.gz"))
    assert count_of(rows)[8] - count_of(before)[8] >= 18


def test_a_free_number_gets_nothing(public):
    case = public("swift/new-disk-after-a-hole")
    _, _, rows = solved(case, "object.ring.gz", "--level", "5%", "--floor", "5%")
    count = count_of(rows)
    assert count[6] == 0 and 26 <= count[7] <= 28


def sections_of(file):
    """The sections of a ring of version 2, found from the end of the file as Swift finds them."""
    data = file.read_bytes()
    assert gzip.decompress(data)[:6] == b"R1NG\0\2"

    def unpacked_from(begin, end=None):
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data[begin:end])

    (at,) = struct.unpack("!Q", unpacked_from(len(data) - 31)[:8])
    text = unpacked_from(at)
    (length,) = struct.unpack("!Q", text[:8])
    found = {}
    for name, (begin, first, end, last, method, digest) in json.loads(text[8 : 8 + length]).items():
        blob = unpacked_from(begin, end)
        assert hashlib.new(method, blob).hexdigest() == digest and len(blob) == last - first
        assert gzip.decompress(data)[first:last] == blob
        found[name.removeprefix("swift/ring/")] = blob[8:]
    return found


def test_numbers_of_four_bytes_stay_in_version_two(public):
    case = public("swift/numbers-of-four-bytes")
    assert case.run("solve", "object.ring.gz", "-o", "new.ring.gz").code == 0
    was, now = (sections_of(case.folder / name) for name in ("new.undo.ring.gz", "new.ring.gz"))
    assert json.loads(now["metadata"]) == {"part_shift": 25, "version": 78, "dev_id_bytes": 4}
    assert json.loads(was["devices"]) == json.loads(now["devices"])
    before, after = (np.frombuffer(one["assignments"], ">u4") for one in (was, now))
    left = before != after
    assert left.sum() == 64 and {*before[left].tolist()} == {70005}
    assert {*after.tolist()} == set(range(70000, 70005))
    assert case.run("check", str(case.folder / "new.ring.gz")).code == 0


def test_a_ring_without_regions(public):
    case = public("swift/ring-without-regions")
    assert case.run("check", "object.ring.gz").code == 0
    answer = case.run("solve", "object.ring.gz", "-o", "new.ring.gz", "--json")
    assert (answer.json["moves"], answer.json["status"]) == (327, "optimal")
    header = gzip.decompress((case.folder / "new.ring.gz").read_bytes())
    assert header[:900].count(b'"device"') == 4 and b"region" not in header[:900]
    assert "did you mean 'd3r1z4-127.0.0.1:6040/sdb1'?" in (
        case.run("check", "object.ring.gz", "--drain", "127.0.0.1:6040").text
    )


def test_zones_join_while_servers_are_replaced(public):
    case = public("swift/two-more-zones-and-three-servers-replaced")
    _, before = read_ring(case.path("object.ring.gz"))
    answer, head, rows = solved(case, "object.ring.gz")
    assert "moves 1,524 1,524" in answer.text
    count = count_of(rows)
    assert not {6, 8, 14} & {*count} and max(count.values()) == 129
    assert {max(zones_of(head, row).values()) for row in rows} == {1}
    moved = sum(a != b for old, new in zip(before, rows, strict=True)
                for a, b in zip(old, new, strict=True))  # fmt: skip
    assert moved == 1524


def test_two_servers_are_emptied_within_the_limits_of_the_others(public):
    answer, head, rows = solved(public("swift/two-servers-without-weight"), "object.ring.gz")
    held = Counter(one for row in rows for one in row)
    assert "256 33.3% of the replicas" in " ".join(answer.text.replace("█", "").split())
    assert {one: held[one] for one in range(12)} == dict.fromkeys(range(4), 0) | dict.fromkeys(
        range(4, 12), 96
    )
    assert max(max(zones_of(head, row).values()) for row in rows) == 2
    assert all(len({head["devs"][one]["ip"] for one in row}) == 3 for row in rows)


def test_weights_are_followed_by_as_many_moves_as_are_allowed(public):
    case = public("swift/two-servers-lose-weight-by-forty-moves")
    words = ("--moves", "40", "--floor", "10%", "--exclude", "server=10.239.60.142")
    before = read_ring(case.path("object.ring.gz"))[1]
    answer, _, rows = solved(case, "object.ring.gz", *words, code=3)
    came = [(set(row) - set(was)) for was, row in zip(before, rows, strict=True)]
    assert sum(map(len, came)) == 40 and not set().union(*came) & {4, 5}
    held = Counter(one for row in rows for one in row)
    assert [held[one] for one in range(6)] == [54] * 4 + [64] * 2
    assert "limits.moves=40 used up" in answer.text
    assert read_ring(case.folder / "new.undo.ring.gz")[1] == before
    again = case.run("solve", str(case.folder / "new.ring.gz"), "--floor", "10%", "--json")
    assert (again.code, again.json["status"]) == (0, "optimal")


def test_a_builder_is_read_as_the_ring_that_it_would_write(public):
    case = public("swift/builder-with-new-devices")
    answer = case.run("solve", "object.builder", "-o", "new.ring.gz", "--json")
    assert (answer.code, answer.json["moves"]) == (0, 256)
    cluster = ek.read(case.path("new.ring.gz"))
    assert np.bincount(cluster.placement.node).tolist() == [128] * 6
    assert case.run("check", str(case.path("new.ring.gz"))).code == 0


def test_replicas_that_a_builder_was_set_to_are_placed(public):
    case = public("swift/set-replicas-before-a-rebalance")
    answer, head, rows = solved(case, "account.builder")
    assert "4 replicas of a partition since set_replicas: 128 are placed anew" in answer.text
    assert head["replica_count"] == 4
    assert all(set(zones_of(head, row).values()) == {1} for row in rows)
    assert {*count_of(rows).values()} == {64}
    head, before = read_ring(case.folder / "new.undo.ring.gz")
    assert head["replica_count"] == 3
    assert [row[:3] for row in rows] == before
    answer = case.run("plan", "account.builder", "--throttle", "node-in=4", "-o", "move")
    assert answer.code == 2
    assert "place all that are missing at once" in answer.text


def test_a_server_in_two_zones_is_named(public):
    case = public("swift/disk-of-another-zone")
    words = ("--drain", "server=10.5.0.104", "--level", "none")
    answer, head, rows = solved(case, "object.ring.gz", *words)
    assert "servers in several zones (10.5.0.101 in r1z1 and r1z5)" in answer.text
    assert moved(case, rows) == 48
    assert "10.5.0.104" not in {head["devs"][one]["ip"] for row in rows for one in row}
