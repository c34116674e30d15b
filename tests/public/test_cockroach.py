"""What operators of CockroachDB brought to its trackers and forums, and what is right there."""

import re

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from evenkeel.systems import registry
from tests.support import places

DATA = places.DATA / "public" / "cockroach"
METHODS = ("cockroach", "balance")


def read(name):
    """Read all files of a case but the one about it."""
    return ek.read(
        [
            str(file)
            for file in sorted((DATA / name.removeprefix("cockroach/")).iterdir())
            if file.suffix != ".md"
        ]
    )


def files(name):
    return sorted(
        file.name
        for file in (DATA / name.removeprefix("cockroach/")).iterdir()
        if file.suffix != ".md"
    )


def held(cluster, placement):
    """Return the stores of each range, by name, those that hold it in no role left out."""
    names = cluster.nodes.names
    return [
        sorted(names[n] for n in row if n >= 0)
        for row in np.split(placement.node, placement.first[1:-1])
    ]


def arrived(result):
    """Return the stores that take a replica they did not have."""
    return {move.target for move in result.moves}


def test_ranges_alone_are_read_with_a_note(public):
    answer = public("cockroach/ranges-alone").run("check", "ranges.txt")
    assert answer.code == 0
    assert "no node status" in answer.err


@pytest.mark.parametrize("method", METHODS)
def test_the_only_node_of_a_rack_that_a_constraint_names_stays_and_the_constraint_is_why(
    public, method
):
    case = public("cockroach/only-node-of-a-rack")
    answer = case.run("solve", "ranges.csv", "nodes.csv", "zones.csv", "--method", method)
    assert answer.code == 3
    assert "6 not kept" in answer.text or "not kept" in answer.text
    assert "2 spread node 1, 1 place 1 on rack=3, 1 must be emptied" in answer.text


def test_three_nodes_cannot_lose_one(public):
    case = public("cockroach/three-nodes-decommission")
    for method in METHODS:
        answer = case.run("solve", "ranges.csv", "nodes.csv", "--method", method)
        assert answer.code == 4
        assert "Proven: no placement" in answer.text


def test_five_replicas_on_five_nodes_go_down_to_three_where_two_are_decommissioned(public):
    case = public("cockroach/five-replicas-on-five-nodes")
    answer = case.run("solve", *files("five-replicas-on-five-nodes"), "--method", "cockroach")
    assert "20 decisions" in answer.text
    assert "3 nodes that CockroachDB counts" in answer.text
    cluster = read("five-replicas-on-five-nodes")
    result = ek.solve(cluster, "cockroach")
    # what CockroachDB itself gives up: two live replicas of each range
    assert result.regressions == {"live replicas": 10}
    assert held(cluster, result.placement) == [["1", "2", "3"]] * 10
    told = list(result.native.log.lines(cluster))
    assert sum("RemoveDecommissioningVoter" in line for line in told) == 20
    assert (result.placement.leader_node >= 0).all()
    again = ek.solve(cluster.with_placement(result.placement), "cockroach")
    assert not again.moves
    # no other method is CockroachDB: it keeps all five
    assert (ek.solve(cluster, "balance").placement.node >= 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_stores_that_are_nearly_full_take_nothing(public, method):
    case = public("cockroach/stores-nearly-full")
    answer = case.run("solve", *files("stores-nearly-full"), "--method", method)
    assert "3 stores with disks at least 92.5% full (1, 2, 5)" in answer.text
    result = ek.solve(read("stores-nearly-full"), method)
    assert result.moves
    assert not arrived(result) & {"1", "2", "5"}
    assert result.audit.ok


@pytest.mark.parametrize("method", METHODS)
def test_ranges_of_partitions_are_told_by_their_start_keys(public, method):
    case = public("cockroach/partitions-by-region")
    answer = case.run("solve", *files("partitions-by-region"), "--method", method)
    assert (answer.code, "left alone" in answer.text) == (0, False)
    cluster = read("partitions-by-region")
    asked = [cluster.rules[q].voters_require for q in cluster.partitions.rule.tolist()]
    assert asked == [["region=us-east1"], ["region=us-west1"], ["region=europe-west1"]]
    goals = ek.Goals(level=None) if method == "balance" else None
    assert not ek.solve(cluster, method, goals=goals).moves


def test_ranges_of_partitions_are_told_by_where_their_voters_are_or_left_alone(public):
    public("cockroach/partitions-by-values-of-an-enumeration")
    cluster = read("partitions-by-values-of-an-enumeration")
    asked = [cluster.rules[q].voters_require for q in cluster.partitions.rule.tolist()]
    assert asked == [["region=europe-west1"], ["region=us-east1"], ["region=us-west1"], []]
    assert "no partition of 3 ranges (91, 92, 93) but by where their voters are" in notes(cluster)
    assert "no partition of 1 range (94)" in notes(cluster)
    assert left_alone(cluster) == ["94"]
    for method in METHODS:
        assert ek.solve(cluster, method).audit.ok


def test_without_their_start_keys_ranges_of_partitions_that_are_misplaced_are_left_alone(
    public, tmp_path
):
    case = public("cockroach/partitions-by-region")
    text = (case.source / "ranges.csv").read_text()
    cut = "\n".join(re.sub("^[^,]*,[^,]*,", "", line) for line in text.splitlines())
    cut = re.sub(r'"{\d,\d,\d}","{\d,\d}"', '"{1,4,7}","{2,5}"', cut)
    cut = re.sub(r"64,\d,\"{1,\d,\d,\d,\d}", '64,1,"{1,2,4,5,7}', cut)
    (tmp_path / "cut.csv").write_text(cut)
    cluster = ek.read(
        str(tmp_path / "cut.csv"), str(case.path("nodes.csv")), str(case.path("zones.csv"))
    )
    drained = cluster.drain("1")
    for method in METHODS:
        result = ek.solve(drained, method)
        assert not result.moves
    assert any(
        "3 ranges (60, 61, 62)" in one and "left alone" in one for one in cluster.native.notes
    )


@pytest.mark.parametrize(
    ("zones", "alone"),
    [
        ("ALTER PARTITION us_east OF INDEX movr.public.vehicles@vehicles_pkey CONFIGURE ZONE "
         "USING constraints = '[+region=us-east1]';", True),
        ("ALTER PARTITION us_east OF TABLE vehicles CONFIGURE ZONE USING num_replicas = 5;", True),
        ("ALTER PARTITION us_east OF TABLE vehicles CONFIGURE ZONE USING gc.ttlseconds = 9;",
         False),
        ("ALTER RANGE default CONFIGURE ZONE USING num_replicas = 3;", False),
    ],
)  # fmt: skip
def test_ranges_of_no_known_table_are_left_alone_where_partitions_have_zones(
    public, tmp_path, zones, alone
):
    case = public("cockroach/tables-named-by-requests")
    (tmp_path / "zones.sql").write_text(zones)
    _, _, table = (case.source / "ranges.txt").read_text().partition("\n")
    (tmp_path / "ranges.txt").write_text(table)
    cluster = ek.read(
        *(str(one) for one in (tmp_path / "ranges.txt", tmp_path / "zones.sql")),
        str(case.source / "nodes.txt"),
    )
    assert left_alone(cluster) == (sorted(cluster.partitions.names) if alone else [])
    assert ("no table_name, and partitions of" in notes(cluster)) is alone
    for method in METHODS:
        result = ek.solve(cluster.drain("1"), method)
        assert bool(result.moves) is not alone


def test_one_row_of_zones_that_cannot_be_read_concerns_its_table_alone(public, tmp_path):
    case = public("cockroach/partitions-by-region")
    zones = (case.source / "zones.csv").read_text()
    broken = (
        zones + '"TABLE movr.public.rides","ALTER TABLE movr.public.rides CONFIGURE ZONE USING ?"\n'
    )
    (tmp_path / "zones.csv").write_text(broken)
    more = (case.source / "ranges.csv").read_text()
    more += '/Table/107/1,/Table/107/2,63,movr,users,64,1,"{1,2,4,7,8}","{1,2,4}","{7,8}"\n'
    (tmp_path / "ranges.csv").write_text(more)
    cluster = ek.read(
        str(tmp_path / "ranges.csv"), str(tmp_path / "zones.csv"), str(case.path("nodes.csv"))
    )
    result = ek.solve(cluster.drain("1"), "balance")
    assert {move.partition for move in result.moves} == {"63"}
    assert any("TABLE movr.public.rides" in one for one in cluster.native.notes)


@pytest.mark.parametrize("method", METHODS)
def test_what_the_shell_prints_for_people_is_read(public, method):
    case = public("cockroach/output-for-people")
    answer = case.run("solve", "nodes.txt", "ranges.txt", "--method", method, "-o", "out.sql")
    assert answer.code == 0
    assert "ALTER RANGE 28 RELOCATE VOTERS FROM 3 TO 4;" in case.written("out.sql")
    assert read("output-for-people").placement.nodes.tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize("method", METHODS)
def test_a_constraint_of_a_region_that_is_lost_stays_broken_and_the_rest_is_solved(public, method):
    case = public("cockroach/constraint-of-a-lost-region")
    names = files("constraint-of-a-lost-region")
    answer = case.run("solve", *names, "--method", method, "-o", "out.sql")
    assert answer.code == 3
    assert "no store in region=c" in answer.text
    assert "asked +region:c" in answer.text
    written = case.written("out.sql")
    assert all(f"ALTER RANGE {p} RELOCATE VOTERS FROM 3 TO 4;" in written for p in (40, 41, 42))


def test_a_constraint_that_was_misspelt_is_refused_where_people_build_the_cluster():
    with pytest.raises(ek.InvalidInput, match="no store has region=uss"):
        ek.cockroach_cluster(
            localities=["region=us"], replicas=[[0]],
            configs=[{"num_replicas": 1, "constraints": ["+region=uss"]}],
        )  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_non_voters_leave_nodes_that_are_dead_or_decommissioned(public, method):
    case = public("cockroach/non-voters-dead-and-decommissioned")
    names = files("non-voters-dead-and-decommissioned")
    assert case.run("solve", *names, "--method", method, "-o", "out.sql").code == 0
    written = case.written("out.sql")
    assert len(re.findall("RELOCATE NONVOTERS FROM 4 TO 6;", written)) == 3
    assert len(re.findall("RELOCATE NONVOTERS FROM 5 TO 7;", written)) == 3
    assert " VOTERS" not in written


@pytest.mark.parametrize("method", METHODS)
def test_what_is_left_to_cockroachdb_takes_one_line_whatever_the_number_of_ranges(public, method):
    case = public("cockroach/replication-factor-raised")
    names = files("replication-factor-raised")
    assert case.run("solve", *names, "--method", method, "-o", "out.sql").code == 0
    (comment,) = [line for line in case.written("out.sql").splitlines() if line.startswith("--")]
    assert comment.startswith("-- 10 ranges, VOTERS: left to CockroachDB: 1 (+")
    refused = case.run("plan", *names, "-o", "move")
    assert refused.code == 2
    assert refused.err.count("RELOCATE only exchanges") == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_constraint_that_is_short_keeps_no_node_from_being_emptied(public, method):
    case = public("cockroach/constraint-short-while-decommissioning")
    names = files("constraint-short-while-decommissioning")
    assert case.run("solve", *names, "--method", method).code == 0
    cluster = read("constraint-short-while-decommissioning")
    result = ek.solve(cluster, method)
    assert len(result.moves) == 6
    for stores in held(cluster, result.placement):
        assert {"4", "5"} < {*stores}
        assert "3" not in stores


def test_without_zones_as_many_replicas_are_wanted_as_there_are(public):
    case = public("cockroach/no-zone-configurations")
    answer = case.run("check", "ranges.csv", "nodes.csv")
    assert "no zone configurations" in answer.text
    assert "surplus" not in answer.text
    assert read("no-zone-configurations").partitions.replicas.tolist() == [5] * 5 + [3] * 5
    assert case.run("plan", "ranges.csv", "nodes.csv", "--drain", "2", "-o", "move").code == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_node_that_joins_a_preferred_place_is_given_what_is_short_there(public, method):
    public("cockroach/second-node-of-a-preferred-place")
    cluster = read("second-node-of-a-preferred-place")
    goals = ek.Goals(level=None) if method == "balance" else None
    result = ek.solve(cluster, method, goals=goals)
    assert result.audit.ok
    assert [move.target for move in result.moves] == ["5"] * 6
    assert all({"1", "5"} < {*stores} for stores in held(cluster, result.placement))


@pytest.mark.parametrize("method", METHODS)
def test_zones_of_unlike_size_keep_a_replica_each(public, method):
    public("cockroach/zones-of-two-two-and-one")
    assert not ek.solve(read("zones-of-two-two-and-one"), method).moves


def test_a_node_that_is_dead_and_decommissioned_does_not_count(public):
    public("cockroach/four-of-five-nodes-left")
    cluster = read("four-of-five-nodes-left")
    result = ek.solve(cluster, "cockroach")
    # what CockroachDB itself gives up: with four nodes that count it wants three voters
    assert result.regressions == {"live replicas": 8}
    left = held(cluster, result.placement)
    assert all(len(stores) == 3 and "3" not in stores for stores in left)
    kept = held(cluster, ek.solve(cluster, "balance").placement)
    assert all({"1", "2", "4", "5"} <= {*stores} for stores in kept)


@pytest.mark.parametrize("method", METHODS)
def test_six_nodes_of_twelve_are_emptied_but_for_what_has_no_majority(public, method):
    case = public("cockroach/half-of-twelve-nodes-decommissioning")
    files = ("nodes.csv", "ranges.csv", "zones.csv")
    answer = case.run("solve", *files, "--method", method)
    assert answer.code == 3
    assert "99 (on 10, 11, 12)" in answer.text
    cluster = read("half-of-twelve-nodes-decommissioning")
    *others, last = held(cluster, ek.solve(cluster, method).placement)
    assert last == ["10", "11", "12"]
    assert {store for stores in others for store in stores} <= set("123456")


@pytest.mark.parametrize("method", METHODS)
def test_stores_of_which_no_file_tells_the_node_are_not_taken_for_dead(public, method):
    case = public("cockroach/several-stores-of-a-node")
    answer = case.run("solve", "nodes.csv", "ranges.csv", "--method", method, "-o", "out.sql")
    assert "stores 4, 5, 6 as no node of node status" in answer.text
    assert "kv_store_status" in answer.text
    assert answer.code == 0
    assert case.written("out.sql") == ""


@pytest.mark.parametrize("method", METHODS)
def test_what_old_releases_print_is_read(public, method):
    case = public("cockroach/shell-of-version-2")
    names = ("ranges.txt", "nodes.txt", "zones.txt")
    assert case.run("solve", *names, "--method", method, "-o", "out.sql").code == 0
    moves = re.findall("RANGE (.*) RELOCATE VOTERS FROM (.*) TO (.*);", case.written("out.sql"))
    assert moves == [("21", "3", "4"), ("22", "3", "4")]


def test_columns_of_ranges_as_they_were_called_before_2_1(public):
    case = public("cockroach/columns-of-2-0")
    cluster = ek.read(case.path("session.txt"), case.path("status.txt"))
    assert cluster.partitions.replicas.tolist() == [5] * 4 + [3] + [5] * 7 + [3] * 2
    assert {"bank.accounts", "system.jobs"} < {*cluster.partitions.group_names}


@pytest.mark.parametrize("method", METHODS)
def test_a_range_with_learners_is_under_way_and_left_alone(method):
    ranges = (
        b"range_id,voting_replicas,non_voting_replicas,learner_replicas,lease_holder\n"
        b'1,"{1,2,3}",{},{4},3\n2,"{1,2,3}",{},{},1\n'
    )
    nodes = b"id,locality,is_live\n" + b"".join(b"%d,zone=z%d,true\n" % (i, i) for i in range(1, 6))
    cluster = ek.read(ranges, nodes)
    assert any("under way: 1 range (1) with learners" in one for one in cluster.native.notes)
    assert ek.solve(cluster, method).audit_before.ok
    result = ek.solve(cluster.drain("3"), method)
    assert {move.partition for move in result.moves} == {"2"}
    assert not result.leader_changes


@pytest.mark.parametrize("method", METHODS)
def test_changes_of_nodes_after_reading_are_heeded(method):
    cluster = read("no-zone-configurations").drain("2")
    result = ek.solve(cluster, method)
    assert not any("2" in stores for stores in held(cluster, result.placement))
    assert "2" not in arrived(ek.solve(read("no-zone-configurations").cordon("2"), method))


@pytest.mark.parametrize("method", METHODS)
def test_a_node_that_is_added_takes_what_nearly_full_stores_cannot(method):
    cluster = read("stores-nearly-full")
    grown = cluster.add_nodes(cluster.nodes.capacity[3:4], names=["6"])
    result = ek.solve(grown, method)
    assert "6" in arrived(result)
    assert not arrived(result) & {"1", "2", "5"}


RANGES = (
    "range_id,start_key,voting_replicas,non_voting_replicas,learner_replicas,lease_holder\n"
    '1,/Table/106/1,"{1,2,3}",{},{},1\n2,/Table/107/1,"{2,3,4}",{},{},2\n'
)
NODES = "id,locality,is_live,membership\n" + "".join(
    f"{i},region=r{i % 3},true,active\n" for i in range(1, 6)
)
ZONE = 'target,raw_config_sql\nRANGE default,"ALTER RANGE default CONFIGURE ZONE USING {}"\n'
STORES = "store_id,node_id,attrs,capacity\n" + "".join(f"{i},{i},[],9e12\n" for i in range(1, 6))


def given(*texts):
    return ek.read(*(text.encode() for text in texts))


def notes(cluster):
    return " ".join(cluster.native.notes)


def left_alone(cluster):
    """Return the ranges that are left alone, and hold that nothing of them changes."""
    flags = cluster.placement.flags & Flag.LEFT_ALONE
    alone = sorted({cluster.partitions.names[p] for p in cluster.placement.owner[flags > 0]})
    for method in METHODS:
        result = ek.solve(cluster.drain("2"), method, goals=ek.Goals(leaders=0.0))
        changed = {one.partition for one in (*result.moves, *result.leader_changes)}
        assert not changed & {*alone}
    return alone


def test_a_zone_with_an_unknown_field_is_kept_but_for_that_field():
    cluster = given(RANGES, NODES, ZONE.format("num_replicas = 3, novel = 1"))
    assert "RANGE default" in notes(cluster) and "not a field" in notes(cluster)
    assert left_alone(cluster) == []
    broken = given(RANGES, NODES, ZONE.format("num_replicas = many"))
    assert left_alone(broken) == ["1", "2"]
    short = given(RANGES, NODES, ZONE.format("num_replicas = 3, constraints = '{+region=r1: 4}'"))
    assert left_alone(short) == ["1", "2"]
    assert "asks for more replicas than the 3" in notes(short)


def test_nodes_are_told_by_gossip_too():
    nodes = "node_id,network,address,attrs,locality,is_live,ranges,leases\n" + "".join(
        f"{i},tcp,h{i}:26257,[],region=r{i % 3},true,9,3\n" for i in range(1, 6)
    )
    alive = "node_id,epoch,expiration,draining,decommissioning,membership\n" + "".join(
        f"{i},1,9.1,false,{str(i == 3).lower()},{'decommissioning' if i == 3 else 'active'}\n"
        for i in range(1, 6)
    )
    cluster = given(RANGES, nodes, alive)
    assert cluster.topology.tiers[0] == "region"
    assert cluster.nodes.keeps.tolist() == [True, True, False, True, True]


def test_a_replica_of_no_role_is_on_its_way_out():
    joint = (
        RANGES.replace("start_key,", "start_key,replicas,")
        .replace("/Table/106/1,", '/Table/106/1,"{1,2,3,4}",')
        .replace("/Table/107/1,", '/Table/107/1,"{2,3,4}",')
    )
    cluster = given(joint, NODES)
    assert left_alone(cluster) == ["1"]
    assert "with learners or replicas that leave" in notes(cluster)
    assert cluster.partitions.replicas.tolist() == [4, 3]


def test_constraints_without_localities_leave_their_ranges_alone():
    bare = "id,is_live\n" + "".join(f"{i},true\n" for i in range(1, 6))
    cluster = given(RANGES, bare, ZONE.format("num_replicas = 3, constraints = '[+region=r1]'"))
    assert left_alone(cluster) == ["1", "2"]
    assert "no localities of nodes" in notes(cluster)
    free = given(RANGES, bare, ZONE.format("num_replicas = 3, lease_preferences = '[[+region=r]]'"))
    assert left_alone(free) == []
    assert "lease preferences of 2 ranges (1, 2) are passed over" in notes(free)


def test_attributes_that_no_file_tells_or_no_store_has():
    asked = ZONE.format("num_replicas = 3, constraints = '{+ssd: 1}'")
    untold = given(RANGES, NODES, asked)
    assert left_alone(untold) == ["1", "2"]
    assert "no attributes of stores" in notes(untold)
    lost = given(RANGES, NODES, STORES, asked)
    assert left_alone(lost) == []
    assert "no store in ssd" in notes(lost)
    carried = given(RANGES, NODES, STORES.replace("3,3,[]", "3,3,[ssd]"), asked)
    assert ek.solve(carried, "balance").audit.ok


def test_a_preference_of_a_region_that_is_gone_gives_way_to_the_next():
    asked = "num_replicas = 3, lease_preferences = '[[+region=gone], [+region=r2]]'"
    cluster = given(RANGES, NODES, ZONE.format(asked))
    assert "no store in region=gone" in notes(cluster)
    for method in METHODS:
        result = ek.solve(cluster, method)
        leads = [cluster.nodes.names[n] for n in result.placement.leader_node]
        assert {*leads} <= {"2", "5"}


def test_a_lease_that_no_voter_holds_leaves_its_range_alone():
    cluster = given(RANGES.replace("{},{},1", "{},{},5"), NODES)
    assert left_alone(cluster) == ["1"]
    assert "no voter as holder of the lease: 1 range (1)" in notes(cluster)


@pytest.mark.parametrize(
    ("ranges", "nodes", "stores", "alone", "dead"),
    [
        # node status does not list node 1, which leads; nor node 4, which does not
        (RANGES, NODES.replace("1,region=r1,true,active\n", ""), STORES, ["1"], []),
        (RANGES, NODES.replace("4,region=r1,true,active\n", ""), STORES, [], ["4"]),
        # store status does not list store 4: alive, for all we know, or of the node that is down
        (RANGES, NODES, STORES.replace("4,4,[],9e12\n", ""), ["2"], []),
        (RANGES, NODES.replace("4,region=r1,true", "4,region=r1,false"),
         STORES.replace("4,4,[],9e12\n", ""), [], ["4"]),
    ],
)  # fmt: skip
def test_a_store_that_no_file_knows_is_dead_only_where_it_must_be(
    ranges, nodes, stores, alone, dead
):
    cluster = given(ranges, nodes, stores)
    assert left_alone(cluster) == alone
    down = np.flatnonzero(~cluster.nodes.alive).tolist()
    assert [cluster.nodes.names[n] for n in down] == dead
    assert notes(cluster)
    for method in METHODS:
        assert not {*dead} & {
            s for row in held(cluster, ek.solve(cluster, method).placement) for s in row
        }


def test_files_of_which_no_store_fits_and_zones_that_people_got_wrong_are_refused():
    with pytest.raises(ek.InvalidInput, match="no node of node status"):
        given(RANGES, "id,locality,is_live\n71,,true\n72,,true\n")
    with pytest.raises(ek.InvalidInput, match=":1: bogus: is not a field"):
        given(RANGES, NODES, "ALTER TABLE t CONFIGURE ZONE USING bogus = 3;")


@pytest.mark.parametrize(
    "text",
    ["<table><thead><tr><th>row</th>", "INSERT INTO results VALUES (1)", "# row 1\n## 2\n40"],
)
def test_other_forms_are_refused_with_the_one_to_print(text):
    with pytest.raises(ek.InvalidInput, match="--format=csv"):
        given(RANGES, text)


def test_a_voter_of_another_region_decommissions(public):
    name = "cockroach/voter-of-another-region-decommissions"
    cluster = read(name)
    result = ek.solve(cluster, "balance")
    assert result.comparison.moves == 2
    assert not result.audit.hard
    answer = public(name).run("solve", *files(name), "--method", "cockroach")
    assert answer.code == 3 and "1 partition: what is needed cannot be done" in answer.text


def test_underspecified_constraints_are_met_in_one_move():
    cluster = read("cockroach/constraints-underspecified")
    result = ek.solve(cluster, "balance")
    assert (result.comparison.moves, result.audit.hard) == (1, 0)
    assert held(cluster, result.placement) == [["1", "2", "3", "4"]]


@pytest.mark.parametrize(
    ("name", "words", "leads"),
    [
        ("cockroach/leases-within-a-region", ("--leaders", "0.1"), {"1": 3, "2": 3, "3": 3}),
        ("cockroach/leases-left-behind", ("--level", "none"), 3),
        ("cockroach/localities-as-objects", ("--level", "none"), 4),
    ],
)
def test_leases_alone_change(public, name, words, leads):
    case = public(name)
    answer = case.run("solve", *files(name), *words, "--json", "-o", "plan.sql")
    assert (answer.json["moves"], answer.json["broken"].get("lead", 0)) == (0, 0)
    if isinstance(leads, int):
        assert case.written("plan.sql").count("RELOCATE LEASE TO") == leads
    else:
        assert case.written("plan.sql").splitlines() == [
            "ALTER RANGE 60 RELOCATE LEASE TO 3;", "ALTER RANGE 64 RELOCATE LEASE TO 3;",
        ]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_no_statement_gives_a_store_a_replica_of_a_range_that_it_holds(public, method):
    name = "cockroach/voters-and-non-voters-change-places"
    case = public(name)
    words = ("--method", method, "-o", "plan.sql")
    assert case.run("solve", *files(name), *words).code == 0
    holds = {range_: {1, 2, 3, 4, 5} for range_ in (60, 61, 62)}
    for script in ("plan.sql", "plan.rollback.sql"):
        text = case.written(script)
        assert "left to CockroachDB" in text
        order = re.findall(r"ALTER RANGE (\d+) RELOCATE \w+ FROM (\d+) TO (\d+);", text)
        for range_, source, target in order:
            own = holds[int(range_)]
            assert int(source) in own and int(target) not in own
            own -= {int(source)}
            own |= {int(target)}


def test_a_region_that_is_back_takes_its_replicas_and_leases():
    cluster = read("cockroach/region-is-back")
    result = ek.solve(cluster, "balance")
    # one more than came back: two replicas of the second region share a zone of it
    assert (result.comparison.moves, result.audit.hard) == (5, 0)
    for held_by in held(cluster, result.placement):
        assert {"1", "4"} <= {*held_by}  # the other nodes of these regions are of one zone
    leads = [cluster.nodes.names[n] for n in result.placement.leader_node]
    assert {*leads} <= {"1", "2", "3"}


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_one_range_are_one(public, method):
    cluster = read("cockroach/several-tables-in-a-range")
    assert len(cluster.partitions) == 2
    result = ek.solve(cluster, method)
    assert sorted(held(cluster, result.placement)) == [["1", "3", "5"], ["3", "4", "5"]]


def test_a_store_with_a_prohibited_attribute_is_emptied():
    cluster = read("cockroach/prohibited-attribute")
    for method in METHODS:
        result = ek.solve(cluster, method)
        assert (result.comparison.moves, result.audit.hard) == (3, 0)
        assert not any("4" in row for row in held(cluster, result.placement))


@pytest.mark.parametrize("method", METHODS)
def test_leases_leave_a_node_that_drains(public, method):
    case = public("cockroach/node-drains")
    words = ("--level", "none", "--method", method, "-o", "plan.sql")
    assert case.run("solve", *files("cockroach/node-drains"), *words).code == 0
    lines = case.written("plan.sql").splitlines()
    assert [re.sub(r"TO \d+", "TO _", line) for line in lines] == [
        "ALTER RANGE 60 RELOCATE LEASE TO _;", "ALTER RANGE 61 RELOCATE LEASE TO _;",
    ]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_cold_replicas_go_to_the_other_disks(method):
    cluster = read("cockroach/cold-table-on-hdd")
    result = ek.solve(cluster, method)
    assert (result.comparison.moves, result.audit.hard) == (3, 0)
    assert held(cluster, result.placement)[0] == ["2", "4", "6"]


@pytest.mark.parametrize("method", METHODS)
def test_a_factor_that_is_lowered_copies_nothing(public, method):
    name = "cockroach/replication-factor-lowered"
    result = ek.solve(read(name), method, goals=ek.Goals(level=None))
    assert (result.comparison.moves, result.comparison.removed) == (0, 6)
    assert not result.audit.hard
    case = public(name)
    words = ("--level", "none", "--method", method, "-o", "plan.sql")
    case.run("solve", *files(name), *words)
    assert "RELOCATE" not in case.written("plan.sql")


@pytest.mark.parametrize("method", METHODS)
def test_tables_of_version_19_are_read(method):
    cluster = read("cockroach/tables-of-19-2")
    result = ek.solve(cluster, method)
    assert held(cluster, result.placement) == [["1", "2", "4"]] * 3


@pytest.mark.parametrize("method", METHODS)
def test_ranges_without_leases_lead_nowhere(public, method):
    case = public("cockroach/database-with-tables")
    cluster = ek.read(case.path("ranges.txt"))
    assert "no lease_holder of the ranges" in notes(cluster)
    result = ek.solve(cluster, method)
    assert (cluster.placement.leader == -1).all() and (result.placement.leader == -1).all()


@pytest.mark.parametrize("method", METHODS)
def test_ranges_of_a_region_that_is_down_stay_and_others_are_repaired(method):
    cluster = read("cockroach/region-down")
    result = ek.solve(cluster, method, goals=ek.Goals(level=None))
    rows = held(cluster, result.placement)
    assert rows[:4] == [["1", "2", "3"]] * 4
    assert {one.partition for one in result.unplaced} >= {"50", "51", "52", "53"}
    assert not {"1", "2", "3"} & {store for row in rows[4:] for store in row}
    assert result.comparison.moves == 4


@pytest.mark.parametrize(
    ("counts", "noted"),
    [("5", False), ("5, num_voters = 3", True), ("3", False)],  # surplus is a violation
)
def test_voters_beyond_those_wanted_are_noted(counts, noted):
    rows = [
        "start_key,end_key,range_id,replicas,voting_replicas,non_voting_replicas,lease_holder",
        'a,b,41,"{1,2,3,4,5}","{1,2,3,4,5}",{},1',
        'b,c,42,"{1,2,3,4,5}","{1,2,3}","{4,5}",1' if "voters" in counts else "",
    ]
    zones = f"ALTER RANGE default CONFIGURE ZONE USING num_replicas = {counts};"
    cluster = registry.read("\n".join(rows).encode(), zones.encode(), format="cockroach")
    notes = "; ".join(registry.find("cockroach").left_out(cluster))
    assert ("of 1 range (41: 5, not 3)" in notes) == noted


@pytest.mark.parametrize(
    ("nodes", "noted"),
    [
        ('node_id,locality\n1,"{""az"": ""b"", ""region"": ""a""}"\n', "no liveness of nodes"),
        ("id,address,build,is_live\n1,x,v19.1.3,true\n", "nodes of v19.1.3, which do not know"),
        ("id,address,build,is_live\n1,x,v22.1.0,true\n", ""),
    ],
)
def test_what_nodes_leave_open_is_noted(nodes, noted):
    """As in cockroachdb/cockroach issues 41246 and 39793."""
    ranges = b'range_id,replicas,lease_holder\n41,"{1}",1\n'
    notes = [*registry.find("cockroach").left_out(ek.read([ranges, nodes.encode()]))]
    of_nodes = [one for one in notes if "liveness" in one or "nodes of" in one]
    assert [one[: len(noted)] for one in of_nodes] == [noted] * bool(noted)


def test_constraints_that_no_store_meets_together_are_named_and_the_rest_is_solved(public):
    case = public("cockroach/constraints-of-two-places-at-once")
    names = files("constraints-of-two-places-at-once")
    apart = "no store that meets all of +datacenter=central, +datacenter=west"
    answer = case.run("check", *names)
    assert answer.code == 1 and apart in answer.text
    assert "partition 22 · asked datacenter=central" in answer.text
    answer = case.run("solve", *names, "-o", "out.sql")
    assert answer.code == 0 and f"{apart}, as zones ask of 1 range (21): left alone" in answer.text
    moves = re.findall("RANGE (.*) RELOCATE VOTERS FROM (.*) TO (.*);", case.written("out.sql"))
    assert [move[:2] for move in moves] == [("22", "3")] and moves[0][2] in ("5", "6")


def test_the_ranges_of_a_database_are_those_of_its_zone(public):
    answer = public("cockroach/voters-of-two-regions-at-once").run("check", "session.txt")
    asked = "all of +region=US_EAST-1, +region=US_EAST-2, as zones ask of 3 ranges (70, 71, 72)"
    assert answer.code == 1 and asked in answer.text
    assert answer.text.startswith("✗ nothing is judged: all 3 partitions are left alone")
    assert "database" not in answer.text


def test_zones_of_tables_whose_ranges_are_not_listed_are_named(public):
    case = public("cockroach/constraints-of-two-places-at-once")
    text = case.path("ranges.txt").read_text().replace("example6.", "example7.")
    (case.folder / "ranges.txt").write_text(text)
    others = ["nodes.txt", "zones.sql"]
    answer = case.run("check", str(case.folder / "ranges.txt"), *others)
    assert "no ranges of example6.central_west, example6.central_west_json" in answer.text


def test_the_last_answer_to_a_statement_counts(public):
    case = public("cockroach/ranges-before-and-after")
    answer = case.run("check", "session.txt")
    assert (answer.code, "more than one state of ranges: the last counts" in answer.text) == (
        0, True,
    )  # fmt: skip
    cluster = ek.read(case.path("session.txt"))
    led = [cluster.nodes.names[n] for n in cluster.placement.leader_node.tolist()]
    assert dict(zip(cluster.partitions.names, led, strict=True)) == {
        "44": "1", "53": "3", "52": "4",
    }  # fmt: skip


def test_rows_that_were_left_out_are_noted(public):
    case = public("cockroach/ranges-before-and-after")
    answer = case.run("check", "cut.txt")
    assert re.search(r"left out at \S*cut.txt:4, \S*cut.txt:6: they are not", answer.text)
    assert [*ek.read(case.path("cut.txt")).partitions.names] == ["44", "52"]


def test_the_only_node_of_a_region_is_as_full_as_constraints_make_it(public):
    case = public("cockroach/region-of-one-node")
    answer = case.run("solve", "session.txt", "-o", "plan.sql")
    statements = case.written("plan.sql")
    assert (answer.code, statements.count("RELOCATE VOTERS")) == (0, 7)
    assert "TO 9;" not in statements and "FROM 9 " not in statements
    cluster = ek.read(case.path("session.txt"))
    placed = np.bincount(ek.solve(cluster).placement.node).tolist()
    held = dict(zip(cluster.nodes.names, placed, strict=True))
    assert held.pop("9") == 21 and max(held.values()) == 8


def test_arrays_of_a_driver(public):
    cluster = ek.read(public("cockroach/ranges-before-and-after").path("driver.txt"))
    assert ([*cluster.nodes.names], len(cluster.partitions)) == (["43", "45", "85"], 1)


def test_ranges_that_cannot_be_led_where_leases_are_preferred_are_named(public):
    case = public("cockroach/preferred-place-without-a-replica")
    words = ("--level", "none", "--table", "moves.csv")
    answer = case.run("solve", "ranges.csv", "nodes.csv", "zone.sql", *words)
    assert answer.code == 0
    assert "no voter in region=us-west, where leases are preferred, of 6 ranges (43," in answer.text
    moves = case.written("moves.csv").split()[1:]
    assert sorted(moves) == ["leader,40,,4,1,", "leader,42,,9,1,"]
    zone = case.path("zone.sql").read_text()
    bound = zone.replace("+continent=us: 2", "+region=us-west: 1")
    (case.folder / "bound.sql").write_text(bound)
    answer = case.run("check", "ranges.csv", "nodes.csv", str(case.folder / "bound.sql"))
    assert "where leases are preferred" not in answer.text


KEPT = {
    "constraints, voter constraints": test_ranges_of_partitions_are_told_by_their_start_keys,
    "disks with": test_stores_that_are_nearly_full_take_nothing,
    "fewer nodes than replicas": test_a_node_that_is_dead_and_decommissioned_does_not_count,
    "no zone configurations": test_without_zones_as_many_replicas_are_wanted_as_there_are,
    "no node status": test_ranges_alone_are_read_with_a_note,
    "nodes without `is_live`": test_what_nodes_leave_open_is_noted,
    "a `build` before v22.1": test_what_nodes_leave_open_is_noted,
    "ranges without `lease_holder`": test_ranges_without_leases_lead_nowhere,
    "localities as JSON": test_leases_alone_change,
    "a constraint on a place": (
        test_a_constraint_of_a_region_that_is_lost_stays_broken_and_the_rest_is_solved
    ),
    "constraints that stores meet one by one": (
        test_constraints_that_no_store_meets_together_are_named_and_the_rest_is_solved
    ),
    "zones of tables of which no range": (
        test_zones_of_tables_whose_ranges_are_not_listed_are_named
    ),
    "rows of a printed table": test_rows_that_were_left_out_are_noted,
    "an unknown field of zones": test_a_zone_with_an_unknown_field_is_kept_but_for_that_field,
    "a partition without a start key": (
        test_ranges_of_partitions_are_told_by_where_their_voters_are_or_left_alone
    ),
    "zones of partitions, and no table": (
        test_ranges_of_no_known_table_are_left_alone_where_partitions_have_zones
    ),
    "a constraint on localities": test_constraints_without_localities_leave_their_ranges_alone,
    "lease preferences for places": (
        test_ranges_that_cannot_be_led_where_leases_are_preferred_are_named
    ),
    "a range with learners": test_a_range_with_learners_is_under_way_and_left_alone,
    "an unknown store": test_a_store_that_no_file_knows_is_dead_only_where_it_must_be,
    "a range without a majority": (
        test_six_nodes_of_twelve_are_emptied_but_for_what_has_no_majority
    ),
    "a range with all its replicas": test_voters_beyond_those_wanted_are_noted,
    "an invalid `ALTER ... CONFIGURE ZONE`": (
        test_files_of_which_no_store_fits_and_zones_that_people_got_wrong_are_refused
    ),
    "output as `html`": test_other_forms_are_refused_with_the_one_to_print,
}


def test_what_the_page_says_of_dumps_is_held_by_a_test():
    page = (places.ROOT / "docs" / "systems" / "cockroach.md").read_text()
    rows = (
        page.partition("| content of the dump | treatment |\n|---|---|\n")[2]
        .partition("\n\n")[0]
        .splitlines()
    )
    assert len(rows) == len(KEPT)
    for row, start in zip(rows, KEPT, strict=True):
        assert row.startswith(f"| {start}")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("name", "joins", "strands"),
    [
        ("cockroach/two-of-three-lost-in-an-update", {("40", "3"), ("43", "1")}, ["26"]),
        ("cockroach/two-of-five-shut-down", {("60", "3"), ("61", "1"), ("64", "2")}, ["62"]),
        ("cockroach/status-with-all-columns", {(str(60 + i), "6") for i in range(8)}, []),
        ("cockroach/partition-in-one-locality-of-one-node", set(), []),
        (
            "cockroach/decommissioned-member-of-a-dropped-table",
            {("9911", "40"), ("9912", "40")},
            [],
        ),
    ],
)
def test_live_nodes_take_what_they_can_and_the_rest_is_named(method, name, joins, strands):
    cluster = read(name)
    result = ek.solve(cluster, method=method)
    assert {(move.partition, move.target) for move in result.moves} == joins
    named = {one.partition for one in result.unplaced}
    assert {*strands} <= named
    assert cluster.partitions.names[0] in named or not strands


def test_ranges_of_19_1_with_their_statement(public):
    read = ek.read(public("cockroach/ranges-of-19-1").path("ranges.txt"))
    assert [*read.nodes.names] == [*"125679"]
    assert [*np.bincount(read.placement.leader_node, minlength=6)] == [1, 2, 0, 1, 1, 2]


def test_nodes_that_were_decommissioned_long_ago_take_nothing(public):
    case = public("cockroach/ghosts-decommissioned")
    read = ek.read(case.path("nodes.tsv"), case.path("ranges.csv"))
    assert read.nodes.may_receive.sum() == 5
    found = ek.solve(read, goals=ek.Goals(level=0.1))
    assert read.nodes.may_receive[found.placement.node].all()


def test_node_status_of_1_0(public):
    case = public("cockroach/status-of-1-0")
    read = ek.read(case.path("nodes.txt"), case.path("ranges.txt"))
    assert [*np.bincount(read.placement.node, minlength=4)] == [6, 6, 6, 0]
    found = ek.solve(read, goals=ek.Goals(level=0.1))
    assert max(np.bincount(found.placement.node, minlength=4)) == 5


def test_what_decommission_prints_while_it_waits(public):
    case = public("cockroach/decommission-printed-repeatedly")
    files = [case.path(name) for name in ("nodes.tsv", "ranges.csv", "decommission.txt")]
    read = ek.read(*files)
    assert not read.nodes.accepts[0] and not read.nodes.keeps[0]
    assert 0 not in ek.solve(read).placement.node


def test_boxes_in_unicode(public):
    case = public("cockroach/unicode-boxes")
    boxes, plain = (ek.read(case.path(name)) for name in ("ranges.txt", "ascii.txt"))
    assert [*boxes.placement.node] == [*plain.placement.node] == [0, 1, 2] * 3
    assert [*boxes.placement.leader] == [0, 0, 0]


def test_rows_as_lines_of_json(public):
    case = public("cockroach/rows-as-json-lines")
    read = ek.read(case.path("ranges.ndjson"), case.path("nodes.ndjson"))
    found = ek.solve(read, goals=ek.Goals(level=0.1))
    assert max(np.bincount(found.placement.node, minlength=4)) == 5


def test_ranges_of_a_database_with_tables(public):
    read = ek.read(public("cockroach/database-with-tables").path("ranges.txt"))
    assert (len(read.nodes), len(read.partitions)) == (6, 2)
    assert [*read.topology.tiers][:2] == ["region", "az"]


def test_leases_of_a_lost_region(public):
    case = public("cockroach/leases-of-a-lost-region")
    answer = case.run("solve", "ranges.txt", "partitions.sql", "--level", "none", "-o", "p.sql")
    led = {
        int(line.split()[2]): int(line[:-1].split()[-1])
        for line in case.written("p.sql").splitlines()
    }
    assert (answer.code, led) == (0, {73: 9, 56: 7, 70: 8, 114: 9, 75: 9, 113: 8})


def test_columns_left_out_and_a_database_in_the_zones_alone(public):
    case = public("cockroach/status-without-some-columns")
    files = ["ranges.txt", "status.txt", "zones.sql"]
    answer = case.run("check", *files)
    assert answer.code == 0 and "no partition of 2 ranges (58, 71)" in answer.text
    assert "no database of the ranges: they count as those of movr" in answer.text
    cluster = ek.read([case.path(name) for name in files])
    assert (len(cluster.nodes), cluster.nodes.alive.all()) == (9, True)
    drained = case.run("solve", *files, "--drain", "9", "--json")
    assert (drained.code, drained.json["broken"]["not_kept"]) == (4, 3)


def test_partitions_by_the_values_that_statements_list(public):
    case = public("cockroach/partitions-by-list")
    files = ["ranges.csv", "status.csv", "zones.sql"]
    answer = case.run("check", *files)
    assert answer.code == 1 and "no partition of" not in answer.text
    assert "52 · node 4 · asked region=eu-west-2" in answer.text
    assert case.run("solve", *files, "--level", "none", "-o", "moves.sql").code == 0
    moves = [line for line in case.written("moves.sql").splitlines() if " VOTERS " in line]
    assert sorted(moves) == [
        "ALTER RANGE 52 RELOCATE VOTERS FROM 4 TO 3;",
        "ALTER RANGE 54 RELOCATE VOTERS FROM 1 TO 9;",
    ]


@pytest.mark.parametrize(
    ("files", "noted"), [(["session.txt"], False), (["session.txt", "nodes.txt"], True)]
)
def test_localities_beside_replicas_that_node_status_contradicts(public, files, noted):
    text = public("cockroach/voters-of-archives").run("check", *files).text
    assert "5 ranges (200: 3, not 5, 202: 3, not 5, 204" in text and "place 2 replicas" in text
    assert ("which counts: 10 (region=archive, not region=ar1)" in text) == noted


@pytest.mark.parametrize(
    ("zones", "unknown"), [("create.sql", set()), ("partitions.txt", {"79"})]
)  # of 79, which begins before the table, the zones differ that SHOW PARTITIONS has of both indexes
def test_partitions_of_a_table_and_of_its_second_index(public, zones, unknown):
    case = public("cockroach/countries-of-two-clouds")
    answer = case.run("check", "ranges.txt", zones)
    assert answer.code == 0 and ("partition of 1 range (79)" in answer.text) == bool(unknown)
    cluster = ek.read(case.path("ranges.txt"), case.path(zones))
    placed = ek.solve(cluster.drain("5"), goals=ek.Goals(level=None)).placement
    rows = dict(zip(cluster.partitions.names, held(cluster, placed), strict=True))
    # three nodes of the region of za hold its ranges; what is between the values leaves
    assert {name for name, stores in rows.items() if "5" in stores} == {"95", "101", *unknown}
    answer = case.run("check", "breach.txt", zones)
    assert answer.code == 1 and "partition 95 · node 3 · asked region=af-south-1" in answer.text
    words = ("breach.txt", zones, "--level", "none", "-o", "moves.sql")
    assert case.run("solve", *words).code == 0
    assert "ALTER RANGE 95 RELOCATE VOTERS FROM 3 TO 5;" in case.written("moves.sql")


@pytest.mark.parametrize(
    ("name", "files", "moves"),
    [
        ("cockroach/tables-named-by-requests", ["ranges.txt", "nodes.txt", "zones.sql"],
         {("74", "6", "3"), ("134", "3", "8")}),
        ("cockroach/zones-and-ranges-in-one-session", ["trimmed.txt"],
         {("38", "1", "2"), ("38", "5", "6")}),
        ("cockroach/zones-and-ranges-in-one-session", ["executed.txt"],
         {("38", "1", "2"), ("38", "5", "6")}),
        ("cockroach/zones-and-ranges-in-one-session", ["options.txt"],
         {("38", "1", "2"), ("38", "5", "6")}),
    ],
)  # fmt: skip
def test_zones_hold_for_the_tables_that_requests_name(public, name, files, moves):
    cluster = ek.read(*map(public(name).path, files))
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert {(one.partition, one.source, one.target) for one in result.moves} == moves


def test_the_schema_of_a_request_is_no_database(public):
    session = public("cockroach/zones-and-ranges-in-one-session").path("trimmed.txt").read_text()
    cluster = ek.read(session.replace("FROM TABLE ", "FROM TABLE public.").encode())
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    moves = {(one.partition, one.source, one.target) for one in result.moves}
    assert moves == {("38", "1", "2"), ("38", "5", "6")}


def test_a_prompt_in_brackets_begins_no_json(public):
    cluster = ek.read(
        *map(public("cockroach/prompt-in-brackets").path, ("nodes.txt", "ranges.txt"))
    )
    assert cluster.nodes.alive.tolist() == [True, True, False, True]
    moves = ek.solve(cluster, goals=ek.Goals(level=None)).moves
    assert [(one.partition, one.target) for one in moves] == [("70", "4"), ("72", "2")]


class TestZoneGet:
    """What ``cockroach zone get`` prints."""

    def test_the_table_below_its_name(self, public):
        case = public("cockroach/zone-get")
        answer = case.run("check", "ranges.txt", "nodes.txt", "zone.yaml", "--json")
        assert answer.json["broken"] == {"place": 2, "soft_spread": 3, "lead": 1}

    def test_several_with_their_requests(self, public):
        case = public("cockroach/zone-get")
        cluster = ek.read(*map(case.path, ("ranges.txt", "nodes.txt", "session.txt")))
        assert cluster.partitions.replicas.tolist() == [5, 5, 5]


def test_a_stateful_set_was_scaled_down_without_decommission(public):
    case = public("cockroach/stateful-set-scaled-down")
    answer = case.run("solve", "ranges.txt", "nodes.txt", "-o", "plan.sql")
    assert answer.code == 3 and "40 (on 1, 6, 7)" in answer.text
    statements = case.written("plan.sql")
    assert len(re.findall(r"VOTERS FROM [456] TO", statements)) == 9
    assert not re.search(r"TO [4567];|RANGE 40 ", statements)
    result = ek.solve(read("cockroach/stateful-set-scaled-down"))
    held_by = np.bincount(result.placement.node, minlength=9)
    assert held_by[[0, 1, 2, 7, 8]].max() == 24


def test_the_state_of_a_decommission_with_readiness_is_read(public):
    case = public("cockroach/decommission-with-readiness")
    answer = case.run("solve", "nodes.txt", "ranges.csv", "-o", "out.sql")
    assert answer.code == 0
    moves = re.findall("RELOCATE VOTERS FROM (.*) TO (.*);", case.written("out.sql"))
    assert len(moves) == 38 and {source for source, _ in moves} == {"4"}


def test_statements_in_fences_of_markdown_are_read(public):
    case = public("cockroach/lease-of-the-system-database")
    answer = case.run("solve", "before.txt", "-o", "p.sql", "--json")
    assert (answer.json["moves"], case.written("p.sql")) == (
        0,
        "ALTER RANGE 6 RELOCATE LEASE TO 2;\n",
    )
    assert case.run("check", "after.txt", "--json").json["broken"] == {}


@pytest.mark.parametrize(
    ("values", "moved"),
    [
        ("PARTITION a VALUES IN ('x'), PARTITION rest VALUES IN (DEFAULT)", {"2", "3", "4"}),
        ("PARTITION a VALUES IN ('x')", set()),
    ],
)
def test_the_default_partition_of_statements_has_its_own_zone(values, moved):
    ranges = (
        b"range_id,start_key,replicas,lease_holder,table_name,replica_localities\n"
        b'1,"/1/""x""","{1}",1,t,"{region=eu}"\n2,"/1/""x""/PrefixEnd","{1}",1,t,"{region=eu}"\n'
        b'3,"/1/""y""","{1}",1,t,"{region=eu}"\n4,NULL,"{1}",1,t,"{region=eu}"\n'
        b'5,"/1/""x""/7","{2}",2,u,"{region=us}"\n'
    )
    zones = (
        f"ALTER TABLE d.public.t PARTITION BY LIST (k) ({values});"
        "ALTER TABLE d.public.t CONFIGURE ZONE USING num_replicas = 1;"
        "ALTER PARTITION a OF TABLE d.public.t CONFIGURE ZONE USING num_replicas = 1;"
        "ALTER PARTITION rest OF TABLE d.public.t CONFIGURE ZONE USING num_replicas = 1, "
        "constraints = '[+region=us]';"
    )
    cluster = ek.read([ranges, zones.encode()])
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert {move.partition for move in result.moves} == moved
