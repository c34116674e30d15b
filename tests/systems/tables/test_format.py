"""The bare minimum: nodes and replicas in tables, rules in TOML."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import InvalidInput
from evenkeel.model.placement import Flag, Role
from evenkeel.model.rules import Rule
from evenkeel.systems import registry
from tests.support import places
from tests.support.clusters import assert_same

DATA = places.DATA / "formats" / "tables"
NODES, REPLICAS, RULES = (DATA / name for name in ("nodes.csv", "replicas.csv", "rules.toml"))
SMALL = b"node,zone,cap_cpu\na,x,9\nb,y,9\n"
PLACED = b"partition,node\np,a\np,b\n"


def faults_of(*sources):
    with pytest.raises(InvalidInput) as caught:
        registry.read(*sources, format="tables")
    return [(fault.path, fault.value) for fault in caught.value.faults]


@pytest.fixture(scope="module")
def cluster():
    return registry.read(NODES, REPLICAS, RULES)


class TestReading:
    def test_nodes(self, cluster):
        nodes = cluster.nodes
        assert list(nodes.names) == ["n1", "n2", "n3", "n4", "n5", "n6"]
        assert cluster.topology.tiers == ("zone", "rack")
        assert cluster.dimensions == ("cpu", "Disk")
        assert nodes.capacity[:, 1].tolist() == [2e12, 2e12, 1.5e12, 2e12, np.inf, 2e12]
        assert nodes.alive.tolist() == [True] * 5 + [False]
        assert nodes.keeps.tolist() == [True, True, False, True, True, False]
        assert nodes.accepts.tolist() == [True, True, False, True, False, False]
        assert nodes.tags["ssd"].tolist() == [True, True, False, True, False, False]
        assert cluster.topology.label[1, 5] == -1

    def test_replicas(self, cluster):
        assert list(cluster.partitions.names) == ["orders-0", "orders-1", 'audit, "old"-0']
        assert list(cluster.partitions.group_names) == ["orders", 'audit, "old"']
        assert cluster.placement.node.tolist() == [0, 2, 5, 1, 3, -1, 4]
        assert cluster.placement.leader.tolist() == [0, 1, 0]
        assert cluster.placement.role.tolist() == [0, 0, 0, 0, 0, Role.NON_VOTER, 0]
        pinned = cluster.placement.flags & Flag.PINNED
        assert np.flatnonzero(pinned).tolist() == [4, 6]
        assert cluster.partitions.load.voter[0].tolist() == [0.5, 120e9]
        assert cluster.partitions.load.leader[0].tolist() == [2.5, 120e9]

    def test_rules(self, cluster):
        assert cluster.rules[0].spread == {"zone": 1, "rack": (1, "soft")}
        assert cluster.rules[0].require == ["+ssd"]
        assert cluster.partitions.rule.tolist() == [0, 0, 1]
        assert cluster.bytes_dimension == 1

    @pytest.mark.parametrize("column", ["pinned", "flags", "role", "replicas"])
    def test_a_table_without_rows_is_a_cluster_without_partitions(self, tmp_path, column):
        (tmp_path / "nodes.csv").write_text("node,cap_cpu\na,9\n")
        (tmp_path / "replicas.csv").write_text(f"partition,node,load_cpu,{column}\n")
        cluster = registry.read([tmp_path / "nodes.csv", tmp_path / "replicas.csv"])
        assert len(cluster.partitions) == 0 and len(cluster.nodes) == 1

    def test_two_tables_are_enough_and_the_first_replica_leads(self):
        small = registry.read(PLACED, SMALL)
        assert small.placement.leader.tolist() == [0]
        assert not small.rules

    @pytest.mark.parametrize(
        ("rows", "rules", "led"),
        [
            (b"partition,node\np,a\nq,b\n", b"", False),
            (b"partition,node,role\np,a,leader\nq,b,leader\n", b"", True),
            (b"partition,node,leader_load_cpu\np,a,2\nq,b,2\n", b"", True),
            (b"partition,node,replicas\np,a,2\nq,b,2\n", b"", True),
            (b"partition,node\np,a\nq,b\n", b'[[rule]]\nlead = ["node=a"]\n', True),
        ],
    )
    def test_single_replicas_have_no_leaders_unless_asked_for(self, rows, rules, led, tmp_path):
        cluster = registry.read(SMALL, rows, *([rules] if rules else []))
        assert (cluster.placement.leader >= 0).all() == led
        files = registry.write(cluster, tmp_path / "c.csv")
        assert (b"role" in files[0].read_bytes()) == (b"role" in rows)
        assert registry.read(*files).placement.leader.tolist() == cluster.placement.leader.tolist()

    @pytest.mark.parametrize("mark", ["\t", ";"])
    def test_other_delimiters_and_ends_of_lines(self, mark):
        nodes, replicas = (one.decode().replace(",", mark) for one in (SMALL, PLACED))
        same = registry.read(nodes.encode(), replicas.replace("\n", "\r\n").encode())
        assert_same(same, registry.read(SMALL, PLACED))


class TestColumns:
    """A title that nobody knows is a slip, and what it holds must not be lost."""

    def test_one_that_replicas_do_not_have_is_named_with_the_closest(self):
        table = b"partition,node,rloe,siez_cpu,note\np,a,leader,1,x\n"
        with pytest.raises(InvalidInput) as caught:
            registry.read(SMALL, table)
        assert [str(fault).partition(": ")[2] for fault in caught.value.faults] == [
            "rloe: is not a column of this table; did you mean 'role'? (got 'rloe')",
            "siez_cpu: is not a column of this table; did you mean 'size_cpu'? (got 'siez_cpu')",
            "note: is not a column of this table; did you mean 'node'? (got 'note')",
        ]

    @pytest.mark.parametrize(
        ("slip", "meant"),
        [("stat", "state"), ("tag", "tags"), ("wieght", "weight"), ("watermark_cpo", None),
         ("watermrk_cpu", "watermark_cpu"), ("Max_Replica", "max_replicas")],
    )  # fmt: skip
    def test_one_of_nodes_that_is_much_like_another_is_no_tier(self, slip, meant):
        nodes = f"node,zone,cap_cpu,{slip}\na,x,9,up\nb,y,9,down\n".encode()
        with pytest.raises(InvalidInput) as caught:
            registry.read(nodes, PLACED)
        (fault,) = caught.value.faults
        assert fault.path == f"<bytes>: {slip}"
        assert meant is None or f"did you mean {meant!r}?" in fault.message

    @pytest.mark.parametrize("tier", ["zone", "region", "rack", "host", "dc", "row", "site", "az"])
    def test_tiers_go_by_any_other_name(self, tier):
        nodes = SMALL.replace(b"zone", tier.encode())
        assert registry.read(nodes, PLACED).topology.tiers == (tier,)

    def test_rules_may_name_the_tiers_and_their_order(self):
        nodes = b"node,rack,stage,cap_cpu\na,r1,x,9\nb,r2,x,9\n"
        cluster = registry.read(nodes, PLACED, b'tiers = ["stage", "rack"]\n')
        assert cluster.topology.tiers == ("stage", "rack")
        assert faults_of(nodes, PLACED, b'tiers = ["stage"]\n') == [("<bytes>: rack", "rack")]
        assert faults_of(nodes, PLACED, b'tiers = ["stage", "rack", "dc"]\n') == [
            ("<bytes>: tiers", "dc")
        ]

    def test_a_tier_that_is_like_a_column_is_written_so_that_it_is_read_again(self, tmp_path):
        cluster = Cluster.from_arrays(
            capacity=[[9.0]], load=[[1.0]], placement=[[0]], domains={"stage": ["a"]}
        )
        assert_same(registry.read(*registry.write(cluster, tmp_path / "c.csv")), cluster)

    def test_a_comma_at_the_end_of_every_line_is_no_column(self):
        assert len(registry.read(SMALL, b"partition,node,\np,a,\n").partitions) == 1


@pytest.mark.parametrize(
    ("nodes", "replicas", "dimensions", "load", "room"),
    [
        (b"node\na\nb\nc\n", b"partition,node\np,a\np,b\nq,a\nq,b\n", ("replicas",), [1], [4]),
        (b"id,dc,rack,state\na,x,1,\nb,x,2,down\n", PLACED, ("replicas",), [1], [2]),
        (b'[{"name": "a", "zone": "x"}, {"name": "b", "zone": "y"}]', PLACED, ("replicas",), [1],
         [2]),
        (b"node,zone\na,x\nb,y\n", b"partition,node,load_disk,size_CPU,leader_load_cpu\n"
         b"p,a,9,1,4\np,b,9,1,4\n", ("disk", "CPU"), [9, 1], [18, 8]),
        (b"node,zone\na,x\nb,y\n", b"partition,node,load_disk\np,a,\n", ("disk",), [0], [1]),
    ],
)  # fmt: skip
def test_nodes_without_capacities_count_as_alike(nodes, replicas, dimensions, load, room, tmp_path):
    cluster = registry.read(nodes, replicas)
    assert cluster.dimensions == dimensions
    assert cluster.partitions.load.voter[0].tolist() == load
    assert cluster.nodes.capacity.tolist() == [room] * len(cluster.nodes)
    (note,) = (one for one in registry.system_of(cluster).left_out(cluster) if "capacities" in one)
    assert "nodes count as alike" in note
    again = registry.read(*registry.write(cluster, tmp_path / "c.csv"))
    assert np.array_equal(again.nodes.capacity, cluster.nodes.capacity)
    assert np.array_equal(again.partitions.load.voter, cluster.partitions.load.voter)
    assert list(registry.system_of(again).uncapped(again)) == [*dimensions]


@pytest.mark.parametrize("title", ["shards", "watermark_cpu"])
def test_other_columns_of_nodes_need_a_capacity_beside_them(title):
    assert faults_of(f"node,zone,{title}\na,x,9\nb,y,9\n".encode(), PLACED)


MYSQL = b"*************************** %d. row ***************************\n"
CLICKHOUSE = "Row %d:\n──────\n".encode()


@pytest.mark.parametrize(
    "printed",
    [
        b"-[ RECORD 1 ]--\nnode    | a\nzone    | x\ncap_cpu | 9\n-[ RECORD 2 ]--\nnode    | b\n"
        b"zone    | y\ncap_cpu | 9\n\n",
        MYSQL % 1 + b"   node: a\n   zone: x\ncap_cpu: 9\n" + MYSQL % 2
        + b"   node: b\n   zone: y\ncap_cpu: 9\n2 rows in set (0.00 sec)\n",
        b"SELECT * FROM nodes FORMAT Vertical\n\nQuery id: 7\n\n" + CLICKHOUSE % 1
        + b"node:    a\nzone:    x\ncap_cpu: 9\n\n" + CLICKHOUSE % 2
        + b"node:    b\nzone:    y\ncap_cpu: 9\n\n2 rows in set. Elapsed: 0.002 sec. \n",
        b"  node zone  \\\n0    a    x   \n1    b    y   \n\n   cap_cpu  \n"
        b"0        9  \n1        9  \n",
    ],
)  # fmt: skip
def test_rows_that_take_several_lines(printed):
    assert_same(registry.read(printed, PLACED), registry.read(SMALL, PLACED))
    faulty = printed.replace(b"9", b"x")
    line = next(n for n, one in enumerate(faulty.split(b"\n"), 1) if one.split()[-1:] == [b"a"]
                or one.split()[:2] == [b"0", b"a"])  # fmt: skip
    assert faults_of(faulty, PLACED)[0] == (f"<bytes>:{line}: cap_cpu", "x")


@pytest.mark.parametrize(
    ("rules", "replicas", "noted"),
    [
        (b"", b"p,a\np,b\n", ["apart by zone: without --spread zone=1"]),
        (b"[[rule]]\nspread = {rack = 1}\n", b"p,a\np,b\n", []),
        (b'[[rule]]\nplace = {"zone=x" = 1}\n', b"p,a\np,b\n", []),
        (b"", b"p,a\nq,b\n", []),
    ],
)
def test_zones_that_no_rule_names_are_noted(rules, replicas, noted):
    nodes = b"node,zone,rack,cap_cpu\na,x,1,9\nb,x,2,9\nc,y,3,9\n"
    cluster = registry.read(nodes, b"partition,node\n" + replicas, *([rules] if rules else []))
    notes = [one for one in registry.find("tables").left_out(cluster) if "no rule" in one]
    assert len(notes) == len(noted)
    assert all(part in note for part, note in zip(noted, notes, strict=True))


class TestNodesThatAreGone:
    REPLICAS = b"partition,node,load_cpu\np,a,1\np,z,1\nq,z,2\nq,b,2\n"
    NODES = b"node,zone,cap_cpu,state,weight\na,x,9,,\nb,y,9,,\nc,y,9,,\n"

    def test_replicas_on_them_are_placed_anew(self, tmp_path):
        cluster = registry.read(self.NODES, self.REPLICAS)
        assert list(cluster.nodes.names) == ["a", "b", "c", "z"]
        assert cluster.nodes.alive.tolist() == cluster.nodes.keeps.tolist() == [True] * 3 + [False]
        assert any("node z" in one for one in registry.find("tables").left_out(cluster))
        found = ek.solve(cluster, goals=ek.Goals(level=None))
        assert (found.comparison.moves, found.audit.hard) == (2, 0)
        again = registry.read(*registry.write(found.cluster, tmp_path / "c.csv", "tables"))
        assert not again.nodes.alive[3]

    def test_of_tables_that_share_no_node_each_is_named(self):
        other = self.NODES.replace(b"a,", b"k,").replace(b"b,", b"l,")
        assert [value for _, value in faults_of(other, self.REPLICAS)] == ["a", "z", "z", "b"]

    def test_frames_are_no_dump(self):
        frame = pytest.importorskip("pandas")
        nodes = frame.DataFrame({"node": ["a"], "cap_cpu": [9.0]})
        replicas = frame.DataFrame({"partition": ["p", "q"], "node": ["a", "z"]})
        with pytest.raises(InvalidInput, match="z"):
            ek.Cluster.from_frames(nodes, replicas)


@pytest.mark.parametrize("unit", ["Ti", "TiB", "ti"])
def test_binary_prefixes_may_stand_alone(unit):
    nodes = f"node,cap_disk\na,2{unit}\n".encode()
    cluster = registry.read(nodes, b"partition,node,size_disk\np,a,1Gi\n")
    assert cluster.nodes.capacity.tolist() == [[2.0**41]]
    assert cluster.partitions.load.voter.tolist() == [[2.0**30]]


class TestWhatIsWrong:
    def test_all_of_it_is_listed_with_line_and_column(self):
        nodes = b"node,zone,cap_cpu,state\na,x,lots,up\na,y,1,upp\n,z,1,\n"
        replicas = b"partition,node,role,load_disk\np,c,leader,1\np,a,leader,1\nq,a,boss,x\n"
        assert faults_of(nodes, replicas) == [
            ("<bytes>: load_disk", "load_disk"),
            ("<bytes>:3: node", "a"),
            ("<bytes>:4: node", ""),
            ("<bytes>:2: cap_cpu", "lots"),
            ("<bytes>:3: state", "upp"),
            ("<bytes>:4: role", "boss"),
            ("<bytes>:3: role", "leader"),
        ]

    def test_rules(self):
        rules = b"""
            [[rule]]
            groups = ["no", "g0"]
            spred = {zone = 1}
            [[rule]]
            name = 7
        """
        found = faults_of(SMALL, PLACED, rules)
        assert [path for path, _ in found] == ["<bytes>: rule[0].spred", "<bytes>: rule[1].name"]
        rules = b"[[rule]]\ngroups = ['no', 'g0']\n[[rule]]\ngroups = ['g0']\n[[rule]]\n[[rule]]\n"
        assert [value for _, value in faults_of(SMALL, PLACED, rules)] == [None, "no", "g0"]
        assert faults_of(SMALL, PLACED, b"[[rule]]\nspread = {\n")[0][0] == "<bytes>:2"
        rules = b"[[rule]]\nper = 'group'\nname = 'r'\n[[rule]]\nper = 'group'\ngroups = ['g0']\n"
        assert [value for _, value in faults_of(SMALL, PLACED, rules)] == ["r", "g0"]

    def test_rows_of_a_partition_say_the_same(self):
        replicas = b"partition,node,load_cpu\np,a,1\np,b,2\n"
        assert faults_of(SMALL, replicas) == [("<bytes>:3: load_cpu", 2.0)]

    @pytest.mark.parametrize(
        ("rows", "column"),
        [
            (b"partition,node\np,a\n,b\n", "partition"),
            (b"group,index,node\ng,0,a\ng,,b\n", "index"),
        ],
    )
    def test_each_row_names_its_partition(self, rows, column):
        assert faults_of(SMALL, rows) == [(f"<bytes>:3: {column}", "")]

    def test_rows_that_repeat_others_are_noted(self):
        rows = b"partition,node\np,a\np,b\np,a\nq,b\n"
        led, noted = registry.find("tables").left_out(ek.read(SMALL, rows))
        assert led == (
            "no role of replicas: the first of each partition counts as its leader; add role"
        )
        assert noted.startswith("replicas of p more than once on a node: each row counts as one")
        led = b"partition,role,node\np,leader,a\np,leader,%s\n"
        for node, message in ((b"a", "already, in a row that"), (b"b", "<bytes>:2: role leads")):
            with pytest.raises(InvalidInput, match=message):
                ek.read(SMALL, led % node)

    @pytest.mark.parametrize(
        "rows", [b"partition,node\np,a,b\n", b'partition,node\n"p,a\n', b'partition,node\n"p"x,a\n']
    )
    def test_rows_that_are_no_rows_are_named_by_line(self, rows):
        assert faults_of(SMALL, rows)[0][0].startswith("<bytes>:2")

    @pytest.mark.parametrize(
        "files", [(SMALL,), (b"partition,node\np,\n",), (SMALL, SMALL, PLACED), (b"x",)]
    )
    def test_two_tables_are_needed(self, files):
        assert faults_of(*files)

    def test_replicas_alone_are_on_the_nodes_that_they_name(self):
        cluster = ek.read(b'partition,nodes\np,"n2,n1"\nq,n2\n')
        assert [*cluster.nodes.names] == ["n2", "n1"]
        assert "no table of nodes" in " ".join(registry.find("tables").left_out(cluster))

    def test_names_in_a_list_of_json_may_have_commas(self):
        nodes = b'[{"node": "rs1,16020"}, {"node": "rs2,16020"}]'
        rows = b'[{"partition": "p", "nodes": ["rs2,16020", "rs1,16020"]}]'
        assert ek.read(nodes, rows).placement.nodes.tolist() == [[1, 0]]
        listed = b'partition,nodes\np,"[""rs2,16020"",""rs1,16020""]"\n'
        assert ek.read(nodes, listed).placement.nodes.tolist() == [[1, 0]]

    def test_comments_of_sql_are_no_rows(self):
        nodes = b"-- SELECT node FROM nodes;\nnode,zone\na,x\n-- and the last\nb,y\n"
        assert [*ek.read(nodes, b"partition,node\np,a\n").nodes.names] == ["a", "b"]

    def test_what_is_claimed_takes_no_memory(self):
        rows = b"partition,node,replicas\n" + b"".join(b"p%d,a,32767\n" % i for i in range(900))
        assert faults_of(SMALL, rows)[0] == ("<bytes>: replicas", 900 * 32767)


class TestWriting:
    def test_what_was_read_comes_back(self, cluster, tmp_path):
        files = registry.write(cluster, tmp_path / "c.csv")
        assert [one.name for one in files] == ["c.csv", "c.nodes.csv", "c.rules.toml"]
        assert_same(registry.read(*files), cluster)

    @pytest.mark.parametrize("column", ["", ",rule"])
    def test_rules_of_whole_groups_come_back(self, column, tmp_path):
        own, none = column and ",own", column and ","
        rows = f"group,index,node{column}\nx,0,a{own}\nx,1,b{none}\ny,0,a{none}\n"
        rules = b"""
            [[rule]]
            per = "group"
            spread = {node = 1}
            [[rule]]
            name = "own"
            spread = {node = 1}
        """
        cluster = registry.read(SMALL, rows.encode(), rules)
        assert cluster.partitions.group_rule.tolist() == [0, 0]
        assert cluster.partitions.rule.tolist() == [1 if column else -1, -1, -1]
        again = registry.read(*registry.write(cluster, tmp_path / "c.csv"))
        for one in (again, cluster):
            limits = [
                [str(limit) for r in own if r >= 0 for limit in one.rules[r].limits()]
                for own in (one.partitions.rule, one.partitions.group_rule)
            ]
            assert limits == [["spread node 1"] * bool(column), ["spread node 1"] * 2]

    def test_a_placement(self, cluster, tmp_path):
        node = cluster.placement.node.copy()
        node[5] = 1
        target = cluster.placement.replaced(node, cluster.placement.leader)
        files = registry.write(cluster, tmp_path / "c.csv", placement=target)
        assert registry.read(*files).placement.node.tolist() == node.tolist()

    @pytest.mark.parametrize("rows", [b"partition,group,node\np,x,a\nq,,b\n",
                                      b"group,index,node\nx,0,a\n,0,b\n"])  # fmt: skip
    def test_partitions_of_no_group_come_back(self, rows, tmp_path):
        cluster = registry.read(SMALL, rows)
        again = registry.read(*registry.write(cluster, tmp_path / "c.csv"))
        assert list(again.partitions.names) == list(cluster.partitions.names)
        assert list(again.partitions.group_names) == ["x", ""]

    def test_what_tables_cannot_hold_is_refused(self, tmp_path):
        full = Cluster.from_arrays(
            capacity=[[1.0]] * 2, load=[[1.0]], placement=[[0]], forbidden=[[0, 1]],
            move_cost=[2.0], alive=[True, False], keeps=[False, True],
            node_names=["#a", " b"],
        )  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            registry.write(full, tmp_path / "c.csv")
        assert [fault.path for fault in caught.value.faults] == [
            "cluster.forbidden", "cluster.move_cost", "node_names[0]", "node_names[1]",
            "nodes[0]", "nodes[1]",
        ]  # fmt: skip
        assert not [*tmp_path.iterdir()]

    def test_a_partition_without_a_slot_has_no_row_and_is_refused(self, tmp_path):
        cluster = Cluster.from_arrays(
            capacity=[[9.0]], load=[[1.0]] * 3, placement=[[0], [], [0]], replicas=[1, 0, 1],
            partition_names=["p", "q", "r"],
        )  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            registry.write(cluster, tmp_path / "c.csv")
        assert [fault.path for fault in caught.value.faults] == ["q"]
        assert not [*tmp_path.iterdir()]

    def test_a_cluster_of_another_system_becomes_tables(self, tmp_path):
        kafka = registry.read(places.DATA / "formats" / "kafka_describe.txt")
        again = registry.read(*registry.write(kafka, tmp_path / "c.csv"))
        assert again.placement.node.tolist() == kafka.placement.node.tolist()
        assert again.partitions.names == kafka.partitions.names


hostile = st.sampled_from(
    ['a"b', "a,b", "x\ny", "é", "-1", "=1+1", "$(rm -rf /)", "'; DROP TABLE t; --", "[[rule]]",
     "../x", "a\rb", "😀", "n\\o", "{a: b}"]
) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(
    lambda text: text == text.strip() and not text.startswith("#")
)  # fmt: skip


@given(
    st.lists(hostile, min_size=2, max_size=4, unique=True), st.data(),
    st.lists(
        st.tuples(hostile, st.integers(1, 3)), min_size=1, max_size=4, unique_by=lambda t: t[0]
    ),
)  # fmt: skip
def test_any_names_come_back(tmp_path_factory, nodes, data, partitions):
    count = len(nodes)
    rows = [
        data.draw(st.lists(st.integers(-1, count - 1), min_size=width, max_size=width))
        for _, width in partitions
    ]
    labels = data.draw(st.lists(hostile | st.just(""), min_size=count, max_size=count))
    cluster = Cluster.from_arrays(
        capacity=np.arange(1.0, count + 1)[:, None] / 3.0, load=np.full((len(rows), 1), 0.1),
        leader_load=np.full((len(rows), 1), 0.7), dimensions=["cpu"], node_names=nodes,
        partition_names=[name for name, _ in partitions], group=np.zeros(len(rows), int),
        group_names=[partitions[0][0]], domains={"zone": np.array(labels, object)},
        placement=np.concatenate(rows), first=np.cumsum([0, *(w for _, w in partitions)]),
        rules=[Rule(spread={"zone": (1, "soft")})],
    )  # fmt: skip
    files = registry.write(cluster, tmp_path_factory.mktemp("tables") / "c.csv")
    assert_same(registry.read(*files), cluster)


class TestHeadings:
    """What a table's columns were called they are called again, in their order."""

    @staticmethod
    def written(cluster, tmp_path):
        files = registry.write(cluster, tmp_path / "c.csv")
        assert_same(registry.read(*files), cluster)
        return [file.read_text().splitlines()[0] for file in files[:2]]

    def test_of_the_sample(self, cluster, tmp_path):
        told = self.written(cluster, tmp_path)
        for file, line in zip(("replicas.csv", "nodes.csv"), told, strict=True):
            lines = (places.DATA / "formats" / "tables" / file).read_text().splitlines()
            head = next(line for line in lines if not line.startswith("#"))
            assert line == head

    @pytest.mark.parametrize(
        ("nodes", "replicas"),
        [
            ("name,Zone,cap_CPU", "partition,node"),
            ("id,weight,cap_cpu,watermark_cpu", "node,partition,size_cpu,replicas,min_active"),
            ("node,tags,max_replicas,cap_cpu,state", "Group,Index,Node,Role,load_cpu,flags,pinned"),
        ],
    )
    def test_of_others(self, nodes, replicas, tmp_path):
        cells = {"zone": "a", "tags": "ssd", "weight": "2", "max_replicas": "7", "state": "up"}
        rows = [
            ",".join(
                name if title.lower() in ("name", "id", "node") else cells.get(title.lower(), "9")
                for title in nodes.split(",")
            )
            for name in "ab"
        ]
        cells = {"partition": "p", "node": "a", "group": "g", "index": "0", "role": "leader",
                 "flags": "", "pinned": "yes", "replicas": "1", "min_active": "1"}  # fmt: skip
        row = ",".join(cells.get(title.lower(), "1") for title in replicas.split(","))
        texts = ["\n".join([nodes, *rows]), f"{replicas}\n{row}"]
        cluster = registry.read(*(f"{text}\n".encode() for text in texts))
        assert self.written(cluster, tmp_path) == [replicas, nodes]

    def test_they_outlive_changes_and_other_files(self, cluster, tmp_path):
        changed = cluster.drain("n1")
        registry.write(changed, tmp_path / "c.npz")
        again = registry.read(tmp_path / "c.npz")
        assert self.written(again, tmp_path)[0].startswith("group,index,role,node,size_disk")

    def test_those_of_other_systems_are_as_ever(self, tmp_path):
        kafka = registry.read(places.DATA / "formats" / "kafka_describe.txt")
        files = registry.write(kafka, tmp_path / "c.csv")
        assert files[0].read_text().startswith("group,index,node,role,")
        assert registry.read(*files).native == {"uncapped": ["replicas"]}


def test_a_folder_is_refused_at_once_with_what_to_do(tmp_path, capsys, monkeypatch):
    tables = [str(file) for file in sorted((places.DATA / "formats" / "tables").iterdir())]
    monkeypatch.setattr("evenkeel.cli.commands.plan.solved", None)  # nothing is solved before
    for files in (tables, [str(tmp_path / "plain.npz")]):
        if files is not tables:
            registry.write(Cluster.from_arrays(capacity=[[1.0]], load=[]), files[0])
        assert main(["plan", *files, "-o", str(tmp_path / "move")]) == 2
        told = capsys.readouterr().err
        assert "is of no system" in told
        assert "plan -o plan.json --table steps.csv" in told


def test_capacities_that_nobody_told_stay_unknown(tmp_path):
    data = places.DATA / "formats"
    cluster = registry.read(
        *(data / f"kafka_{name}.txt" for name in ("describe_mendable", "racks"))
    )
    assert registry.system_of(cluster).uncapped(cluster) == ["replicas"]
    files = registry.write(cluster, tmp_path / "c.csv")
    back = registry.read(*files)
    assert registry.system_of(back).uncapped(back) == ["replicas"]
    assert any("no capacities of replicas" in one for one in registry.find("tables").left_out(back))
    assert np.array_equal(back.nodes.capacity, cluster.nodes.capacity)
    again = registry.write(back, tmp_path / "again.csv")
    assert [one.read_bytes() for one in again] == [one.read_bytes() for one in files]
    rules = files[-1].read_text()
    files[-1].write_text(rules.replace('uncapped = ["replicas"]', ""))
    back = registry.read(*files)
    assert registry.system_of(back).uncapped(back) == ()
    files[-1].write_text(rules.replace('["replicas"]', '["dsik"]'))
    with pytest.raises(InvalidInput, match=r"uncapped: is not a dimension; known"):
        registry.read(*files)
