"""Tables of replicas under the headings of other systems: leaders, lists of nodes, and notes."""

import pytest

import evenkeel as ek
from evenkeel.systems.tables import reading

NODES = b"node,cap_x\n1,10\n2,10\n3,10\n"
HBASE = "h1,16020,1588888888888"


@pytest.mark.parametrize(
    ("text", "leaders", "unread"),
    [
        ("region_id,store_id,leader\n7,2,3\n7,3,3\n8,2,2\n8,3,2\n", [1, 0], []),
        ("region_id,store_id,leader\n7,1,1\n7,2,1\n8,1,2\n8,2,2\n", [0, 1], []),
        ("region_id,store_id,leader\n7,2,NULL\n7,3,NULL\n8,2,3\n8,3,3\n", [-1, 1], []),
        ("region_id,store_id,leader\n7,1,0\n7,2,1\n", [1], []),
        ("region_id,store_id,is_leader\n7,1,N\n7,2,Y\n", [1], []),
        ("region_id,store_id,is_leader\n7,1,NULL\n7,2,t\n", [1], []),
        ("region_id,store_id,is_leader\n7,1,no\n7,2,maybe\n", [0], ["is_leader"]),
        ("region_id,store_id,is_leader,role\n7,1,1,follower\n7,2,0,leader\n", [1], ["is_leader"]),
        ("region_id,store_id,is_leader,leader\n7,1,0,2\n7,2,1,2\n", [1], ["leader"]),
        ('region_id,store_id,leader\n7,"1,2,3",2\n8,"[2,3]",3\n', [1, 1], []),
    ],
)
def test_a_leader_is_marked_or_named(text, leaders, unread):
    cluster = ek.read([NODES, text.encode()])
    assert cluster.placement.leader.tolist() == leaders
    assert cluster.native.get(reading.UNREAD, []) == unread


@pytest.mark.parametrize(
    ("cell", "nodes"), [("1,2,3", ["1", "2", "3"]), ("{2;3}", ["2", "3"]), (HBASE, [HBASE])]
)
def test_a_cell_may_list_several_nodes(cell, nodes):
    cluster = ek.read(f'region_id,server_name\n7,"{cell}"\n'.encode())
    assert [*cluster.nodes.names] == nodes
    assert cluster.placement.node.tolist() == [*range(len(nodes))]
