"""Elasticsearch and OpenSearch: situations that operators reported."""

import json

import pytest

FILES = ("shards.json", "allocation.json", "nodes.json", "cluster.json", "indices.json")
TEXTS = ("shards.txt", "allocation.txt")


def ordered(case, *words, files=FILES):
    """Return the answer of a solve, and the commands that it wrote: their kinds and what is in."""
    given = [name for name in files if case.path(name).exists()]
    answer = case.run("solve", *given, *words, "-o", "plan.json")
    commands = json.loads(case.written("plan.json"))["commands"]
    return answer, [(kind, of) for one in commands for kind, of in one.items()]


def targets(commands):
    """Return the nodes that commands give shards to."""
    return {of.get("to_node") or of["node"] for kind, of in commands if kind != "cancel"}


class TestWatermarks:
    def test_a_node_above_the_low_one_gets_no_replica(self, public):
        answer, commands = ordered(public("elasticsearch/low-watermark"))
        assert (answer.code, commands) == (3, [])
        assert "watermark.low of 85%: n3 (87.0%)" in answer.text
        assert "unplaced (1)" in answer.text

    @pytest.mark.parametrize("level", ["5%", "none", "1%"])
    def test_of_five_nodes_one_may_receive(self, public, level):
        answer, commands = ordered(public("elasticsearch/four-above-low"), "--level", level)
        assert targets(commands) <= {"n5"}
        assert "n1 (88.0%), n2 (89.0%), n3 (86.0%), n4 (88.0%)" in answer.text

    def test_disks_that_are_not_known_are_named(self, public):
        answer, commands = ordered(public("elasticsearch/no-disk-figures"))
        assert answer.code == 0
        assert targets(commands) == {"c"}
        assert "no room of disks of c: taken for the average of the others" in answer.text

    @pytest.mark.parametrize("level", ["5%", "none"])
    def test_a_client_node_holds_nothing(self, public, level):
        case = public("elasticsearch/client-node")
        answer, commands = ordered(case, "--level", level, files=TEXTS)
        assert answer.code == 0
        assert len(commands) == 1
        assert targets(commands) < {"Paige Guthrie", "Herbert Edgar Wyndham"}
        assert "no disk and no shard of logstash-aaa-1111-2222" in answer.text


class TestRules:
    def test_the_last_copy_needs_another_to_move(self, public):
        answer, commands = ordered(public("elasticsearch/shards-per-node"))
        assert answer.code == 0
        assert sorted(kind for kind, _ in commands) == ["allocate_replica", "move"]

    def test_a_hot_index_is_spread_by_a_rule(self, public, tmp_path):
        case = public("elasticsearch/hot-index")
        assert ordered(case)[0].code == 0
        told = json.loads(case.path("indices.json").read_text())
        name = "index.routing.allocation.total_shards_per_node"
        told["hot-today"]["settings"][name] = "3"
        (tmp_path / "limited.json").write_text(json.dumps(told))
        files = [*FILES[:-1], str(tmp_path / "limited.json")]
        answer, commands = ordered(case, files=files)
        assert answer.code == 0
        moved = [of["from_node"] for kind, of in commands if of["index"] == "hot-today"]
        assert moved.count("es4") - sum(n == "es4" for n in targets(commands)) >= 2

    def test_the_setting_that_keeps_replicas_off_is_named(self, public):
        answer, commands = ordered(public("elasticsearch/hot-warm"))
        assert answer.code == 3
        assert {of["index"] for _, of in commands} == {"log-7"}
        assert targets(commands) == {"warm1", "warm2"}
        assert "index.routing.allocation.require.box_type: hot" in answer.text

    def test_no_move_within_a_host_where_it_is_refused(self, public):
        answer, commands = ordered(public("elasticsearch/within-a-host"))
        assert (answer.code, commands) == (3, [])
        assert "same_shard.host is true" in answer.text

    def test_awareness_of_three_attributes_is_met(self, public):
        answer, commands = ordered(public("elasticsearch/three-attributes"))
        assert (answer.code, commands) == (0, [])


class TestUnderWay:
    def test_copies_under_way_count_where_they_go(self, public):
        answer, commands = ordered(public("elasticsearch/relocating"), files=TEXTS)
        assert (answer.code, commands) == (0, [])

    def test_what_has_not_started_is_cancelled_and_not_moved(self, public):
        case = public("elasticsearch/relocating")
        _, commands = ordered(case, "--drain", "bGG90GE", files=TEXTS)
        assert [(kind, of["shard"], of["node"]) for kind, of in commands] == [
            ("cancel", 0, "bGG90GE"), ("cancel", 1, "bGG90GE"), ("allocate_replica", 1, "I8hydUG"),
        ]  # fmt: skip
        assert json.loads(case.written("plan.undo.json"))["commands"] == []
        assert case.run("plan", *TEXTS, "--drain", "bGG90GE", "-o", "move").code == 0
        waves = (case.folder / "move" / "waves").glob("*.reroutes.jsonl")
        lines = [line for one in waves for line in one.read_text().splitlines()]
        told = [json.loads(line)["commands"] for line in lines]
        kinds = [next(iter(command)) for one in told for command in one]
        assert sorted(kinds) == ["allocate_replica", "cancel", "cancel"]
