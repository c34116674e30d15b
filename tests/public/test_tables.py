"""Clusters of systems without a reader of their own, as tables."""

FILES = ("nodes.csv", "replicas.csv", "rules.toml")


def solved(case, *words):
    return case.run("solve", *FILES, *words, "--json").json


def test_blocks_of_hdfs_on_two_racks(public):
    found = solved(public("tables/hdfs-two-racks"), "--level", "none")
    assert found["moves"] == found["moves_at_least"] == 40
    assert found["broken"] == {}


def test_leaders_of_tikv_in_one_region(public):
    found = solved(public("tables/tikv-leaders-in-one-region"), "--method", "leaders")
    assert (found["status"], found["leader_changes"]) == ("optimal", 11)
    assert (found["moves"], found["most_leaders"]) == (0, 44)


def test_the_last_rack_of_scylla(public):
    assert solved(public("tables/scylla-last-rack"))["status"] == "infeasible"


def test_racks_that_redpanda_did_not_keep(public):
    found = solved(public("tables/redpanda-racks-not-kept"))
    assert (found["moves"], found["broken_before"], found["broken"]) == (4, {"spread": 4}, {})


def test_a_replacement_in_the_same_data_centre(public):
    found = solved(public("tables/pd-replacement-keeps-the-isolation"))
    assert (found["moves"], found["broken"]) == (20, {})


def test_a_policy_by_type_and_host(public):
    found = solved(public("tables/pd-policy-by-type-and-host"))
    assert (found["moves"], found["broken_before"], found["broken"]) == (12, {"spread": 12}, {})


def test_nodes_of_unlike_size(public):
    found = solved(public("tables/scylla-nodes-of-unlike-size"))
    assert found["goals_reached"] and found["broken"] == {}
    assert found["level"]["disk"] < 1.06


def test_a_store_that_was_removed(public):
    case = public("tables/pd-store-that-was-removed")
    answer = case.run("solve", *FILES, "--json")
    assert (answer.json["moves"], answer.json["broken"]) == (10, {})
    assert answer.err.count("s5") == 1
