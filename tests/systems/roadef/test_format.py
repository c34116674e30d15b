"""Machine-reassignment files: in, out, and everything wrong with them at once."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import InvalidInput
from evenkeel.systems import roadef
from tests.support import places

DATA = places.DATA / "roadef"


def words(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().split()


@pytest.fixture
def worked() -> Cluster:
    return roadef.read(DATA / "worked")


def test_a_model_becomes_a_cluster(worked):
    assert (len(worked.nodes), len(worked.partitions), len(worked.partitions.group_names)) == (
        4,
        3,
        2,
    )
    assert worked.topology.tiers == ("neighbourhood", "location")
    assert worked.topology.domain.tolist() == [[0, 0, 1, 1], [0, 0, 1, 2]]
    assert worked.transient.tolist() == [True, False]
    assert worked.nodes.watermark.tolist() == [[16, 80], [8, 160], [12, 80], [8, 80]]
    assert worked.partitions.group.tolist() == [0, 0, 1]
    assert worked.depends.tolist() == [[1, 0, 0]]
    bound = worked.rules[worked.partitions.group_rule[0]]
    assert bound.spread == {"node": 1}
    assert bound.min_domains == {"location": 2}
    assert worked.partitions.group_rule[1] == -1
    assert np.asarray(worked.placement).tolist() == [[0], [3], [0]]


def test_what_it_costs(worked):
    cost = roadef.cost_of(worked)
    assert cost.watermark == {"r0": 100.0, "r1": 10.0}
    assert [(p.of, p.to, p.ratio, p.weight) for p in cost.proportion] == [("r0", "r1", 20.0, 10.0)]
    assert (cost.moves, cost.group_moves, cost.distance) == (1.0, 10.0, 100.0)


def test_distances_are_three_numbers_where_that_says_it_all(worked):
    assert worked.topology.tier_distance.tolist()[0] == [0, 1, 4, 5]
    cluster = roadef.read(DATA / "model_a1_3.txt.gz")
    assert cluster.topology.tier_distance.tolist() == [2, 1, 0]
    assert cluster.topology.crossing == frozenset()


def test_a_location_in_two_neighbourhoods_crosses(tmp_path):
    model = words(DATA / "worked" / "model_worked.txt")
    model[27] = "0"  # the location of the third machine, in the second neighbourhood
    (tmp_path / "model_x.txt").write_text(" ".join(model))
    (tmp_path / "assignment_x.txt").write_text("0 3 0")
    topology = roadef.read(tmp_path).topology
    assert topology.crossing == {"location"}
    assert topology.domain[1].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "name", ["worked/model_worked.txt", "model_a1_1.txt.gz", "model_a1_3.txt.gz"]
)
def test_both_files_come_back_the_same(tmp_path, name):
    source = DATA / name
    cluster = roadef.read(source)
    roadef.write_model(cluster, tmp_path / "model_x.txt")
    roadef.write(cluster, cluster.placement, tmp_path / "assignment_x.txt")
    assert words(tmp_path / "model_x.txt") == words(source)
    beside = source.with_name(source.name.replace("model", "assignment"))
    assert words(tmp_path / "assignment_x.txt") == words(beside)
    again = roadef.read(tmp_path / "model_x.txt")
    roadef.write_model(again, tmp_path / "model_y.txt.gz")
    text = gzip.decompress((tmp_path / "model_y.txt.gz").read_bytes()).decode()
    assert text == (tmp_path / "model_x.txt").read_text()


def test_a_solved_assignment_is_read_again(tmp_path, worked):
    moved = worked.placement.replaced(np.array([0, 2, 1], np.int32), worked.placement.leader)
    roadef.write(worked, moved, tmp_path / "new.txt")
    assert (tmp_path / "new.txt").read_text() == "0 2 1\n"
    assert roadef.read_assignment(tmp_path / "new.txt", worked).node.tolist() == [0, 2, 1]


def test_a_pair_may_be_named(tmp_path):
    (tmp_path / "m").write_bytes((DATA / "worked" / "model_worked.txt").read_bytes())
    (tmp_path / "a").write_text("0\n2\n\n0")
    assert roadef.read(tmp_path / "m", tmp_path / "a").placement.node.tolist() == [0, 2, 0]


def broken(folder: Path, model: list[str], assignment: str) -> list[str]:
    (folder / "model_x.txt").write_text(" ".join(model))
    (folder / "assignment_x.txt").write_text(assignment)
    with pytest.raises(InvalidInput) as caught:
        roadef.read(folder)
    return [str(fault) for fault in caught.value.faults]


def test_every_truncation_is_a_fault(tmp_path):
    model = words(DATA / "worked" / "model_worked.txt")
    for length in range(len(model)):
        faults = broken(tmp_path, model[:length], "0 3 0")
        assert any("the file ends" in fault for fault in faults), length


def test_all_faults_are_reported_together(tmp_path):
    model = words(DATA / "worked" / "model_worked.txt")
    model[1] = "2"  # transient
    model[model.index("1000") - 3] = "7"  # service of the first process
    model[-6] = "9"  # first resource of the balance cost
    faults = broken(tmp_path, [*model, "5"], "0 4")
    for part in (
        "transient",
        "service",
        "balance cost",
        "after the end",
        "3 processes",
        "4 machines",
    ):
        assert any(part in fault for fault in faults), part


@pytest.mark.parametrize("word", ["x", "-1", "1.5", "4294967296", "99999999999999999999"])
def test_words_that_are_no_unsigned_integers(tmp_path, word):
    model = words(DATA / "worked" / "model_worked.txt")
    model[2] = word
    faults = broken(tmp_path, model, "0 3 0")
    assert any("unsigned 32-bit" in fault for fault in faults)


@pytest.mark.parametrize("at", range(60))
def test_no_number_may_be_negative_wherever_it_stands(tmp_path, at):
    model = words(DATA / "worked" / "model_worked.txt")
    model[at % len(model)] = "-7"
    faults = broken(tmp_path, model, "0 3 0")
    assert any("unsigned 32-bit" in fault for fault in faults)


def test_staying_must_be_free(tmp_path):
    model = words(DATA / "worked" / "model_worked.txt")
    model[12] = "3"  # first machine to itself
    assert any("stay where it is" in fault for fault in broken(tmp_path, model, "0 3 0"))


def test_a_folder_without_one_model(tmp_path):
    with pytest.raises(InvalidInput, match="needs one model"):
        roadef.read(tmp_path)


def test_a_missing_assignment_is_a_fault(tmp_path):
    (tmp_path / "model_x.txt").write_bytes((DATA / "worked" / "model_worked.txt").read_bytes())
    with pytest.raises(InvalidInput, match="cannot be read"):
        roadef.read(tmp_path)


def test_only_its_own_clusters_are_written_as_models(tmp_path, worked):
    other = Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], placement=[[-1]])
    with pytest.raises(InvalidInput, match="native"):
        roadef.write_model(other, tmp_path / "m")
    with pytest.raises(InvalidInput, match="on no machine"):
        roadef.write(other, other.placement, tmp_path / "a")
    with pytest.raises(InvalidInput, match="another cluster"):
        roadef.write(worked, roadef.read(DATA / "model_a1_1.txt.gz").placement, tmp_path / "a")
