"""Tables of disks inside nodes, read and written back."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.systems import registry
from tests.support.clusters import assert_same

NODES = b"node,cap_disk\ndn1,8\ndn2,8\n"
VOLUMES = b"node,Volume,capacity\ndn2,/data/1,4\ndn1,/data/1,4\ndn1,/data/2,\ndn2,/data/2,3\n"
BLOCKS = (
    b"partition,node,volume,load_disk\na,dn1,/data/2,1\nb,dn2,/data/1,1\na,dn2,dn2:/data/2,1\n"
    b"c,dn1,,1\n"
)
RULES = b'bytes = "disk"\n'


def faults_of(*sources):
    with pytest.raises(ek.InvalidInput) as caught:
        ek.read(*sources, format="tables")
    return [(one.path.partition(": ")[2] or one.path, one.value) for one in caught.value.faults]


def test_volumes_are_called_by_their_nodes():
    c = ek.read(NODES, VOLUMES, BLOCKS, RULES)
    assert list(c.disks.names) == ["dn1:/data/1", "dn1:/data/2", "dn2:/data/1", "dn2:/data/2"]
    assert c.disks.node.tolist() == [0, 0, 1, 1]
    assert c.disks.capacity.tolist() == [4.0, np.inf, 4.0, 3.0]
    assert c.nodes.capacity[:, 0].tolist() == [8.0, 7.0]
    assert c.placement.disk[c.placement.node >= 0].tolist() == [1, 3, 2, -1]
    assert any(
        "no value of capacity in 1 row" in note for note in registry.find("tables").left_out(c)
    )


@pytest.mark.parametrize(
    "given",
    [
        {}, {"names": ["disk0", "disk1", "disk2"]}, {"names": ["n0:a", "n0:b", "n1:a"]},
        {"names": ["n0:a", "n0:b", "n1:c"]}, {"state": [0, 1, 2]}, {"names": ["a", "n0:b", "n1:a"]},
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_disks_come_back_as_they_were(tmp_path, given, suffix):
    c = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0], [2.0], [0.5]], dimensions=["disk"], bytes="disk",
        placement=[[0, 1], [1, 0], [0, -1]], disk=[[1, 2], [-1, 0], [1, -1]],
        disks=ek.Disks([0, 0, 1], [5.0, np.inf, 0.1], **given),
    )  # fmt: skip
    files = ek.write(c, tmp_path / f"c{suffix}", format="tables")
    back = ek.read(files)
    assert_same(c, back)
    assert list(back.disks.names) == list(c.disks.names)
    for name in ("node", "capacity", "state"):
        assert getattr(back.disks, name).tolist() == getattr(c.disks, name).tolist()
    assert back.placement.disk.tolist() == c.placement.disk.tolist()


def test_answers_are_written_under_the_headings_that_were_read(tmp_path):
    for name, data in (("n.csv", NODES), ("v.csv", VOLUMES), ("r.csv", BLOCKS), ("t.toml", RULES)):
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / name) for name in ("n.csv", "v.csv", "r.csv", "t.toml")]
    words = ["--level", "none", "--empty-disk", "*:/data/1", "-o", str(tmp_path / "out.csv")]
    assert main(["solve", *paths, *words]) == 0
    assert (tmp_path / "out.disks.csv").read_text().splitlines() == [
        "node,Volume,capacity,state", "dn1,/data/1,4.0,emptying", "dn1,/data/2,inf,fine",
        "dn2,/data/1,4.0,emptying", "dn2,/data/2,3.0,fine",
    ]  # fmt: skip
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0].split(",")[:3] == ["partition", "node", "volume"]
    assert [line.split(",")[2] for line in lines[1:]] == ["/data/2"] * 4


def test_what_is_wrong_with_disks_is_named_by_its_row():
    assert faults_of(NODES, BLOCKS)[0][1] == "volume"
    bad = b"node,disk,capacity,state,speed\nx,d,1,,\ndn1,,2,,\ndn1,e,-1,broken,\ndn1,e,1,,\n"
    values = [value for _, value in faults_of(NODES, bad, b"partition,node\na,dn1\n", RULES)]
    assert values == ["speed", "x", "broken", "-1", "", "e"]
    strange = BLOCKS.replace(b"dn2:/data/2", b"/data/7")
    assert [value for _, value in faults_of(NODES, VOLUMES, strange, RULES)] == ["/data/7"]
    assert "disks" in faults_of(NODES, VOLUMES, BLOCKS)[0][0]
    assert len(faults_of(NODES, VOLUMES, VOLUMES, BLOCKS, RULES)) == 1


def test_replicas_on_nodes_without_disks_are_on_none_that_is_known():
    blocks = BLOCKS + b"d,dn3,/data/1,1\n"
    c = ek.read(NODES, VOLUMES, blocks, RULES)
    assert c.placement.disk[c.placement.node == 2].tolist() == [-1]
    assert any("no disks of dn3" in note for note in registry.find("tables").left_out(c))
    assert ek.solve(c, goals=ek.Goals(level=None)).disks.broken == 0
