"""Elasticsearch and OpenSearch: situations that operators reported."""

import json
from collections import Counter

import pytest

import evenkeel as ek

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
        assert "1 spread node 1, 1 takes no more replicas" in answer.text

    @pytest.mark.parametrize("level", ["5%", "none", "1%"])
    def test_of_five_nodes_one_may_receive(self, public, level):
        answer, commands = ordered(public("elasticsearch/four-above-low"), "--level", level)
        assert targets(commands) <= {"n5"}
        assert "n1 (88.0%), n2 (89.0%), n3 (86.0%), n4 (88.0%)" in answer.text

    def test_disks_that_are_not_known_are_named(self, public):
        answer, commands = ordered(public("elasticsearch/no-disk-figures"))
        assert answer.code == 0
        assert targets(commands) == {"c"}
        assert "no room of disks of c: they count as the average of the others" in answer.text

    @pytest.mark.parametrize("level", ["5%", "none"])
    def test_a_client_node_holds_nothing(self, public, level):
        case = public("elasticsearch/client-node")
        answer, commands = ordered(case, "--level", level, files=(*TEXTS, "settings.json"))
        assert answer.code == 0
        assert len(commands) == 1
        assert targets(commands) < {"Paige Guthrie", "Herbert Edgar Wyndham"}
        assert "no disk and no shard of logstash-aaa-1111-2222" in answer.text

    def test_words_between_tables_are_passed_over(self, public):
        case = public("elasticsearch/words-between-tables")
        answer = case.run("check", "session.txt")
        assert answer.code == 0 and "2 nodes, 2 alive · 5 partitions · 10 rep" in answer.text
        answer = case.run("solve", "session.txt", "--drain", "qpTYg9N")
        assert answer.code == 4 and "5 replicas on live nodes that may keep none" in answer.text

    @pytest.mark.parametrize("row", ["twitter 9 p STARTED WJN8ZGg", "twitter 9 r UNASSIGNED x y"])
    def test_rows_behind_a_blank_line_are_no_words(self, public, row):
        text = public("elasticsearch/words-between-tables").path("session.txt").read_text()
        with pytest.raises(ek.InvalidInput, match="is no row of _cat/shards"):
            ek.read(text.replace("es health", row).encode(), format="elasticsearch")

    def test_attributes_of_nodes_by_a_table(self, public):
        case = public("elasticsearch/attributes-by-cat-nodeattrs")
        answer, commands = ordered(case, files=(*TEXTS, "settings.json"))
        ((_, moved),) = commands
        assert answer.code == 3 and (moved["index"], moved["to_node"]) == ("hamlet-2", "es721Node2")
        files = (*TEXTS, "cluster.json", "nodeattrs.txt")
        answer, commands = ordered(case, "--level", "none", files=files)
        ((_, moved),) = commands
        assert answer.code == 0 and (moved["shard"], moved["to_node"]) == (0, "es721Node3")
        assert "no roles of nodes" in answer.text and "which no node has" not in answer.text

    def test_nodes_of_a_host_have_one_disk(self, public):
        text = public("elasticsearch/nodes-of-a-host").run("check", *TEXTS).text
        assert "6 nodes, 6 alive" in text
        assert "same disk: 192.168.1.128:9301, 192.168.1.128:9302, 192.168.1.128:9303, 192" in text

    def test_what_is_not_available_is_used_where_sizes_are_rounded(self, public):
        answer, commands = ordered(public("elasticsearch/client-node"), files=TEXTS)
        assert (answer.code, commands) == (3, [])
        assert "watermark.low of 85%: Herbert Edgar Wyndham (85.9%), Paige" in answer.text


class TestRules:
    @pytest.mark.parametrize(
        ("name", "files", "says"),
        [
            ("elasticsearch/excluded-zone-counts", FILES, "10 spread zone 4, 4 accepts no"),
            (
                "elasticsearch/included-and-excluded", (*TEXTS, "nodes.json", "settings.json"),
                "exclude._ip: 10.0.0.1, cluster.routing.allocation.include._ip: 10.0.0.1",
            ),
        ],
    )  # fmt: skip
    def test_copies_that_no_other_node_takes_stay(self, public, name, files, says):
        answer, commands = ordered(public(name), files=files)
        assert (answer.code, commands) == (4, []) and says in answer.text
        assert "--soft" not in answer.text

    def test_copies_count_where_they_relocate_to(self, public):
        case = public("elasticsearch/relocating-with-masked-addresses")
        words = ("--drain", "elastic-es-data-?", "--level", "none")
        answer, commands = ordered(case, *words, files=TEXTS)
        moved = {(kind, of["index"]) for kind, of in commands}
        assert answer.code == 0
        assert moved == {
            ("move", ".kibana_1"), ("allocate_replica", ".transform-internal-005")
        }  # fmt: skip
        assert all(name.startswith("elastic-es-data-eu") for name in targets(commands))
        assert "2020.12.19-000004/0 relocate or initialise: each counts" in answer.text

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
        assert (answer.code, commands) == (4, [])
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
        waves = json.loads(case.written("move/waves.json"))["waves"]
        words = [command["run"] for wave in waves for command in wave["commands"]]
        bodies = [json.loads(one[one.index("-d") + 1])["commands"] for one in words]
        kinds = [next(iter(command)) for one in bodies for command in one]
        assert sorted(kinds) == ["allocate_replica", "cancel", "cancel"]


class TestReports:
    @pytest.mark.parametrize(
        ("name", "code", "orders", "said"),
        [
            (
                "elasticsearch/forced-three-zones", 0,
                {("move", "saved_queries/0", "secondary"), ("move", "saved_queries/1", "primary")},
                "but those that its nodes were started with",
            ),
            ("elasticsearch/racks-of-unlike-size", 3, set(), "spread rack_id 2"),
            (
                "elasticsearch/two-groups", 3, {("move", "ztest/0", "data-4")},
                "require +index.routing.allocation.include.cluster: normalfreq, 2 spread cluster 1",
            ),
            (
                "elasticsearch/exclude-without-a-place", 4, {("move", "logs/0", "n2")},
                "still broken: 1 not kept",
            ),
            (
                "elasticsearch/shrunk-index", 3, set(),
                "require +index.routing.allocation.require._name: n1",
            ),
            (
                "elasticsearch/opensearch-shrink-that-is-stuck", 3,
                {("move", "nginx-ingress_ttl30-2025.12.10/1", "opensearch-data-1")},
                "2 require +index.routing.allocation.require._name: opensearch-data-1",
            ),
            (
                "elasticsearch/opensearch-rolling-upgrade", 3, set(),
                "of several releases, 2.8.0, 2.11.1",
            ),
            (
                "elasticsearch/opensearch-search-replicas", 0,
                {("move", "i/0", "s2"), ("allocate_replica", "i/1", "s1")}, "✓ spread",
            ),
        ],
    )  # fmt: skip
    def test_what_is_ordered_and_said(self, public, name, code, orders, said):
        answer, commands = ordered(public(name), files=(*FILES, *TEXTS))
        found = {
            (kind, f"{of['index']}/{of['shard']}", of.get("to_node") or of["node"])
            for kind, of in commands
        }
        assert (answer.code, found) == (code, orders)
        assert said in answer.text

    def test_two_shards_a_node_in_three_zones(self, public):
        answer, commands = ordered(public("elasticsearch/opensearch-zones-and-shards-per-node"))
        assert answer.code == 0
        assert sorted(kind for kind, _ in commands) == ["allocate_replica", "move"]

    def test_nodes_that_a_list_excludes_are_emptied(self, public):
        case = public("elasticsearch/opensearch-exclude-list")
        files = [*FILES[:1], "allocation.txt", *FILES[2:]]
        answer, commands = ordered(case, files=files)
        assert answer.code == 0
        assert {of["from_node"] for _, of in commands} == {"opsrch2", "opsrch4"}
        assert targets(commands) == {"opsrch1", "opsrch3", "opsrch5"}
        assert "lists in cluster.routing.allocation.exclude._name" in answer.text

    def test_snapshots_leave_a_search_node_for_others(self, public):
        answer, commands = ordered(public("elasticsearch/opensearch-search-nodes-excluded"))
        assert answer.code == 0
        assert {of["from_node"] for _, of in commands} == {"search4"}
        assert targets(commands) <= {"search1", "search2", "search3"}

    def test_goals_of_shards_and_disk_are_the_least_that_can_be_had_together(self, public):
        answer, commands = ordered(public("elasticsearch/search-nodes-other-bytes"))
        assert answer.code == 0
        assert [*targets(commands)] == ["s3"]
        assert len(commands) == 4
        assert "shards at most 20.00% of capacity" in answer.text
        assert "disk at most 18.18% of capacity" in answer.text

    def test_an_index_for_all_nodes_comes_to_those_below_the_watermark(self, public):
        answer, commands = ordered(public("elasticsearch/opensearch-auto-expand"))
        assert answer.code == 3
        assert targets(commands) == {"hot-5", "hot-9"}
        assert "hot-1 (85.4%)" in answer.text
        assert "unplaced (5)" in answer.text


class TestOtherAnswers:
    def test_tables_of_a_later_release(self, public):
        answer, commands = ordered(public("elasticsearch/tables-of-8-14"), "--level", "none",
                                   files=TEXTS)  # fmt: skip
        assert answer.code == 0
        assert [(kind, of["node"]) for kind, of in commands] == [("allocate_replica", "es-2")]

    def test_the_state_of_the_cluster_has_shards(self, public):
        case = public("elasticsearch/cluster-state")
        assert case.run("check", "state.json").code == 0
        cluster = ek.read(str(case.path("state.json")))
        assert [cluster.nodes.names[n] for n in cluster.placement.node.tolist()] == ["n2", "n3"]


class TestPlaces:
    def test_a_zone_that_is_gone_counts_no_more(self, public):
        answer, commands = ordered(public("elasticsearch/zone-that-is-gone"), "--level", "none")
        assert answer.code == 0 and targets(commands) <= {"a2", "b2"} and len(commands) == 1

    def test_a_forced_zone_without_nodes_is_waited_for(self, public):
        answer, commands = ordered(public("elasticsearch/forced-zone-without-nodes"))
        assert (answer.code, commands) == (3, []) and "in one zone" in answer.text

    def test_a_cold_shard_stays_cold(self, public):
        answer, commands = ordered(public("elasticsearch/cold-node-excluded"))
        assert answer.code == 0 and targets(commands) == {"cold2"}

    def test_attributes_count_by_their_values_in_any_order(self, public):
        case = public("elasticsearch/two-awareness-attributes")
        given = ("shards.json", "nodes.json", "cluster.json", "indices.json")
        assert "a/0 · zone a" in case.run("check", *given).text
        answer, commands = ordered(case, "--level", "none")
        assert answer.code == 0
        assert [of["index"] for _, of in commands] == ["a"]
        assert targets(commands) <= {"n3", "n4"}

    def test_nodes_without_data_get_nothing_and_settings_may_be_empty(self, public):
        answer, commands = ordered(public("elasticsearch/dedicated-masters"))
        assert answer.code == 0 and targets(commands) == {"d2"} and len(commands) == 2

    def test_a_new_node_takes_from_the_fullest(self, public):
        answer, commands = ordered(public("elasticsearch/odd-distribution"), files=TEXTS)
        assert answer.code == 0
        assert [(of["from_node"], of["to_node"]) for _, of in commands] == [
            ("Ulysses", "Nebulo"), ("Ulysses", "Nebulo"),
        ]  # fmt: skip

    def test_watermarks_may_be_free_bytes(self, public):
        answer, commands = ordered(public("elasticsearch/watermarks-in-bytes"), "--level", "none")
        assert answer.code == 0
        assert {(of["from_node"], of["to_node"]) for _, of in commands} == {("n1", "n3")}

    def test_nodes_of_an_early_release_without_data_get_nothing(self, public):
        answer, commands = ordered(public("elasticsearch/nodes-of-1-7"))
        assert answer.code == 0 and targets(commands) == {"n2"} and len(commands) == 2

    def test_a_disabled_threshold_closes_no_node(self, public):
        answer, commands = ordered(public("elasticsearch/threshold-disabled"), "--level", "none")
        assert answer.code == 0 and targets(commands) == {"n2"}

    def test_shards_per_node_may_be_a_setting_of_the_cluster(self, public):
        case = public("elasticsearch/shards-per-node-of-the-cluster")
        answer, commands = ordered(case, "--level", "none")
        assert answer.code == 0 and [of["from_node"] for _, of in commands] == ["n1"]

    def test_an_index_that_is_required_to_be_warm_moves(self, public):
        case = public("elasticsearch/index-required-to-be-warm")
        answer, commands = ordered(case, "--level", "none")
        assert answer.code == 0 and {of["index"] for _, of in commands} == {"l-1"}
        assert targets(commands) == {"w1", "w2"}

    def test_each_node_has_a_copy_already(self, public):
        case = public("elasticsearch/more-replicas-than-nodes")
        answer, commands = ordered(case, "--level", "none")
        assert (answer.code, commands) == (3, []) and "unplaced (1)" in answer.text

    def test_a_drain_that_is_stuck_is_named(self, public):
        answer, commands = ordered(public("elasticsearch/drain-that-is-stuck"), "--level", "none")
        assert answer.code == 4 and [of["index"] for _, of in commands] == ["b"]
        assert "not kept partition a/0 · node n3" in answer.text

    def test_one_shard_brings_a_node_below_the_high_watermark(self, public):
        case = public("elasticsearch/above-the-flood-stage")
        answer, commands = ordered(case, "--level", "none")
        assert answer.code == 0 and "above the flood stage: n1 (96.7%)" in answer.text
        assert [of["from_node"] for _, of in commands] == ["n1"]

    def test_a_node_that_is_replaced_gives_all_to_its_replacement(self, public):
        case = public("elasticsearch/node-is-replaced")
        given = ("shards.json", "nodes.json", "shutdown.json", "cluster.json", "indices.json")
        answer, commands = ordered(case, files=given)
        assert answer.code == 0 and targets(commands) == {"new"} and len(commands) == 3


class TestPrimaries:
    """Only Elasticsearch elects primaries."""

    def test_goals_that_need_another_primary_are_refused(self, public):
        case = public("elasticsearch/odd-distribution")
        for words in (["--leaders", "5%"], ["--method", "leaders"], ["--no-lead", "Ulysses"]):
            answer, commands = case.run("solve", *TEXTS, *words), None
            assert answer.code == 2, words
            assert "only the system elects leaders (primaries)" in answer.text, commands

    def test_a_primary_that_moves_stays_the_primary(self, public):
        case = public("elasticsearch/odd-distribution")
        cluster = ek.read([case.path(name) for name in TEXTS]).drain("Ulysses")
        result = ek.solve(cluster)
        assert result.success
        assert result.placement.leader.tolist() == cluster.placement.leader.tolist()


class TestFactors:
    """Another number of copies: the setting of the index is written, too, and taken back."""

    @staticmethod
    def settings(script):
        lines = [one for one in script.splitlines() if one.startswith("settings /")]
        return [json.loads(one.split("'")[1]) for one in lines]

    @pytest.mark.parametrize(("copies", "kind", "back"), [
        (3, "allocate_replica", "cancel"), (1, "cancel", "allocate_replica"),
    ])  # fmt: skip
    def test_a_script_sets_the_number(self, public, copies, kind, back):
        case = public("elasticsearch/odd-distribution")
        answer, commands = ordered(
            case, "--level", "none", "--replicas", f"tweets={copies}", files=TEXTS
        )
        assert (answer.code, commands) == (0, [])
        ordered_later = json.loads(case.written("plan.2.json"))["commands"]
        assert [[*one] for one in ordered_later] == [[kind]] * 5
        undone = json.loads(case.written("plan.undo.json"))["commands"]
        assert [[*one] for one in undone] == [[back]] * 5
        for name, numbers in (("plan.sh", [2, copies]), ("plan.undo.sh", [copies, 2])):
            held, freed = self.settings(case.written(name))
            assert held == {
                "index.number_of_replicas": max(numbers) - 1,
                "index.routing.allocation.enable": "none",
            }
            assert freed == {
                "index.number_of_replicas": numbers[1] - 1,
                "index.routing.allocation.enable": None,
            }

    @pytest.mark.parametrize(("copies", "tried"), [(3, False), (1, True)])
    def test_a_dry_run_tries_each_file_or_gives_the_reason(self, public, copies, tried):
        case = public("elasticsearch/odd-distribution")
        ordered(case, "--level", "none", "--replicas", f"tweets={copies}", files=TEXTS)
        dry, _, _ = case.written("plan.sh").partition('[ "${1-}" = go ] || exit 0')
        assert ("&metric=none' ./plan.2.json" in dry) == tried
        assert ("plan.2.json: no dry run: its copies are of a number that is not" in dry) != tried

    def test_unknown_settings_of_indices_are_noted_with_what_they_may_set(self, public):
        case = public("elasticsearch/odd-distribution")
        answer = case.run("solve", *TEXTS, "--replicas", "tweets=3")
        assert "index.auto_expand_replicas" in answer.text

    @pytest.mark.parametrize("words", [
        ["--replicas", "tweets=3"], ["--replicas", "tweets=1"],
        ["--replicas", "tweets=1", "--drain", "Ulysses"],
    ])  # fmt: skip
    def test_a_folder_sets_the_number_and_back(self, public, words):
        case = public("elasticsearch/odd-distribution")
        answer = case.run("plan", *TEXTS, "--level", "none", *words, "-o", "move")
        assert answer.code == 0
        ends = []
        for name in ("waves.json", "undo/waves.json"):
            form = json.loads((case.folder / "move" / name).read_text())
            bodies = [
                json.loads(command["run"][-2])
                for wave in form["waves"] for command in wave["commands"] if "-d" in command["run"]
            ]  # fmt: skip
            numbers = [
                one["index.number_of_replicas"] for one in bodies
                if "index.number_of_replicas" in one
            ]  # fmt: skip
            wanted = int(words[1].rpartition("=")[2])
            assert numbers[0] == max(wanted, 2) - 1
            ends.append(numbers[-1])
            primaries = [
                one["commands"][0]["cancel"]["allow_primary"] for one in bodies
                if "cancel" in str(one)
            ]  # fmt: skip
            assert not any(primaries)
        assert ends == [wanted - 1, 1]

    def test_the_folder_gives_the_reasons(self, public):
        case = public("elasticsearch/odd-distribution")
        words = ["--level", "none", "--replicas", "tweets=3", "--drain", "Ulysses"]
        assert case.run("plan", *TEXTS, *words, "-o", "move").code == 0
        page = (case.folder / "move" / "README.md").read_text()
        assert "1 node to be emptied (drained, excluded or decommissioned): Ulysses" in page
        assert "5 partitions of tweets: 1 of 3 replicas is missing, and is added" in page


def test_a_plan_that_does_nothing_has_no_folder(public):
    case = public("elasticsearch/odd-distribution")
    assert case.run("plan", *TEXTS, "-o", "move").code == 0
    before = (case.folder / "move" / "waves.json").read_bytes()
    words = ["--level", "5%", "--act-above", "400%", "-o"]
    answer = case.run("plan", *TEXTS, *words, "other")
    assert answer.code == 0
    assert not case.path("other").exists()
    assert "was not written: nothing is to be done" in answer.text
    answer = case.run("plan", *TEXTS, "--force", *words, "move")
    assert "what stands there is of an older plan" in answer.text
    assert (case.folder / "move" / "waves.json").read_bytes() == before


class TestMoreReports:
    def test_no_two_moves_leave_the_balance_as_it_was(self, public):
        case = public("elasticsearch/moves-that-improve-nothing")
        for level in ("5%", "0"):
            assert ordered(case, "--level", level, "--groups", "0")[1] == []

    def test_awareness_is_read_from_the_nodes(self, public):
        answer, commands = ordered(public("elasticsearch/awareness-from-the-file-of-nodes"))
        assert answer.code == 0 and len(commands) == 4
        assert "spread 4 -" in answer.text

    def test_large_shards_leave_the_full_node(self, public):
        answer, commands = ordered(public("elasticsearch/large-shards-fill-a-node"))
        assert answer.code == 3 and len(commands) == 6
        assert {(of["index"], of["from_node"]) for _, of in commands} == {("big", "full")}
        assert targets(commands) == {"b", "c", "d"}

    def test_a_skew_of_primaries_is_refused_with_the_reason(self, public):
        case = public("elasticsearch/opensearch-primary-skew")
        answer = case.run("solve", "shards.json", "--leaders", "0")
        assert answer.code == 2 and "only the system elects leaders" in answer.text
        answer, commands = ordered(case, "--level", "5%")
        assert answer.code == 0 and len(commands) == 2

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            ("elasticsearch/all-primaries-on-one-node", "n1 leads 5 partitions of user0 where 2"),
            (
                "elasticsearch/opensearch-primaries-with-copies-everywhere",
                "node0 leads 3 partitions of index1 where 1",
            ),
        ],
    )
    def test_primaries_of_an_index_on_one_node_are_seen_and_not_moved(self, public, name, found):
        case = public(name)
        asked = ("shards.json", "nodes.json", "--group-leaders", "0%")
        answer = case.run("check", *asked)
        assert answer.code == 1 and found in answer.text
        answer = case.run("solve", *asked)
        assert answer.code == 2 and "only the system elects leaders" in answer.text
        answer, commands = ordered(case, "--level", "5%", files=("shards.json", "nodes.json"))
        assert answer.code == 0 and commands == []

    def test_the_node_that_holds_most_gives_half_away(self, public):
        answer, commands = ordered(public("elasticsearch/one-node-holds-most"), files=TEXTS)
        assert answer.code == 0 and len(commands) == 14
        assert {of["from_node"] for _, of in commands} == {"PESD34"}

    def test_nodes_with_many_primaries_get_replicas(self, public):
        answer, commands = ordered(
            public("elasticsearch/opensearch-primary-weight"), "--level", "0"
        )
        assert answer.code == 0 and len(commands) == 1
        assert targets(commands) == {"n2"}

    def test_an_index_that_expands_beyond_awareness(self, public):
        case = public("elasticsearch/opensearch-auto-expand-beyond-awareness")
        answer, commands = ordered(case)
        assert (answer.code, commands) == (3, [])
        assert "3 spread zone 2" in answer.text
        given = [name for name in FILES if case.path(name).exists()]
        answer = case.run("solve", *given, "--replicas", "sys=3", "-o", "other.json")
        assert answer.code == 2 and "index.auto_expand_replicas" in answer.text


def test_two_of_three_nodes_are_decommissioned(public):
    case = public("elasticsearch/decommission-of-two")
    answer, commands = ordered(case, files=("shards.txt", "settings.json"))
    assert answer.code == 4 and "to leave their nodes (5)" in answer.text
    assert [(of["shard"], of["to_node"]) for _, of in commands] == [(3, "node-6")]


@pytest.mark.parametrize("disks", ["allocation.json", "allocation.yaml"])
def test_answers_as_yaml_say_what_json_says(public, disks):
    pytest.importorskip("yaml")
    case = public("elasticsearch/settings-as-yaml")
    case.run("solve", "shards.json", disks, "settings.yaml", "--level", "none", "-o", "plan.json")
    [command] = json.loads(case.written("plan.json"))["commands"]
    assert (command["move"]["from_node"], command["move"]["to_node"]) == ("n1", "n2")


def test_answers_that_were_asked_for_in_part(public):
    case = public("elasticsearch/answers-in-part")
    answer = case.run("solve", "shards.txt", "nodes.json", "index.json", "-o", "plan.json")
    assert "add _nodes" not in answer.text and "settings of indices" not in answer.text
    assert answer.code == 0 and "n2" not in case.written("plan.json")
    cluster = ek.read([case.path(name) for name in ("shards.txt", "nodes.json", "index.json")])
    reach = cluster.rules[int(cluster.partitions.rule[0])].require
    assert any("_tier_preference" in one for one in reach)


def test_a_node_that_a_setting_empties_is_named_with_it(public):
    answer = public("elasticsearch/excluded-by-an-operator").run(
        "solve", "shards.txt", "settings.json", "--json"
    )
    name = "opensearch-cluster-data-nodes-0"
    setting = f"cluster.routing.allocation.exclude._name: {name}"
    assert f"{name} may hold no shard: {setting}" in answer.err
    assert answer.json["broken"] == {"unassigned": 1}


def test_frozen_nodes_are_level_whatever_fills_their_disks(public):
    answer, commands = ordered(public("elasticsearch/three-frozen-nodes"))
    assert answer.code == 0 and all(of["from_node"] == "frozen-1" for _, of in commands)
    assert sorted(of["to_node"] for _, of in commands) == ["frozen-2"] + ["frozen-3"] * 3


def test_a_shard_of_a_mounted_snapshot_that_no_node_takes_is_left_alone(public):
    answer, commands = ordered(public("elasticsearch/mounted-snapshot-of-two-shards"))
    assert (answer.code, commands) == (3, [])
    assert "restored-2024.10.23-test-000001/1 (on no node)" in answer.text
    assert "a mounted snapshot waits for a node that may hold it" in answer.text


@pytest.mark.parametrize("file", ["session.txt", "close.txt"])
def test_an_answer_as_json_below_a_table_is_no_row_of_it(public, file):
    case = public("elasticsearch/health-below-a-table")
    case.run("solve", file, "--drain", "esnode1", "--level", "none", "-o", "plan.json")
    [command] = json.loads(case.written("plan.json"))["commands"]
    assert (command["move"]["shard"], command["move"]["from_node"]) == (0, "esnode1")
    assert command["move"]["to_node"] != "esnode2"


def test_segments_are_no_listing_of_shards(public):
    answer = public("elasticsearch/segments-among-tables").run("check", "notes.txt")
    assert answer.code == 0 and "no rows of all copies of uecent-20200622/0" in answer.err
    assert "5 partitions" in answer.text


def test_started_shards_without_a_size_are_read(public):
    case = public("elasticsearch/rows-without-docs-and-store")
    case.run("solve", "shards.txt", "nodes.txt", "--level", "none", "-o", "plan.json")
    commands = json.loads(case.written("plan.json"))["commands"]
    nodes = [one["allocate_replica"]["node"] for one in commands]
    assert sorted(nodes) == ["node-1"] * 2 + ["node-2"] * 6


def test_a_node_that_stays_excluded_is_why_replicas_have_none(public):
    case = public("elasticsearch/opensearch-node-stays-excluded")
    answer, commands = ordered(case, files=(*TEXTS, "settings.json"))
    assert (answer.code, commands) == (4, [])
    assert (
        "cluster.routing.allocation.exclude._name: opensearch-cluster-data-nodes-0" in answer.text
    )
    assert "the mean is what the 1 node that takes replicas would carry" in answer.text
    shown = case.run("solve", *TEXTS, "settings.json", "--explain", "logs-2024.05.01/0")
    assert "has no node: 1 node: accepts no replicas; 1 node: spread node 1" in shown.text
    answer, commands = ordered(case, files=(*TEXTS, "settings_after.json"))
    assert answer.code == 0 and targets(commands) == {"opensearch-cluster-data-nodes-0"}
    assert [kind for kind, _ in commands] == ["allocate_replica"] * 9


def test_a_copy_goes_to_the_one_node_below_the_low_watermark(public):
    case = public("elasticsearch/two-of-three-above-low")
    answer, commands = ordered(case, files=("shards.txt", "allocation.txt"))
    assert answer.code == 3  # bytes cannot be as level as asked
    assert "dcavm090pr722 (87.5%), dcbvm090pr721 (87.4%)" in answer.text
    assert targets(commands) == {"dcbvm090pr723"}
    assert Counter(kind for kind, _ in commands) == {"move": 3, "allocate_replica": 1}


class TestRolesByCatNodes:
    """``_cat/nodes`` with its usual columns, which have no disk."""

    CASE = "elasticsearch/roles-by-cat-nodes"

    @pytest.mark.parametrize("disks", [["allocation.txt"], []])
    def test_they_tell_what_holds_data(self, public, disks):
        answer, commands = ordered(public(self.CASE), files=("shards.txt", "nodes.txt", *disks))
        assert (answer.code, commands) == (0, [])
        assert "2 nodes" in answer.text and "no attributes of nodes" in answer.text

    @pytest.mark.parametrize("form", ["text", "json"])
    def test_an_empty_node_gets_shards(self, public, form):
        case = public(self.CASE)
        titles, *rows = (
            line.split() for line in case.path("nodes.txt").read_text().splitlines()[3:]
        )
        rows.append([*rows[0][:-1], "data-3"])
        given = case.folder / "nodes"
        dicts = [dict(zip(titles, row, strict=True)) for row in rows]
        text = "\n".join(map(" ".join, [titles, *rows]))
        given.write_text(text if form == "text" else json.dumps(dicts))
        words = (str(given), "--level", "shards=5%")
        answer, commands = ordered(case, *words, files=("shards.txt",))
        assert answer.code == 0 and targets(commands) == {"data-3"} and len(commands) == 2

    def test_answers_that_were_appended_have_their_headers(self, public):
        case = public(self.CASE)
        text = case.path("nodes.txt").read_text()
        header = "ip heap.percent ram.percent cpu load_1m load_5m load_15m node.role master name"
        more = f"# and another\n{header}\n192.168.113.105 1 2 3 0 0 0 d - data-3\n"
        both = (text + more).encode()
        assert len(ek.read(case.path("shards.txt"), both).nodes) == 3

    def test_remarks_are_no_part_of_names(self, public):
        case = public(self.CASE)
        cluster = ek.read(case.path("shards.txt"), case.path("posted.txt"))
        assert [*cluster.nodes.names] == ["data-1", "data-2"]

    def test_rows_without_nodes_are_refused_once(self, public):
        answer = public(self.CASE).run("check", "without-nodes.txt")
        assert (answer.code, answer.err.count("has no column node")) == (2, 1)
        assert answer.err.count("without-nodes.txt:") == 1


def test_the_folder_shows_disks_before_and_after_and_all_changes(public):
    case = public("elasticsearch/one-node-holds-most")
    assert case.run("plan", "shards.txt", "allocation.txt", "-o", "move").code == 0
    page = case.written("move/README.md")
    assert "14 replicas are copied, 392.0 GiB (420.9 GB) of disk" in page
    assert "| `disk.percent` of PESD34 | 90.8% | 52.5% |" in page
    assert "| `disk.percent` of PESMD169 | 29.5% | 43.1% |" in page
    assert page.count("PESD34 -> ") == 14 and "more, which" not in page
