"""NATS: what servers answer is read, and moves are asked for where one server is left to choose."""

import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from evenkeel.systems.nats.format import CHECKS, directing
from tests.support.dumps.nats import answer, answers, encoded, stream

SERVERS = ["n1", "n2", "n3", "n4"]
PEERS = ("n1", "n2", "n3")
SUMMARY = """\
╭─────────────────────────────╮
│      JetStream Summary      │
├────────┬─────────┬──────────┤
│ Server │ Cluster │ Streams  │
├────────┼─────────┼──────────┤
│ n1     │ C       │ 2        │
│ n2     │ C       │ 2        │
│ n3     │ C       │ 2        │
│ n4     │ C       │ 0        │
├────────┼─────────┼──────────┤
│        │         │ 6        │
╰────────┴─────────┴──────────╯
"""
REPORT = """\
╭──────────────────────────────────────────╮
│              Stream Report               │
├────────┬─────────┬───────┬───────────────┤
│ Stream │ Storage │ Bytes │ Replicas      │
├────────┼─────────┼───────┼───────────────┤
│ S      │ File    │ 9 B   │ n1*, n2, n3   │
│ T      │ File    │ 9 B   │ n1, n2*, n3   │
╰────────┴─────────┴───────┴───────────────╯
"""


def named(cluster, p=0):
    """The servers of a stream, and the one that leads."""
    names, held = cluster.nodes.names, cluster.placement
    own = [names[n] for n in held.node[held.first[p] : held.first[p + 1]]]
    leads = held.leader_node[p]
    return own, names[leads] if leads >= 0 else ""


def left_alone(cluster, p=0):
    held = cluster.placement
    return bool(held.flags[held.first[p]] & Flag.PINNED)


def notes_of(cluster):
    return " ".join(cluster.native["notes"])


def read(*documents, **options):
    return ek.read(*(encoded(one) for one in documents), **options)


def requests(cluster, tmp_path, target):
    files = ek.write(cluster, tmp_path / "out.json", placement=target, overwrite=True)
    return [(one["subject"], one["request"]) for one in json.loads(files[0].read_text())]


def moved(cluster, p, source, target):
    """The placement with one replica elsewhere; who led there leads from there."""
    names, held = [*cluster.nodes.names], cluster.placement
    node = held.node.copy()
    slots = slice(held.first[p], held.first[p + 1])
    node[slots][node[slots] == names.index(source)] = names.index(target)
    return held.replaced(node, held.leader)


class TestWhatIsRead:
    def test_a_follower_leaves_itself_out(self):
        own = stream("S", "n2", PEERS, "n1")
        assert [one["name"] for one in own["cluster"]["replicas"]] == ["n1", "n3"]
        assert named(read([answer("n2", SERVERS, [own])])) == ([*PEERS], "n1")

    def test_the_leader_knows_best(self):
        lagging = stream("S", "n1", PEERS, "n1", late=("n3",))
        behind = stream("S", "n2", PEERS, "n1")
        cluster = read([answer("n2", SERVERS, [behind]), answer("n1", SERVERS, [lagging])])
        synced = cluster.placement.flags & int(Flag.CAUGHT_UP) > 0
        assert synced.tolist() == [True, True, False]

    @pytest.mark.parametrize("form", ["info", "list", "pretty"])
    def test_answers_of_the_api(self, form):
        info = {
            "config": stream("S", "n1", PEERS, "n1")["config"],
            "created": "",
            "state": {"bytes": 7},
            "cluster": stream("S", "n1", PEERS, "n1")["cluster"],
        }
        text = {
            "info": json.dumps(info),
            "list": json.dumps({"type": "io.nats.jetstream.api.v1.stream_list_response",
                                "total": 1, "streams": [info]}),
            "pretty": "\n".join(json.dumps(info | {"config": info["config"] | {"name": name}},
                                           indent=2) for name in "ST"),
        }[form]  # fmt: skip
        cluster = ek.read(text.encode(), account="A")
        assert named(cluster) == ([*PEERS], "n1")
        assert len(cluster.partitions) == (2 if form == "pretty" else 1)
        assert cluster.native["streams"]["S"][:3] == ["A", "S", "A"]
        assert "tags of 3 servers" in notes_of(cluster)

    def test_streams_of_which_no_server_answers_are_noted(self):
        own = stream("S", "n1", PEERS, "n1")
        info = {"config": own["config"], "state": {"bytes": 7}, "cluster": own["cluster"]}
        page = {"type": "io.nats.jetstream.api.v1.stream_list_response", "streams": [info],
                "total": 3, "missing": ["gone", "S"], "offline": {"new": "level 9"}}  # fmt: skip
        notes = notes_of(ek.read(json.dumps(page).encode()))
        assert "no server answers (gone, new)" in notes and "of 3 streams" not in notes

    def test_monitoring_names_servers_in_varz(self):
        one = answer("n1", SERVERS, [stream("S", "n1", PEERS, "n1")], tags=["zone:a"])
        varz = {"server_id": one["server"]["id"], "server_name": "n1", "version": "2.12.0",
                "tags": ["zone:a"], "cluster": {"name": "C"},
                "jetstream": {"config": {"max_storage": 77, "max_memory": 1}}}  # fmt: skip
        jsz, other = json.dumps(one["data"], indent=2).encode(), json.dumps(varz).encode()
        cluster = ek.read(jsz, other)
        n = cluster.nodes.names.index("n1")
        assert cluster.nodes.capacity[n, 0] == 77.0
        assert cluster.native["servers"]["n1"]["tags"] == ["zone:a"]
        assert "identifier alone" in notes_of(ek.read(jsz))

    def test_limits_are_capacities_and_reservations_loads(self):
        own = stream("S", "n1", PEERS, "n1", size=5, max_bytes=50)
        cluster = read([answer("n1", SERVERS, [own], max_storage=100)])
        assert [*cluster.dimensions] == ["storage", "reserved", "streams"]
        assert cluster.partitions.load.voter.tolist() == [[5.0, 50.0, 1.0]]
        assert cluster.nodes.capacity[:, :2].tolist() == [[100.0, 100.0]] * 4

    def test_several_accounts(self):
        lines = [answer("n1", SERVERS, [stream("S", "n1", ("n1",), "n1")], account=one)
                 for one in ("A", "B")]  # fmt: skip
        lines[0]["data"]["account_details"] += lines[1]["data"]["account_details"]
        assert [*read([lines[0]]).partitions.names] == ["A/S", "B/S"]

    def test_of_the_same_twice_in_a_file_the_last_counts(self, tmp_path):
        first, last = (
            answer("n1", SERVERS, [stream("S", "n1", PEERS, "n1", size=size)]) for size in (1, 2)
        )
        assert read([first, last]).partitions.load.voter[0, 0] == 2.0
        files = [tmp_path / name for name in ("a.json", "b.json")]
        for file, one in zip(files, (first, last), strict=True):
            file.write_bytes(encoded([one]))
        with pytest.raises(ek.InvalidInput, match="already given"):
            ek.read(files)

    @pytest.mark.parametrize("warned", [True, False])
    def test_servers_of_a_report_without_its_peers_are_read(self, warned):
        below = "\n\nWARNING: No cluster meta leader found. The cluster expects 7 nodes\n"
        cluster = ek.read(f"{SUMMARY}{below if warned else ''}\n{REPORT}".encode())
        assert [*cluster.nodes.names] == SERVERS
        assert ("no server leads JetStream" in notes_of(cluster)) == warned
        assert "lower border" not in notes_of(cluster)

    def test_streams_that_servers_count_and_answers_leave_out_are_noted(self):
        more = SUMMARY.replace("n1     │ C       │ 2 ", "n1     │ C       │ 28")
        assert "streams than the answers list (2 of 28 on n1):" in notes_of(
            ek.read(f"{more}\n{REPORT}".encode())
        )
        assert "answers list" not in notes_of(ek.read(f"{SUMMARY}\n{REPORT}".encode()))
        lines = answers(SERVERS, [("S", PEERS, "n1")])
        for line in lines:
            line["data"]["streams"] = 1
        assert "(0 of 1 on n4)" in notes_of(read(lines))

    def test_answers_that_name_no_leader_are_noted(self):
        lines = answers(SERVERS, [("S", PEERS, "n1")])
        for line in lines:
            line["data"]["meta_cluster"] = {"name": "C", "leader": "", "cluster_size": 7}
        assert "no server leads JetStream" in notes_of(read(lines))
        assert not left_alone(read(lines))

    @pytest.mark.parametrize("text", [SUMMARY + REPORT, REPORT], ids=["servers", "streams"])
    def test_a_table_that_was_not_copied_to_its_end_is_noted(self, text):
        cut = ek.read(text.rstrip().rpartition("\n")[0].encode())
        assert "tables whose lower border is missing, in <bytes>" in notes_of(cut)
        assert [*cut.partitions.names] == ["S", "T"]

    def test_tables_for_people_are_refused_with_a_hint(self):
        with pytest.raises(ek.InvalidInput, match="server request jetstream --all"):
            ek.read(b"Information for Stream ORDERS created 2021-02-05T12:07:34+01:00")


class TestStates:
    def test_a_server_that_is_offline_is_down_and_its_streams_are_repaired(self):
        lines = answers(SERVERS, [("S", PEERS, "n1")], down=("n3",))
        cluster = read(lines)
        assert cluster.nodes.alive.tolist() == [True, True, False, True]
        assert "of one replica there are unknown" in notes_of(cluster)
        result = ek.solve(cluster)
        assert {one.target for one in result.moves} == {"n4"}

    def test_no_majority_is_stranded(self):
        lines = answers(SERVERS, [("S", PEERS, "n1")], down=("n2", "n3"))
        assert left_alone(read(lines))

    def test_servers_with_the_tag_take_nothing(self):
        lines = answers(SERVERS, [("S", PEERS, "n1")], tags={"n4": ["!jetstream"]})
        assert not read(lines).nodes.accepts[3]

    @pytest.mark.parametrize("how", ["fewer", "moving", "pending", "more", "twice", "unknown"])
    def test_what_no_request_can_change_is_left_alone_with_a_note(self, how):
        own = stream("S", "n1", PEERS, "n1")
        others = []
        if how == "fewer":
            own["config"]["num_replicas"] = 5
        elif how == "moving":
            own["cluster"]["desired"] = {"replicas": [{"name": one} for one in ("n1", "n2", "n4")]}
        elif how == "pending":
            own["cluster"]["replicas"][1]["pending"] = True
        elif how == "more":
            own["config"]["num_replicas"] = 1
        elif how == "twice":
            others = [answer("n3", SERVERS, [stream("S", "n3", ("n1", "n3", "n4"), "n3")])]
        else:
            name = "Server name unknown at this time (peerID: jZ6RvVRH)"
            own["cluster"]["replicas"][1] |= {"name": name, "offline": True, "current": False}
        cluster = read([answer("n1", SERVERS, [own]), *others])
        assert left_alone(cluster)
        assert "S)" in notes_of(cluster)
        assert not len(ek.solve(cluster).moves)

    def test_older_servers_elect_leaders_alone(self):
        lines = answers(SERVERS, [(f"S{i}", PEERS, "n1") for i in range(4)], ver="2.10.29")
        cluster = read(lines)
        assert ek.usual(cluster)["goals"].leaders is None
        with pytest.raises(ek.InvalidInput, match="only the system elects leaders"):
            ek.solve(cluster, goals=ek.Goals(leaders=0.0))
        assert "2.11" in notes_of(cluster)
        plan = ek.plan(cluster, cluster.placement)
        with pytest.raises(ek.InvalidInput, match=r"2\.11"):
            ek.write_plan_folder(plan, "never")


class TestRules:
    TAGS = {"n1": ["az:1"], "n2": ["az:2"], "n3": ["az:3"], "n4": ["az:1", "ssd"]}

    def test_one_replica_for_each_unique_tag(self):
        streams = [(f"S{i}", PEERS, "n2") for i in range(4)]
        cluster = read(answers(SERVERS, streams, tags=self.TAGS, unique="az:"))
        result = ek.solve(cluster, goals=ek.Goals(level=0.0))
        held = result.placement.node.reshape(4, 3)
        assert not any({0, 3} <= {*row} for row in held.tolist()) and (held == 3).any()
        # the same without the rule
        free = read(answers(SERVERS, streams, tags=self.TAGS, unique="az:"), spread={})
        assert free.rules[0].spread != cluster.rules[0].spread

    def test_servers_without_the_tag_take_nothing(self):
        tags = self.TAGS | {"n4": ["ssd"]}
        cluster = read(answers(SERVERS, [("S", PEERS, "n1")], tags=tags, unique="az:"))
        assert cluster.nodes.accepts.tolist() == [True, True, True, False]
        assert "no tag az:" in notes_of(cluster)

    @pytest.mark.parametrize(("asked", "goes"), [(["ssd"], "n4"), (["!az:2"], None)])
    def test_streams_are_where_their_tags_allow(self, asked, goes):
        own = ("n2",)
        lines = answers(SERVERS, [("S", own, "n2", {"placement": {"tags": asked}})], tags=self.TAGS)
        target = named(read(lines).with_placement(ek.solve(read(lines)).placement))[0]
        assert target == [goes] if goes else target != ["n2"]

    def test_streams_stay_in_their_cluster(self):
        lines = answers(["a1", "a2"], [(f"S{i}", ("a1",), "a1") for i in range(4)], cluster="A")
        lines += answers(["b1"], [], cluster="B")
        result = ek.solve(read(lines), goals=ek.Goals(level=0.0))
        assert {one.target for one in result.moves} == {"a2"}


class TestRequests:
    def native(self, tags, **other):
        servers = {name: {"tags": own, "cluster": "C", "known": True} for name, own in tags.items()}
        return {"servers": servers, "unique": "", "excludes": True} | other

    @pytest.mark.parametrize(
        ("tags", "peers", "asked", "then"),
        [
            ({"a": [], "b": ["server:b"], "c": ["server:c"]}, ["a"], [], ["server:b"]),
            ({"a": ["z:1"], "b": ["z:1"], "c": ["z:2"]}, ["a"], [], ["z:1"]),  # a is a peer
            ({"a": [], "b": [], "c": []}, ["a", "c"], [], []),  # nobody else is left
            ({"a": [], "b": ["x", "y"], "c": ["x"], "d": ["y"]}, ["a"], [], ["x", "y"]),
            ({"a": [], "b": ["x"], "c": ["x", "y"]}, ["a"], [], ["x", "!y"]),
            ({"a": [], "b": ["x"], "c": ["x", "y"], "d": ["x", "z"]}, ["a"], [], ["x", "!y", "!z"]),
            ({"a": [], "b": ["x"], "c": ["y"]}, ["a"], ["x"], ["x"]),
            ({"a": [], "b": [], "c": ["y"]}, ["a"], [], ["!y"]),
            ({"a": [], "b": [], "c": []}, ["a"], [], None),
            ({"a": [], "b": ["x"], "c": ["x"]}, ["a"], [], None),
        ],
    )
    def test_tags_leave_one_server(self, tags, peers, asked, then):
        assert directing(self.native(tags), asked, peers, "b") == then

    def test_without_exclusion_less_can_be_directed(self):
        native = self.native({"a": [], "b": ["x"], "c": ["x", "y"]}, excludes=False)
        assert directing(native, [], ["a"], "b") is None

    def test_servers_whose_tags_are_unknown_are_no_targets(self):
        native = self.native({"a": [], "b": []})
        native["servers"]["b"]["known"] = False
        assert directing(native, [], ["a"], "b") is None

    def test_a_move_and_its_leader(self, tmp_path):
        tags = {name: [f"server:{name}"] for name in SERVERS}
        cluster = read(answers(SERVERS, [("S", PEERS, "n1")], tags=tags))
        target = moved(cluster, 0, "n1", "n4")
        assert requests(cluster, tmp_path, target) == [
            ("$JS.API.ACCOUNT.STREAM.MOVE.A.S", {"server": "n1", "tags": ["server:n4"]}),
            ("$JS.API.STREAM.LEADER.STEPDOWN.S", {"placement": {"preferred": "n4"}}),
        ]

    def test_what_cannot_be_directed_is_refused_by_name(self, tmp_path):
        cluster = read(answers([*SERVERS, "n5"], [("S", PEERS, "n1")]))
        with pytest.raises(ek.InvalidInput, match="no tags tell it from the others"):
            ek.write(cluster, tmp_path / "out.json", placement=moved(cluster, 0, "n1", "n4"))

    def test_another_number_of_replicas_is_refused(self, tmp_path):
        cluster = read(answers(SERVERS, [("S", PEERS, "n1")]))
        node = cluster.placement.node.copy()
        node[2] = -1
        target = cluster.placement.replaced(node, cluster.placement.leader)
        with pytest.raises(ek.InvalidInput, match="edit --replicas"):
            ek.write(cluster, tmp_path / "out.json", placement=target)

    def test_it_comes_back_as_it_was(self, tmp_path):
        lines = answers(SERVERS, [("S", PEERS, "n1"), ("T", ("n4",), "n4")])
        cluster = read(lines)
        (file,) = ek.write(cluster, tmp_path / "out.json")
        assert np.array_equal(ek.read(file).placement.node, cluster.placement.node)
        assert json.loads(file.read_text()) == lines


class TestChecks:
    @pytest.mark.parametrize(
        ("check", "reply", "done"),
        [
            ("asked", {"config": {"name": "S"}}, True),
            ("asked", {"error": {"err_code": 10040, "description": "peer not a member"}}, True),
            ("asked", {"error": {"err_code": 10005, "description": "no suitable peers"}}, False),
            ("led", {"success": True}, True),
            ("led", {"error": {"description": 'preferred server "n1" is already leader'}}, True),
            ("led", {"error": {"description": 'preferred server "n9" not known'}}, False),
            ("settled", {"config": {"num_replicas": 1}, "cluster": {"leader": "n1"}}, True),
            ("settled", {"config": {"num_replicas": 3}, "cluster": {"leader": "n1"}}, False),
            ("settled", {"config": {"num_replicas": 1}, "cluster": {"leader": ""}}, False),
            ("settled", {"config": {"num_replicas": 2}, "cluster": {
                "leader": "n1", "replicas": [{"name": "n2", "current": False}]}}, False),
            ("settled", {"config": {"num_replicas": 2}, "cluster": {
                "leader": "n1", "replicas": [{"name": "n2", "current": True}]}}, True),
            ("settled", {"config": {"num_replicas": 1}, "cluster": {
                "leader": "n1", "desired": {"replicas": [{"name": "n2"}]}}}, False),
            ("settled", {"error": {"description": "stream not found"}}, False),
        ],
    )  # fmt: skip
    def test_answers(self, check, reply, done):
        assert CHECKS[check](json.dumps(reply) + "\n\n\n").done is done

    @pytest.mark.parametrize("check", CHECKS)
    def test_no_answer(self, check):
        assert not CHECKS[check]("").done
