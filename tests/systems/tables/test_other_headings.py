"""Tables of replicas under the headings of other systems: leaders, lists of nodes, and notes."""

import json

import pandas as pd
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
        ("region_id,store_id,leader\n7,1,1\n7,2,1\n8,2,1\n8,1,1\n", [0, 1], []),
        ("region_id,store_id,leader\n7,1,*\n7,2,-\n8,1,-\n8,2,-\n", [0, -1], []),
        ("region_id,store_id,leader\n7,1,1\n7,2,1\n8,1,9\n8,2,9\n", [0, -1], []),
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
    ("cell", "nodes"), [("1,2,3", ["1", "2", "3"]), ("{2;3}", ["2", "3"]), (HBASE, [HBASE]),
     ("[(a-1, 0), (b, 11)]", ["a-1", "b"]), ("(2,3)", ["2", "3"]),
     ("[[a, 0], ['b', 1]]", ["a", "b"])],
)  # fmt: skip
def test_a_cell_may_list_several_nodes(cell, nodes):
    cluster = ek.read(f'region_id,server_name\n7,"{cell}"\n'.encode())
    assert [*cluster.nodes.names] == nodes
    assert cluster.placement.node.tolist() == [*range(len(nodes))]


def test_columns_that_are_of_nodes_only_beside_others():
    rows = 'keyspace_name,table_name,last_token,replicas\na,t,-5,"[(1, 0), (2, 3)]"\n'
    two = ek.read([NODES, (rows + rows.split("\n")[1].replace("a,t", "b,t") + "\n").encode()])
    assert [*two.partitions.names] == ["a.t--5", "b.t--5"]
    assert two.placement.nodes.tolist() == [[0, 1], [0, 1]]
    with pytest.raises(ek.InvalidInput, match="without the columns"):
        ek.read(rows.replace("last_token", "shard").encode())
    with pytest.raises(ek.InvalidInput, match="without the columns"):
        ek.read([NODES, b"content,hostname\nhello,2\n"])


def test_rows_with_a_cursor_to_others_are_refused():
    columns = b'{"columns": [{"name": "partition"}, {"name": "node"}], "rows": [["p", "1"]]'
    assert [*ek.read(columns + b"}").partitions.names] == ["p"]
    with pytest.raises(ek.InvalidInput, match="next page of rows, which are not here"):
        ek.read(columns + b', "cursor": "sDXF1ZXJ5"}')


def test_sizes_that_differ_between_replicas_are_refused_with_what_to_give():
    rows = b"partition,node,load_x\np,1,5\np,2,6\n"
    with pytest.raises(ek.InvalidInput, match="of the same partition: give both one"):
        ek.read([NODES, rows])


def test_segments_of_greenplum_but_for_the_coordinator():
    rows = b"content,hostname,role,preferred_role\n-1,9,p,p\n0,1,m,p\n0,2,p,m\n"
    cluster = ek.read([NODES, rows])
    assert [*cluster.nodes.names] == ["1", "2", "3"]
    assert cluster.placement.leader.tolist() == [1]
    assert cluster.native[reading.UNREAD] == [
        "rows of the coordinator (content -1)",
        "preferred_role",
    ]


@pytest.mark.parametrize(
    ("text", "names", "nodes", "leaders", "unread"),
    [
        ("partition,node,leader\np,1,1\np,2,0\nq,3,0\nq,2,1\n", "p q", [[0, 1], [2, 1]], [0, 1],
         []),
        ("partition,node,leader\np,1,2\np,2,2\n", "p", [[0, 1]], [1], []),
        ("partition,replica,node,offset\np,0,1,7\np,1,2,8\n", "p", [[0, 1]], [0],
         ["replica", "offset"]),
        ("topic,partition,broker,leader\nt,0,1,y\nt,0,2,n\nu,0,2,n\nu,0,3,y\n", "t-0 u-0",
         [[0, 1], [1, 2]], [0, 1], []),
        ("db,shard,host,primary\nd,0,1,f\nd,0,2,t\n", "d-0", [[0, 1]], [1], []),
        ("shard,host,is_leader\ns,1,false\ns,2,true\n", "s", [[0, 1]], [1], []),
        ("partition,replica_1,replica_10,replica_2\np,3,1,2\n", "p", [[2, 1, 0]], [0], []),
        ("partition,secondary,primary\np,1,2\nq,3,NULL\n", "p q", [[1, 0], [2, -1]], [0, -1], []),
        ("partition,secondary,primary\np,1,2\nq,-,3\n", "p q", [[1, 0], [2, -1]], [0, 0], []),
        ("| Shard | Primary | Replica |\n|---|---|---|\n| 0 | 1 | 2 |\n| 1 | 2 | 3 |\n", "0 1",
         [[0, 1], [1, 2]], [0, 0], []),
        ('shard,leader,followers\n0,1,"2,3"\n1,2,3\n', "0 1", [[0, 1, 2], [1, 2, -1]], [0, 0], []),
        ('shard,leader,replicas\n0,1,"2,1"\n1,2,"2,3"\n', "0 1", [[1, 0], [1, 2]], [1, 0], []),
        ("topic,partition,replica,leader\nt,0,1,2\nt,0,2,2\n", "0", [[0, 1]], [1], []),
        ("shard_id,host,role\ns,1,slave\ns,2,master\n", "s", [[0, 1]], [1], []),
        ("shard,node,prirep\n0,1,r\n0,2,p\n", "0", [[0, 1]], [1], []),
        ('Shard,Primary Node,Replica Nodes\n0,3,"1,2"\n', "0", [[2, 0, 1]], [0], []),
        ("partition,node,leader_node\np,1,2\np,2,2\n", "p", [[0, 1]], [1], []),
        ("PartitionId,NodeName,ReplicaRole\np,1,ActiveSecondary\np,2,Primary\n", "p", [[0, 1]],
         [1], []),
        ("PartitionId,ReplicaRole,ReplicaStatus,NodeName\np,Primary,Ready,1\n"
         "p,ActiveSecondary,Down,2\nq,Primary,Ready,2\n", "p q", [[0, -1], [1, -1]], [0, 0], []),
        ("partitionId,replica_0,replica_1\n0,1,2\n", "0", [[0, 1]], [0], []),
        ("pidx  ballot  primary  secondaries\n0     3       1        [2,3]\n", "0", [[0, 1, 2]],
         [0], ["ballot"]),
        ("| Name | Region Server | Locality |\n|---|---|---|\n| r,1 | 2 | 1.0 |\n", "r,1", [[1]],
         [-1], ["Locality"]),
    ],
)  # fmt: skip
def test_tables_as_people_keep_them(text, names, nodes, leaders, unread):
    cluster = ek.read([NODES, text.encode()])
    assert [*cluster.partitions.names] == names.split()
    assert cluster.placement.nodes.tolist() == nodes
    assert cluster.placement.leader.tolist() == leaders
    assert cluster.native.get(reading.UNREAD, []) == unread


@pytest.mark.parametrize(
    ("nodes", "rows", "dimensions", "load"),
    [
        ("node,zone\n1,a\n2,b\n", "partition,node,size\np,1,5GB\nq,2,1GB\n", ["size"], [5e9, 1e9]),
        ("node,cap_size\n1,9\n2,9\n", "partition,node,size\np,1,5\nq,2,1\n", ["size"], [5, 1]),
        ("node,cap_x\n1,9\n2,9\n", "partition,node,load\np,1,5\nq,2,1\n", ["x"], [0, 0]),
        ("node,zone\n1,a\n2,b\n", "tenant,host,bytes\np,1,5\nq,2,1\n", ["bytes"], [5, 1]),
    ],
)  # fmt: skip
def test_sizes_without_a_dimension(nodes, rows, dimensions, load):
    cluster = ek.read([nodes.encode(), rows.encode()])
    assert [*cluster.dimensions] == dimensions
    assert cluster.partitions.load.voter[:, 0].tolist() == load


@pytest.mark.parametrize(
    ("nodes", "rows", "moved"),
    [
        (b"node,zone\n1,a\n2,b\n", b"partition,node,size\np,1,5GB\nq,2,1GiB\n", "size"),
        (b"node,cap_x\n1,2TB\n2,2TB\n", b"partition,node,load_x\np,1,5\n", "x"),
        (b"node,cap_x\n1,2T\n2,2T\n", b"partition,node,load_x\np,1,5\n", None),
        (b"node,cap_x,cap_y\n1,2TB,1GB\n2,2TB,1GB\n", b"partition,node,load_x\np,1,5\n", None),
    ],
)
def test_a_dimension_of_which_cells_are_in_bytes_is_what_moves(nodes, rows, moved):
    cluster = ek.read([nodes, rows])
    found = cluster.bytes_dimension
    assert (cluster.dimensions[found] if found >= 0 else None) == moved
    stated = ek.read([nodes, rows, f'bytes = "{cluster.dimensions[0]}"\n'.encode()])
    assert stated.bytes_dimension == 0


def test_frames_as_people_keep_them():
    nodes = pd.DataFrame({"node": ["1", "2", "3"], "zone": [*"abc"]})
    rows = pd.DataFrame(
        {"partition": ["p", "p"], "node": ["1", "2"], "leader": [False, True], "size": [5, 5]}
    )
    cluster = ek.Cluster.from_frames(nodes, rows)
    assert (cluster.placement.leader.tolist(), [*cluster.dimensions]) == ([1], ["size"])
    wide = pd.DataFrame({"partition": [0], "replica_1": ["3"], "replica_2": ["1"]})
    assert ek.Cluster.from_frames(nodes, wide).placement.nodes.tolist() == [[2, 0]]


SIZED = b"partition,node,size\np,1,5\np,2,5\n"


@pytest.mark.parametrize(
    ("nodes", "rows", "capacity", "unread"),
    [
        ("node,zone,capacity\n1,a,10\n2,b,20\n", SIZED, [[10], [20]], []),
        ("host,rack,disk_gb\n1,a,10\n2,b,20\n", SIZED.replace(b"size", b"size_gb"),
         [[10], [20]], []),
        ("host,rack,disk_gb\n1,a,10\n2,b,20\n", SIZED, [[10], [10]], ["disk_gb"]),
        ("node,total,used,free\n1,10,5,5\n2,20,5,15\n", SIZED, [[10], [20]], ["used", "free"]),
        ("name,cpu,memory\n1,4,10\n2,8,20\n",
         b"partition,node,size_memory,load_cpu\np,1,5,1\np,2,5,1\n", [[10, 4], [20, 8]], []),
        ("node,capacity,storage\n1,10,4\n2,20,4\n", SIZED, [[10], [10]],
         ["capacity", "storage"]),
        ("broker,rack\n1,a\n2,b\n", SIZED, [[10], [10]], []),
        ("host,zone\n1,a\n2,b\n", SIZED, [[10], [10]], []),
        ("host,max_replicas\n1,2\n2,2\n", SIZED, [[10], [10]], []),
        ("host,state\n1,up\n2,cordoned\n", SIZED, [[10], [10]], []),
        ("zone,server,tags,cap_size\na,1,ssd,7\nb,2,,8\n", SIZED, [[7], [8]], []),
        (",host,zone\n0,1,a\n1,2,b\n", SIZED, [[10], [10]], []),
        ("node,cap_size,,\n1,10,,\n2,20,,\n", SIZED.replace(b"\n", b",,\n"), [[10], [20]], []),
        ("host,disk_used_gb\n1,4\n2,3\n", SIZED.replace(b"size", b"size_gb"), [[10], [10]],
         ["disk_used_gb"]),
        ("host,memory\n1,64\n2,64\n", SIZED.replace(b"size", b"load_cpu"), [[10], [10]],
         ["memory"]),
        ("host,max_connections\n1,64\n2,64\n", SIZED, [[10], [10]], ["max_connections"]),
        ("host,vcpus,mem_gb\n1,8,64\n2,8,32\n", b"vm,host,mem_gb,vcpus,os\np,1,16,2,x\n",
         [[64, 8], [32, 8]], ["os"]),
        ("host,cpu\n1,8%\n2,9%\n", b"vm,host,cpu\np,1,3%\n", [[1], [1]], ["cpu"]),
    ],
)  # fmt: skip
def test_tables_of_nodes_as_people_keep_them(nodes, rows, capacity, unread):
    cluster = ek.read([nodes.encode(), rows])
    assert [*cluster.nodes.names] == ["1", "2"]
    assert cluster.nodes.capacity.tolist() == capacity
    assert cluster.native.get(reading.UNREAD, []) == unread


def test_a_status_that_says_what_a_state_does():
    cluster = ek.read([b"node,zone,status\n1,a,up\n2,b,Down\n", SIZED])
    assert cluster.nodes.alive.tolist() == [True, False]
    lost = ek.read([b"node,zone,status\n1,a,ONLINE\n2,b,OFFLINE\n", SIZED])
    assert lost.nodes.alive.tolist() == [True, False]
    left = ek.read([b"node,zone,status\n1,a,Normal\n2,b,Leaving\n", SIZED])
    assert left.nodes.alive.all() and left.nodes.keeps.tolist() == [True, False]
    kept = ek.read([b"NodeID,Status,Port\n1,Running,6667\n2,ReadOnly,6668\n3,Removing,6669\n",
                    b"RegionId,DataNodeId\n7,2\n7,3\n"])  # fmt: skip
    assert kept.nodes.accepts.tolist() == [True, False, False]
    assert kept.nodes.keeps.tolist() == [True, True, False]
    with pytest.raises(ek.InvalidInput, match="maintenance"):
        ek.read([b"node,zone,status\n1,a,maintenance\n2,b,down\n", SIZED])
    odd = ek.read([b"node,zone,status\n1,a,ok\n2,b,ok\n", SIZED])
    assert odd.native[reading.UNREAD] == ["status"]


@pytest.mark.parametrize("state", ["Unknown", "disconnected", "initializing"])
def test_nodes_that_are_not_heard_of_keep_what_they_hold(state):
    cluster = ek.read([f"node,zone,status\n1,a,ready\n2,b,{state}\n".encode(), SIZED])
    assert cluster.nodes.alive.all() and cluster.nodes.keeps.all()
    assert cluster.nodes.accepts.tolist() == [True, False]
    assert any(
        note.startswith("not heard of by their status: 2:") for note in reading.left_out(cluster)
    )


def test_a_node_that_joined_again_counts_once():
    joined = b"node,zone,status\n1,a,down\n1,a,ready\n2,b,down\n2,b,down\n1,a,down\n"
    cluster = ek.read([joined, SIZED])
    assert [*cluster.nodes.names] == ["1", "2"]
    assert cluster.nodes.alive.tolist() == [True, False]
    assert "several nodes that are called 1, 2:" in "".join(reading.left_out(cluster))
    with pytest.raises(ek.InvalidInput, match="is already given"):
        ek.read([joined + b"1,a,ready\n", SIZED])


ANSWERED = '{"cols": ["shard_id", "host"], "rows": [[0, "a"], [1, "b"]]'
REGIONS = '{"count": %d, "regions": [{"id": 7, "peers": [{"store_id": 1}, {"store_id": 2}]}]}'
DRAWN = " shard_id | host \n----------+------\n 0        | a\n 1        | b\n(%d rows)\n"


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (f'{ANSWERED}, "rowcount": 2}}', False), (f'{ANSWERED}, "rowcount": 3}}', True),
        (f'{ANSWERED}, "rowcount": -1}}', False),
        (ANSWERED.replace("rows", "data") + ', "rows": 5}', True),
        (ANSWERED.replace("rows", "data") + ', "rows": 2, "exception": "Code: 159"}', True),
        (REGIONS % 1, False), (REGIONS % 2, True),
        (DRAWN % 2, False), (DRAWN % 3, True), (DRAWN % 3 + "\n=>\n", True),
        (DRAWN.replace("(%d rows)", "3 rows in set (0.01 sec)"), True),
        ("shard_id\thost\n0\ta\n1\tb\n", False),
    ],
)  # fmt: skip
def test_a_note_on_tables_that_say_they_are_longer(text, cut):
    cluster = ek.read(text.encode())
    assert any("rows that were left out" in note for note in reading.left_out(cluster)) == cut


TASKS = """ID    NAME   IMAGE  NODE  DESIRED STATE  CURRENT STATE  ERROR
x1    web.1  nginx  a     Running        Running 2 h
x2    web.2  nginx  b     Running        Running 2 h
x3    web.3  nginx        Running        Pending 2 h
"""


def test_tasks_are_grouped_by_their_service_and_come_back(tmp_path):
    cluster = ek.read(TASKS.replace("web.2", "s_b.2").encode())
    assert [*cluster.partitions.group_names] == ["web", "s_b"]
    files = ek.write(cluster, tmp_path / "tasks.csv")
    again = ek.read(*files)
    assert [*again.partitions.group_names] == ["web", "s_b"]
    assert [*again.partitions.names] == [*cluster.partitions.names]
    assert again.placement.node.tolist() == cluster.placement.node.tolist()


@pytest.mark.parametrize(
    ("header", "column", "noted"),
    [("shard,host", "", ["c"]), ("partition,node", "", ["c"]),
     ("partition,node,replicas", ",2", []), ("partition,node,replicas", ",3", [])],
)  # fmt: skip
def test_a_note_on_partitions_that_list_fewer_replicas_than_others(header, column, noted):
    rows = [f"{p},{n}{column}\n" for p, held in (("a", "123"), ("b", "231"), ("c", "12"))
            for n in held]  # fmt: skip
    text = f"{header}\n" + "".join(rows)
    notes = [one for one in reading.left_out(ek.read(text.encode())) if "fewer replicas" in one]
    assert [one.split()[3] for one in notes] == noted


@pytest.mark.parametrize("orient", ["records", "split", "index", "columns", "table"])
@pytest.mark.parametrize("title", ["partition", "shard"])
@pytest.mark.parametrize("place", ["node", "host"])
def test_each_form_of_json_with_titles_that_pandas_writes(orient, title, place):
    nodes = pd.DataFrame({place: ["a", "b"], "zone": ["x", "y"]})
    rows = pd.DataFrame({title: [7, 7, 8], place: ["b", "a", "b"]})
    files = [frame.to_json(orient=orient).encode() for frame in (nodes, rows)]
    for cluster in (ek.read(files), ek.Cluster.from_frames(nodes, rows)):
        assert cluster.placement.node.tolist() == [1, 0, 1]
        assert ([*cluster.nodes.names], [*cluster.partitions.names]) == (["a", "b"], ["7", "8"])
        assert cluster.topology.tiers == ("zone",)


def test_a_last_line_that_is_cut_is_no_row():
    assert ek.read(TASKS.encode()).placement.node.tolist() == [0, 1, -1]
    for length in (21, 15, 3):
        with pytest.raises(ek.InvalidInput, match=r":4: has \d cells?, the header 7"):
            ek.read(TASKS[: TASKS.index("x3") + length].encode())
    assert len(ek.read(TASKS[: TASKS.index("x2")].encode()).partitions) == 1
    healthy = ek.read((TASKS[: TASKS.index("x3") + 21] + "\n").encode())
    assert len(healthy.partitions) == 3, "the last line ends, and its cells are empty"
    indented = ek.read(b"  NAME   NODE  DESIRED STATE\n  web.1  a     Running\nx\n")
    assert [*indented.partitions.names] == ["web.1"]
    with pytest.raises(ek.InvalidInput, match="do not begin below their titles"):
        ek.read(TASKS.replace("nginx", "ng").encode())
    titles = "collection  shard  replica  node_name  state\n"
    of_solr = f"{titles}c1          s1     r1       h1:8983    up\n"
    with pytest.raises(ek.InvalidInput) as refused:
        ek.read(of_solr.encode())
    assert "below their titles" not in str(refused.value), "each begins below its own"


@pytest.mark.parametrize(
    "above",
    [
        "", "$ docker service ps web\n", "[root@node-1 ~]# docker service ps web\n\n",
        "ID = web\nDatacenters = dc1, dc2\n\nSummary\nTask Group  Queued  Lost\nweb  0  0\n\n"
        "Allocations\n",
    ],
)  # fmt: skip
def test_what_stands_above_a_table_that_blanks_part(above):
    tasks = (
        "NAME   NODE    DESIRED STATE\nweb.1  node-1  Running\nweb.2  host    Running\n"
        "web.3          Running\n"
    )
    nodes = ek.read((above + tasks).encode()).nodes
    assert {*nodes.names} == {"node-1", "host"}


@pytest.mark.parametrize("status", ["Drain  Status", "Drain  Eligibility  Status"])
def test_clients_of_a_nomad_without_pools(status):
    row = "  ".join(f"{cell:11}" for cell in {"Drain": "true", "Status": "ready"}.values())
    if "Elig" in status:
        row = f"{'true':11}  {'eligible':11}  ready"
    titles = "  ".join(f"{title:11}" for title in status.split("  "))
    text = f"ID  DC   Name  Class   {titles}\n1   dc1  c1    <none>  {row}\n"
    allocs = "ID  Eval ID  Node ID  Task Group  Desired  Status\n7   9        1        web         "
    cluster = ek.read([text.encode(), f"{allocs}run      running\n".encode()])
    assert (cluster.nodes.alive[0], cluster.nodes.keeps[0]) == (True, False)


def test_marks_of_nodes_beside_a_status_of_something_else():
    rows = b"1,true,false,{}\n2,true,true,{}\n3,false,false,{}\n"
    nodes = b"BackendId,Alive,SystemDecommissioned,Status\n" + rows
    cluster = ek.read([nodes, b"tabletid,backendid\n7,1\n7,2\n8,3\n"])
    assert cluster.nodes.alive.tolist() == [True, True, False]
    assert cluster.nodes.keeps.tolist() == [True, False, False]
    assert cluster.native[reading.UNREAD] == ["Status"]


@pytest.mark.parametrize("drawn", [True, False])
def test_a_node_that_an_object_tells_more_of(drawn):
    held = [
        ("TRUE", 0, {"id": "x", "name": "a"}), ("FALSE", 0, {"id": "y", "name": "b"}),
        ("TRUE", 1, {"id": "y", "name": "b"}), ("FALSE", 1, {"id": None, "name": None}),
    ]  # fmt: skip
    rows = [["t", shard, first, node] for first, shard, node in held]
    titles = ["table_name", "id", "primary", "node"]
    text = json.dumps({"cols": titles, "rows": rows, "rowcount": 4})
    if drawn:
        cells = [[*map(str, row[:3]), json.dumps(row[3])] for row in rows]
        text = "".join(f"| {' | '.join(row)} |\n" for row in (titles, ["-"] * 4, *cells))
    cluster = ek.read(text.encode())
    assert [*cluster.nodes.names] == ["a", "b"]
    assert cluster.placement.nodes.tolist() == [[0, 1], [1, -1]]


@pytest.mark.parametrize("above", ["", "Starting component `ctl`: pd region 7\n"])
def test_one_region_of_pd(above):
    region = '{"id": 7, "start_key": "", "peers": [{"store_id": 2}, {"store_id": 3}],'
    cluster = ek.read([NODES, f'{above}{region} "leader": {{"store_id": 3}}}}\n'.encode()])
    assert [*cluster.partitions.names] == ["7"]
    assert cluster.placement.nodes.tolist() == [[1, 2]] and cluster.placement.leader.tolist() == [1]


def test_resources_of_proxmox_as_its_api_answers():
    rows = [
        {"type": "node", "node": "a", "status": "online", "maxmem": 8},
        {"type": "node", "node": "b", "status": "unknown"},
        {"type": "qemu", "vmid": 7, "node": "b", "status": "unknown", "maxmem": 2},
    ]
    cluster = ek.read(json.dumps({"data": rows}).encode())
    assert cluster.nodes.accepts.tolist() == [True, False] and cluster.nodes.keeps.all()
    assert [*cluster.partitions.names] == ["7"]


def test_placements_of_citus_that_are_to_be_deleted():
    rows = b"shardid,shardstate,nodename,nodeport\n7,1,a,1\n7,4,b,1\n8,1,b,1\n"
    assert ek.read(rows).placement.nodes.tolist() in ([[0], [1]], [[1], [0]])


def test_a_machine_that_was_shelved_has_no_host():
    rows = b"Name,Status,Host\nvm1,ACTIVE,1\nvm2,SHELVED_OFFLOADED,None\nvm3,ERROR,None\n"
    cluster = ek.read([NODES, rows.replace(b"Name", b"vm_name")])
    assert [*cluster.partitions.names] == ["vm1", "vm3"]
    assert "rows of machines that have no host" in cluster.native[reading.UNREAD]


def test_tasks_of_docker_as_json():
    nodes = [{"Hostname": "a", "Status": "Ready", "Availability": "Drain"},
             {"Hostname": "b", "Status": "Ready", "Availability": "Active"}]  # fmt: skip
    tasks = [{"ID": str(i), "Name": f"web.{i % 2}", "Node": "a", "DesiredState": state}
             for i, state in enumerate(("Running", "Running", "Shutdown"))]  # fmt: skip
    texts = ["".join(f"{json.dumps(row)}\n" for row in rows).encode() for rows in (nodes, tasks)]
    cluster = ek.read(texts)
    assert [*cluster.partitions.names] == ["web.0", "web.1"]
    assert [*cluster.partitions.group_names] == ["web"]
    assert cluster.nodes.keeps.tolist() == [False, True]
    with pytest.raises(ek.InvalidInput, match="prints with -json"):
        ek.read([NODES, b'[{"ID": "7", "ClientStatus": "running", "TaskStates": {}}]'])


def test_a_shard_or_region_without_replicas_is_not_placed():
    shards = (
        '"s1": {"replicas": {"r": {"node_name": "a", "leader": "true"}}}, "s2": {"replicas": {}}'
    )
    split = '"s3": {"state": "inactive", "replicas": {}}'
    solr = f'{{"cluster": {{"collections": {{"c": {{"shards": {{{shards}, {split}}}}}}}}}}}'
    cluster = ek.read(solr.encode())
    assert [*cluster.partitions.names] == ["c-s1", "c-s2"]
    assert cluster.placement.node.tolist() == [0, -1]
    regions = REGIONS.replace("]}]", ']}, {"id": 8, "peers": []}]') % 2
    assert ek.read(regions.encode()).placement.node.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("text", "nodes", "leaders"),
    [
        ('{"p":["1","2"],"q":["2"]}', [[0, 1], [1, -1]], [0, 0]),
        ('[{"partition":"p","replicas":[3,1]},{"partition":"q","replicas":[2]}]',
         [[2, 0], [1, -1]], [0, 0]),
        ('[{"shard":"p","primary":"3","replicas":["1"]},{"shard":"q","primary":"2","replicas":[]}]',
         [[2, 0], [1, -1]], [0, 0]),
        ('{"partitions":[{"id":"p","replicas":["3","1"],"leader":"1"},'
         '{"id":"q","replicas":["2"],"leader":"2"}]}', [[2, 0], [1, -1]], [1, 0]),
        ('{"shards":[{"name":"p","nodes":["3","1"]},{"name":"q","nodes":["2"]}]}',
         [[2, 0], [1, -1]], [0, 0]),
        ('{"shard":["p","q"],"host":["3","2"]}', [[2], [1]], [-1, -1]),
        ('[{"shard":"p","leader":"3","replicas":null},{"shard":"q","leader":"2",'
         '"replicas":["1","2"]}]', [[2, -1], [0, 1]], [0, 1]),
        ('[{"partition":"p","nodes":["3",null]},{"partition":"q","nodes":["2","1"]}]',
         [[2, -1], [1, 0]], [0, 0]),
        ('[{"shard":"p","leader":"3","followers":["1"]},{"shard":"q","leader":"2","followers":[]}]',
         [[2, 0], [1, -1]], [0, 0]),
    ],
)  # fmt: skip
def test_json_as_people_keep_it(text, nodes, leaders):
    cluster = ek.read([NODES, text.encode()])
    assert [*cluster.partitions.names] == ["p", "q"]
    assert cluster.placement.nodes.tolist() == nodes
    assert cluster.placement.leader.tolist() == leaders


@pytest.mark.parametrize(
    ("texts", "names", "nodes"),
    [
        (['{"n1":["s1","s2"],"n2":["s1"],"n3":[]}'], "n1 n2 n3", [[0, 1], [0, -1]]),
        (['{"h1:9042":["s1"],"h2:9042":["s1","s2"]}'], "h1:9042 h2:9042",
         [[0, 1], [1, -1]]),
        (["node,cap_x\na,1\nb,1\nc,1\n", '{"a":["s1","s2"],"b":["s1"]}'], "a b c",
         [[0, 1], [0, -1]]),
        (["node,cap_x\nn1,1\nn2,1\n", '{"n1":["s1","s2"],"n2":["s1"]}'], "n1 n2",
         [[0, 1], [0, -1]]),
    ],
)  # fmt: skip
def test_json_that_lists_what_each_node_has(texts, names, nodes):
    cluster = ek.read([text.encode() for text in texts])
    assert [*cluster.nodes.names] == names.split()
    assert [*cluster.partitions.names] == ["s1", "s2"]
    assert cluster.placement.nodes.tolist() == nodes
    assert cluster.placement.leader.tolist() == [-1, -1]


def test_a_note_names_the_nodes_that_have_lists():
    cluster = ek.read(b'{"n1":["s1","s2"],"n2":["s2"],"n3":[]}')
    assert "on count, n1, n2, n3, all alive" in " ".join(reading.left_out(cluster))
    topics = ek.read(b'{"orders:10":[1,2],"orders:11":[2,1]}')
    assert [*topics.partitions.names] == ["orders:10", "orders:11"]


REPLICAS = "shard,node,{}\n0,1,{}\n0,2,{}\n1,1,{}\n1,2,{}\n"


@pytest.mark.parametrize(
    ("column", "states", "nodes", "alive"),
    [
        ("status", "u u d u", [[0, 1], [-1, 1]], [1, 1]),
        ("STATUS", "NORMAL DOWN PENDING DOWN", [[0, 1], [0, 1]], [1, 0]),
        ("is_bad", "false false true false", [[0, 1], [-1, 1]], [1, 1]),
        ("routing_state", "STARTED UNASSIGNED STARTED STARTED", [[0, -1], [0, 1]], [1, 1]),
        ("state", "active recovery_failed odd active", [[0, -1], [0, 1]], [1, 1]),
        ("state", "STARTED RELOCATING STARTED STARTED", [[0, 1], [0, 1]], [1, 1]),
        ("state", "SERVING NOT_SERVING SERVING SERVING", [[0, -1], [0, 1]], [1, 1]),
    ],
)
def test_replicas_out_of_service_count_as_lost(column, states, nodes, alive):
    cluster = ek.read(REPLICAS.format(column, *states.split()).encode())
    assert cluster.placement.nodes.tolist() == nodes
    assert cluster.nodes.alive.tolist() == [bool(one) for one in alive]
    notes = " ".join(reading.left_out(cluster))
    words = ("d", "down", "true", "unassigned", "recovery_failed", "not_serving")
    lost = sum(map(states.lower().split().count, words))
    assert ("out of service by" in notes) == bool(lost)
    assert "nothing that is read" not in notes


def test_states_of_nodes_say_whether_one_without_live_replicas_is_down():
    rows = REPLICAS.format("status", *"udud").encode()
    cluster = ek.read([b"node,state\n1,up\n2,up\n", rows])
    assert cluster.nodes.alive.all()
    assert cluster.placement.nodes.tolist() == [[0, -1], [0, -1]]


def test_states_of_machines_and_in_other_words_are_not_read():
    lists = 'partition,nodes,status\np,"1,2",down\nq,"2,1",ok\n'
    for text in ("vm,host,status\na,1,error\nb,2,down\n", REPLICAS.format("state", *"aced"), lists):
        cluster = ek.read(text.encode())
        assert (cluster.placement.node >= 0).all() and cluster.nodes.alive.all()
        assert len(cluster.native[reading.UNREAD]) == 1


@pytest.mark.parametrize(
    ("texts", "names", "partitions", "unread"),
    [
        (["id,name,cap_size\n1,a,9\n2,b,9\n", "partition,node,size\np,a,1\nq,b,1\n"], "a b",
         "p q", ["id"]),
        (["id,name,cap_size\n1,a,9\n2,b,9\n", "partition,node,size\np,1,1\nq,2,1\n"], "1 2",
         "p q", ["name"]),
        (["node,id,cap_size\n1,a,9\n2,b,9\n", "partition,node,size\np,a,1\nq,b,1\n"], "a b",
         "p q", ["node"]),
        (["zone,host,port\nx,h,1\ny,h,2\n", "shard,leader,peers\n0,h:1,\"h:1, h:2\"\n"],
         "h:1 h:2", "0", []),
        (["id,node,size\np,a,1\nq,a,1\n"], "a", "p q", []),
        (["host,memory\na,9\nb,9\n", "id,name,host,memory\n7,v,a,1\n8,w,a,1\n"], "a b", "v w",
         ["id"]),
        (["table_name,id,node['name'],primary\nt,0,a,t\nt,0,b,f\n"], "a b", "t-0", []),
        (["db,table,shard,node\nd,t,0,a\nd,u,0,b\n"], "a b", "t-0 u-0", ["db"]),
        (["schema,table,shard,node\nd,t,0,a\ne,t,0,b\n"], "a b", "d.t-0 e.t-0", []),
        (["chunk,shard\nc0,a\nc1,b\n"], "a b", "c0 c1", []),
        (["block_id,datanode\n7,a\n7,b\n"], "a b", "7", []),
        (["Partition ID,Leader,Peers\n1,a,\"b, a\"\n"], "b a", "1", []),
    ],
)  # fmt: skip
def test_names_of_nodes_and_partitions_among_others(texts, names, partitions, unread):
    cluster = ek.read([text.encode() for text in texts])
    assert [*cluster.nodes.names] == names.split()
    assert [*cluster.partitions.names] == partitions.split()
    assert cluster.nodes.alive.all() and (cluster.placement.node >= 0).all()
    assert cluster.native.get(reading.UNREAD, []) == unread


def test_ids_of_rows_are_no_partitions():
    rows = "topic,id,broker,role\nt,{},1,leader\nt,{},2,leader\n"
    assert len(ek.read(rows.format(0, 1).encode()).partitions) == 2
    with pytest.raises(ek.InvalidInput, match="another id in each row"):
        ek.read(rows.format(7, 8).encode())


def test_a_store_of_tidb_that_is_offline_still_has_its_data():
    stores = b"STORE_ID,STORE_STATE_NAME\n1,Up\n2,Offline\n3,Down\n4,Disconnected\n"
    cluster = ek.read([stores, b"region_id,store_id\n7,1\n7,2\n8,3\n"])
    assert cluster.nodes.alive.tolist() == [True, True, False, True]
    assert cluster.nodes.keeps.tolist() == [True, False, False, True]
    assert cluster.nodes.accepts.tolist() == [True, False, False, False]


def test_columns_that_blanks_part_under_a_title():
    text = "Shards\n====\nID  Data base  Owners\n0              a\n1   x          [{4 b} {5 a}]\n"
    cluster = ek.read(text.replace("Data base", "database ").encode())
    assert [*cluster.partitions.names] == ["-0", "x-1"]
    assert cluster.placement.nodes.tolist() == [[0, -1], [1, 0]]
    with pytest.raises(ek.InvalidInput, match="without the columns"):
        ek.read(text.encode())
    assert len(ek.read(b"shard  host\n0      a\n0      b\n").nodes) == 2


def test_backends_that_are_not_alive_or_leave():
    nodes = b"BackendId,IP,Alive,Decommissioned\n1,x,true,false\n2,x,false,false\n3,x,true,true\n"
    cluster = ek.read([nodes, b"tabletid,backendid\n7,1\n7,2\n8,1\n"])
    assert cluster.nodes.alive.tolist() == [True, False, True]
    assert cluster.nodes.keeps.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("partition,node,is_leader\np,1,no\np,2,maybe\n", "is_leader: is neither.*maybe"),
        ("partition,node,leader\np,a:90,a\np,b:90,a\n", "leader: is neither"),
        ("shard,primary,replica\n0,true,1\n0,false,2\n", "primary: names no node"),
        ("shard,primary,replicas\n0,n1,3\n1,n2,3\n", "replicas: names no node"),
        ("shard,node1,node2,node3\n0,P,R,\n1,,P,R\n", "node1: names no node"),
        ("shard,node1,node2\n0,x,x\n1,,x\n", "node2: names no node"),
        ('{"latency_ms":[10,20,30],"errors":[0,1,0]}', "is not in a known format"),
    ],
)
def test_cells_that_are_neither_marks_nor_nodes_are_refused(text, what):
    with pytest.raises(ek.InvalidInput, match=what):
        ek.read(text.encode())


def test_a_row_of_totals_is_no_host():
    hosts = b"host,port,status\nh,1,online\nh,2,offline\nTotal,,\n"
    cluster = ek.read([hosts, b'shard,leader,peers\n0,h:1,"h:1, h:2"\n'])
    assert [*cluster.nodes.names] == ["h:1", "h:2"]
    assert cluster.nodes.alive.tolist() == [True, False]
    assert "the row Total" in cluster.native[reading.UNREAD]


def test_two_columns_that_lead_are_no_two_replicas():
    with pytest.raises(ek.InvalidInput, match="without the columns"):
        ek.read(b"shard,leader_node,leader_host\n0,1,10.0.0.1\n")
    odd = ek.read([b"host,alive,memory\na,5m,9\nb,7m,9\n", b"shard,host\n0,a\n1,b\n"])
    assert odd.nodes.alive.all() and "alive" in odd.native[reading.UNREAD]


def test_a_note_names_the_nodes_where_no_table_does():
    cluster = ek.read(b'{"s1":["db1","db2"],"s2":["db2"]}')
    assert "that replicas are on count, db1, db2, all alive" in " ".join(reading.left_out(cluster))


def test_a_table_without_rows_has_no_leaders():
    assert len(ek.read([NODES, b"partition,node,leader\n"]).partitions) == 0


def test_a_total_below_the_replicas_is_none():
    with pytest.raises(ek.InvalidInput, match="total of the rows above"):
        ek.read([NODES, b"vm,host,size_x\nv,1,4\nw,2,8\nTotal,,12\n"])


@pytest.mark.parametrize(("sizes", "noted"), [("10 GB,5", 1), ("10 GB,0", 0), ("10 GB,5 GB", 0)])
def test_a_note_on_sizes_of_which_some_have_units(sizes, noted):
    rows = "\n".join(f"p{i},n{i},{cell}" for i, cell in enumerate(sizes.split(",")))
    cluster = ek.read(f"shard,node,size_gb\n{rows}\n".encode())
    assert " ".join(reading.left_out(cluster)).count("no units in cells of size_gb") == noted
