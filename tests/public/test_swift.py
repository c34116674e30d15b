"""What operators of Swift reported, and what is right for each."""

from collections import Counter

import pytest

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
