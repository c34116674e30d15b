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
