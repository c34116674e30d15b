"""Longhorn's resources, as users brought them."""

import json
import shutil

import pytest

import evenkeel as ek


def solved(case, *words):
    return case.run("solve", "longhorn.json", *words, "--json")


LATER = ("--now", "2026-02-19T11:00:00Z")


class TestNodeDown:
    def test_before_the_wait_is_over_it_is_said_how_long_it_takes(self, public):
        case = public("longhorn/node-down")
        for words in ((), ("--method", "longhorn"), ("--level", "none")):
            answer = solved(case, *words)
            assert answer.json["forced_moves"] == 0
            told = "12 volumes", "2026-02-19T10:10:00Z", "--now"
            assert all(one in answer.err for one in told)
        assert "12 volumes" in case.run("check", "longhorn.json").err
        assert "12 volumes" in case.run("plan", "longhorn.json", "-o", "plan.json").err

    def test_then_balance_builds_all(self, public):
        answer = solved(public("longhorn/node-down"), *LATER)
        assert answer.json["forced_moves"] == 12
        assert answer.json["broken_before"]["on_dead"] == 12
        assert "on_dead" not in answer.json["broken"]
        assert "12 volumes" not in answer.err

    def test_what_longhorn_itself_leaves_is_said(self, public):
        answer = solved(public("longhorn/node-down"), "--method", "longhorn", *LATER)
        assert answer.json["moves"] == 5
        assert [one[:9] for one in answer.json["warnings"]] == ["7 volumes"]

    def test_the_scope_cluster_leaves_none(self, public):
        words = ("--method", "longhorn", "--option", "scope=cluster", *LATER)
        answer = solved(public("longhorn/node-down"), *words)
        assert answer.json["warnings"] == []
        assert "on_dead" not in answer.json["broken"]

    def test_a_time_is_for_systems_that_wait(self, public):
        answer = public("tables/scylla-last-rack").run(
            "solve", "nodes.csv", "replicas.csv", "rules.toml", *LATER
        )
        assert answer.code == 2
        assert "now" in answer.err


def test_an_eviction_that_has_no_place(public):
    case = public("longhorn/eviction-without-a-place")
    answer = solved(case)
    assert answer.json["status"] == "infeasible"
    told = case.run("solve", "longhorn.json")
    assert "2 spread host 1, 1 must be emptied" in told.text  # not the zones, which are soft
    (said,) = solved(case, "--method", "longhorn").json["warnings"]
    assert said == (
        "1 volume short of replicas that may stay, since no disk may take another replica, though "
        "replicas are missing or to leave (replenishment): pvc-a"
    )


def nodes_of(case, volume, name="plan.json"):
    """Return the nodes of the replicas of a volume in a file that was written."""
    return [
        one["spec"]["nodeID"]
        for one in json.loads(case.written(name))["items"]
        if one["kind"] == "Replica" and one["spec"]["volumeName"] == volume
        if one["spec"]["nodeID"]
    ]


def test_replicas_that_were_heaped_on_one_node_are_spread(public):
    case = public("longhorn/all-replicas-on-one-node")
    assert case.run("check", "longhorn.json").code == 1
    assert solved(case, "-o", "plan.json").json["moves"] == 2
    assert sorted(nodes_of(case, "v")) == ["n1", "n2", "n3"]
    answer = solved(case, "--method", "longhorn")
    assert answer.json["moves"] == 0
    assert any("limited node redundancy: v" in one for one in answer.json["warnings"])


def test_a_plan_says_what_its_target_lacks(public):
    case = public("longhorn/eviction-without-a-place")
    told = case.run("plan", "longhorn.json")
    assert told.code == 4
    assert "the target is infeasible. Proven: no placement meets the hard rules" in told.text
    figures = case.run("plan", "longhorn.json", "--json").json
    assert figures["verdict"] == figures["target"] != ""
    assert public("longhorn/single-replicas").run("plan", "longhorn.json", "--json").json[
        "target"
    ] == ""  # fmt: skip


def test_single_replicas_are_at_rest(public):
    answer = solved(public("longhorn/single-replicas"), "--method", "longhorn")
    assert answer.json["moves"] == 0


@pytest.mark.parametrize("method", ["balance", "longhorn"])
def test_one_of_two_replicas_goes_to_the_other_node(public, method):
    case = public("longhorn/two-large-replicas-on-one-node")
    assert solved(case, "--method", method).json["moves"] == 1
    answer = case.run("solve", "longhorn.json", "--method", method)
    assert "inf%" not in answer.text and "60.98% where rules force less" not in answer.text


def test_a_volume_attached_to_a_node_that_was_removed(public):
    answer = solved(public("longhorn/attached-to-a-removed-node"))
    assert answer.code == 0
    assert "old-node (pvc-0)" in answer.err


def test_tables_beside_resources_are_left_alone(public):
    case = public("longhorn/node-under-pressure")
    alone, both = (case.run("check", *more, "longhorn.json") for more in ((), ("describe.txt",)))
    assert both.code == alone.code and both.out == alone.out
    assert "tables beside resources or answers, which count alone" in both.err


@pytest.mark.parametrize("reason", ["KubernetesNodePressure", "ManagerPodDown"])
def test_replicas_run_on_a_node_that_takes_none(public, tmp_path, reason):
    case = public("longhorn/node-under-pressure")
    text = case.path("longhorn.json").read_text().replace("KubernetesNodePressure", reason)
    (tmp_path / "given.json").write_text(text)
    given = str(tmp_path / "given.json")
    assert case.run("check", given).code == 0
    for method in ("balance", "longhorn"):
        answer = case.run("solve", given, "--method", method, "--level", "none", "--json")
        assert (answer.code, answer.json["moves"], answer.json["warnings"]) == (0, 0, [])
    drained = case.run("solve", given, "--drain", "host=master-60865-0", "--level", "none")
    assert "not kept" in drained.text and "3 replicas on live nodes" in drained.text


@pytest.mark.parametrize("method", ["balance", "longhorn"])
class TestReportsOfPlacement:
    @pytest.mark.parametrize(
        "name",
        [
            "longhorn/node-selector-over-two-of-three-zones",
            "longhorn/three-replicas-on-two-nodes",
            "longhorn/node-without-a-disk-that-takes-any",
        ],
    )
    def test_it_is_at_rest(self, public, name, method):
        assert solved(public(name), "--method", method).json["moves"] == 0

    def test_tags_that_no_node_has_all_of(self, public, method):
        case = public("longhorn/selector-of-two-tags-no-node-has-both")
        answer = solved(case, "--method", method)
        assert ": both" in answer.err
        assert answer.json["moves"] == 1
        assert answer.json["broken"]["unassigned"] == 1

    def test_a_rebuild_heeds_tags_of_disks(self, public, method):
        case = public("longhorn/rebuild-on-tagged-disks")
        assert solved(case, "--method", method, "-o", "plan.json").json["moves"] == 1
        patches = case.written("plan.patches.json")
        assert "n3-ssd-uuid" in patches and "n3-hdd-uuid" not in patches

    def test_no_second_replica_comes_to_a_node_of_two_disks(self, public, method):
        case = public("longhorn/two-disks-a-node-and-hard-anti-affinity")
        assert solved(case, "--method", method, "-o", "plan.json").code == 0
        assert sorted(nodes_of(case, "v")) == ["n1", "n2", "n3"]
        assert len(nodes_of(case, "u")) == 1

    def test_two_of_three_replicas_find_no_second_node(self, public, method):
        answer = solved(public("longhorn/three-replicas-on-one-node"), "--method", method)
        assert answer.code in (3, 4)
        assert answer.json["moves"] == 0
        assert answer.json["broken"]["unassigned"] == 2
        case = public("longhorn/three-replicas-on-one-node")
        assert "1 spread host 1" in case.run("solve", "longhorn.json", "--method", method).text

    def test_nothing_comes_to_a_disk_under_pressure(self, public, method):
        case = public("longhorn/disk-under-pressure")
        assert solved(case, "--method", method, "-o", "plan.json").json["moves"] == 1
        assert "n4" in nodes_of(case, "v") and "n3" not in nodes_of(case, "v")

    def test_a_disk_with_a_new_uuid(self, public, method):
        answer = solved(public("longhorn/disk-with-a-new-uuid"), "--method", method)
        assert "old of n1 (v-r-00000001)" in answer.err
        assert answer.json["moves"] == 1
        assert any("lost" in one for one in answer.json["warnings"])


class TestYaml:
    @pytest.mark.parametrize("method", ["balance", "longhorn"])
    def test_resources_of_v1beta1_leave_a_disk(self, public, method):
        case = public("longhorn/eviction-by-v1beta1-as-yaml")
        answer = case.run("solve", "longhorn.yaml", "--method", method, "-o", "plan.json", "--json")
        assert answer.json["broken_before"] == {"not_kept": 2}
        assert answer.json["moves"] == 2
        steps = json.loads(case.written("plan.patches.json"))["steps"]
        assert {one["target"]["apiVersion"] for one in steps} == {"longhorn.io/v1beta1"}
        made = [one["body"]["spec"]["nodeID"] for one in steps if one["verb"] == "create"]
        assert made[0] == "n3" and made[1] in ("n0", "n3")


@pytest.mark.parametrize("method", ["balance", "longhorn"])
def test_no_disk_is_filled_beyond_the_minimum_available(public, method):
    answer = solved(public("longhorn/zone-without-space"), "--method", method, "--level", "none")
    assert answer.json["moves"] == 0


def test_a_count_that_was_lowered(public):
    answer = solved(public("longhorn/count-lowered"), "--level", "none")
    assert (answer.json["moves"], answer.json["broken"]) == (0, {})
    answer = solved(public("longhorn/count-lowered"), "--method", "longhorn")
    assert answer.json["broken"] == {"surplus": 1}
    assert any("more replicas than wanted" in one for one in answer.json["warnings"])


def test_evicted_replicas_are_no_surplus(public):
    case = public("longhorn/evicted-beside-a-rebuild")
    (said,) = solved(case, "--method", "longhorn").json["warnings"]
    assert said.startswith("1 volume short of replicas that may stay, since a rebuild is under way")
    answer = solved(case, "--level", "none")
    assert (answer.json["moves"], answer.json["broken"]) == (1, {})


@pytest.mark.parametrize("method", ["balance", "longhorn"])
def test_a_drain_that_cannot_finish(public, method):
    case = public("longhorn/drain-with-three-replicas-on-three-nodes")
    answer = solved(case, "--method", method, "--level", "none")
    assert (answer.json["moves"], answer.json["broken"]) == (1, {"not_kept": 1})


def test_nodes_are_level_by_size(public):
    answer = solved(public("longhorn/few-large-volumes"), "--level", "0.1")
    assert answer.json["status"] == "optimal"
    assert answer.json["broken"] == {}
    assert answer.json["level"]["nominal"] <= 16 / (46 / 3) + 1e-9


@pytest.mark.parametrize("method", ["balance", "longhorn"])
def test_a_strict_local_volume_stays(public, method):
    case = public("longhorn/strict-local-evicted")
    answer = solved(case, "--method", method, "--level", "none", "-o", "plan.json")
    assert answer.json["broken"] == {"not_kept": 1}
    assert "strict-local" in answer.err and "pvc-local" in answer.err
    steps = json.loads(case.written("plan.patches.json"))["steps"]
    assert {one["volume"] for one in steps} == {"pvc-a"}


@pytest.mark.parametrize("method", ["balance", "longhorn"])
def test_a_faulted_volume_is_left_alone(public, method):
    answer = solved(public("longhorn/faulted-volume"), "--method", method)
    assert answer.json["moves"] == 0
    assert "pvc-f" in " ".join(answer.json["warnings"])


@pytest.mark.parametrize("method", ["balance", "longhorn"])
def test_a_hard_zone_that_is_lost(public, method):
    case = public("longhorn/hard-zones-one-down")
    answer = case.run(
        "solve", "longhorn.json", "--method", method, "--now", "2024-05-02T10:00:00Z", "--json"
    )
    assert (answer.json["moves"], answer.json["broken"]) == (0, {"on_dead": 1})


@pytest.mark.parametrize("method", ["balance", "longhorn"])
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("longhorn/volume-that-migrates", "being migrated"),
        ("longhorn/listing-without-replicas", "pvc-b"),
    ],
)
def test_volumes_that_cannot_be_judged_stay(public, method, name, word):
    case = public(name)
    answer = solved(case, "--method", method, "--level", "none", "-o", "plan.json")
    assert answer.json["moves"] == 0
    assert word in answer.text
    assert json.loads(case.written("plan.patches.json"))["steps"] == []


@pytest.mark.parametrize("method", ["balance", "longhorn"])
@pytest.mark.parametrize(
    ("name", "joins"),
    [
        ("longhorn/disk-for-each-volume", [("nifi-2", "zone2-w1/nifi-2")]),
        ("longhorn/space-that-is-promised", []),
        ("longhorn/block-disk-and-filesystem", [("v1vol", "ip-3/fs"), ("v2vol", "ip-1/blk")]),
        ("longhorn/disk-with-another-file-system", [("p0", "y4/d"), ("p1", "y4/d")]),
        ("longhorn/new-replica-that-stopped", [("p0", "agent-3/d")]),
        ("longhorn/failed-before-it-was-built", [("p0", "agent-3/d")]),
    ],
)
def test_missing_replicas_go_to_the_only_disk_that_takes_them(public, name, joins, method):
    words = ("--method", method, *LATER, "--table", "moves.json")
    case = public(name)
    answer = case.run("solve", "longhorn.json", *words)
    moves = json.loads(case.written("moves.json"))
    assert sorted((one["partition"], one["to"]) for one in moves) == joins
    assert joins or "cfg4" in answer.text
    assert ("p0-r-00000007: they count for nothing" in answer.text) == ("before" in name)


@pytest.mark.parametrize(
    ("name", "words", "joins"),
    [
        ("longhorn/fourth-replica-on-a-node-that-was-back", ("--level", "none"), ["k3/d"]),
        (
            "longhorn/fourth-replica-on-a-node-that-was-back",
            ("--method", "longhorn", "--option", "replica_auto_balance=best-effort"),
            ["k3/d"],
        ),
        ("longhorn/retried-too-often", ("--level", "none"), ["rpi4-8g-1/d", "x220-1/d"]),
        ("longhorn/retried-too-often", ("--method", "longhorn"), ["rpi4-8g-1/d", "rpi4-8g-3/d"]),
    ],
)
def test_failed_replicas_are_no_obstacle(public, name, words, joins):
    case = public(name)
    answer = case.run("solve", "longhorn.json", *words, "--table", "moves.json")
    moves = json.loads(case.written("moves.json"))
    assert (answer.code, sorted(one["to"] for one in moves)) == (0, joins), answer.text
    assert "they count for nothing" in answer.text
    folder = case.run(
        "plan", "longhorn.json", "--level", "none", "--protocol", "longhorn", "-o", "f"
    )
    assert folder.code == 2 and "delete it, or wait until Longhorn does" in folder.text


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_a_support_bundle(public, packed, tmp_path):
    pytest.importorskip("yaml")
    bundle = public("longhorn/support-bundle").source / "bundle"
    if packed:
        bundle = shutil.make_archive(str(tmp_path / "bundle"), "zip", bundle.parent, "bundle")
    read = ek.read(bundle)
    assert (len(read.nodes), len(read.partitions), len(read.placement.node)) == (3, 8, 16)


def test_objects_one_after_the_other(public):
    read = ek.read(public("longhorn/resources-line-by-line").path("all.jsonl"))
    assert (len(read.nodes), len(read.partitions), len(read.placement.node)) == (3, 8, 16)


def test_a_volume_of_harvester_with_both_replicas_on_its_only_node(public):
    pytest.importorskip("yaml")
    case = public("longhorn/harvester-two-on-one-node")
    document = case.run("solve", "all.yaml", "--method", "longhorn", "--json").json
    assert document["broken"] == {"unassigned": 1, "spread": 1}
    assert any("v1" in line for line in document["warnings"])
    assert ek.solve(ek.read(case.path("all.yaml")), "longhorn").moves == ()


class TestSecondNodeJoins:
    """Two replicas are wanted where volumes have one."""

    WORDS = ("--replicas", "*=2", "--level", "none")

    @pytest.mark.parametrize("words", [("-o", "plan.json"), ("--method", "longhorn")])
    def test_what_cannot_set_the_number_refuses_it(self, public, words):
        answer = public("longhorn/second-node-joins").run(
            "solve", "longhorn.json", *self.WORDS, *words
        )
        assert answer.code == 2 and "numberOfReplicas" in answer.text

    def test_a_folder_sets_it(self, public):
        case = public("longhorn/second-node-joins")
        answer = case.run(
            "plan", "longhorn.json", *self.WORDS, "--protocol", "longhorn", "-o", "move"
        )
        assert answer.code == 0
        text = case.written("move/waves.json")
        assert text.count('\\"numberOfReplicas\\":2') >= 4


@pytest.mark.parametrize("method", ["balance", "longhorn"])
def test_a_failed_replica_on_a_node_that_is_back_is_noted(public, method):
    case = public("longhorn/failed-where-it-returns")
    answer = solved(case, "--method", method, "--level", "none")
    assert (answer.code, answer.json["moves"], answer.json["broken"]) == (0, 0, {})
    note = "short of a replica, since a failed one is built anew where it is, by Longhorn itself"
    assert f"note: 1 volume {note}: test" in answer.err
    assert "auto-balance is disabled" not in answer.text
    assert note in case.run("check", "longhorn.json").text
    assert "built anew" not in solved(case, "--now", "2026-02-12T10:00:10Z").err


@pytest.mark.parametrize("method", ["balance", "longhorn"])
def test_whole_numbers_with_exponents_are_read(public, method):
    pytest.importorskip("yaml")
    cluster = ek.read(public("longhorn/numbers-with-exponents").path("longhorn.yaml"))
    goals = ek.Goals(level=None) if method == "balance" else None
    result = ek.solve(cluster, method, goals=goals)
    moves = [(one.partition[:6], one.source, one.target[:8]) for one in result.moves]
    assert moves == [("pvc-bc", None, "ps501776")]


def test_answers_below_headings_are_all_read(public):
    pytest.importorskip("yaml")
    case = public("longhorn/headings-between-answers")
    cluster = ek.read(*map(case.path, ("volume-and-replicas.yaml", "nodes.yaml")))
    [move] = ek.solve(cluster.drain("host=walmsley"), goals=ek.Goals(level=None)).moves
    assert move.target in ("fordyce/longhorn-root", "selassie/longhorn-root")


@pytest.mark.parametrize(
    ("everywhere", "own", "left"),
    [
        ("least-effort", "ignored", 3),
        ("best-effort", "ignored", 2),
        ("best-effort", "least-effort", 3),
        ("best-effort", "disabled", 4),
    ],
)
def test_a_second_node_takes_replicas_as_documented(public, tmp_path, everywhere, own, left):
    case = public("longhorn/four-replicas-and-a-second-node")
    text = case.path("longhorn.json").read_text()
    text = text.replace('"value":"best-effort"', f'"value":"{everywhere}"')
    text = text.replace('"replicaAutoBalance":"ignored"', f'"replicaAutoBalance":"{own}"')
    (tmp_path / "given.json").write_text(text)
    words = ("--method", "longhorn", "--level", "none", "-o", "plan.json")
    assert case.run("solve", str(tmp_path / "given.json"), *words).code == 0
    assert nodes_of(case, "vol-1").count("node-1") == left


def test_a_detached_volume_is_noted_and_waited_for(public):
    case = public("longhorn/node-given-up-beside-a-detached-volume")
    words = ("longhorn.json", "--drain", "host=worker-4", "--level", "none")
    answer = case.run("plan", *words, "-o", "move")
    assert answer.code == 0 and "4 copies" not in answer.text and "3 copies" in answer.text
    assert "volumes are detached: pvc-b: Longhorn builds replicas of them once" in answer.text


class TestLessThanResources:
    """Answers of the API and tables of kubectl have where replicas are, and no more."""

    @pytest.mark.parametrize(
        ("name", "files", "moves"),
        [
            ("answers-of-the-api", ("volumes.json", "nodes.json"), ["node-4"] * 3),
            ("tables-of-replicas", ("session.txt",), ["ip-10-0-1-214"]),
            ("columns-of-a-runbook", ("session.txt",), ["worker-4", "worker-2"]),
            ("columns-of-a-runbook", ("empty.txt",), ["nuc-3"]),
        ],
    )
    def test_replicas_go_to_the_node_that_lacks_them(self, public, name, files, moves):
        case = public(f"longhorn/{name}")
        answer = case.run("solve", *files, "--level", "10%", "--table", "moves.csv")
        rows = [line.split(",") for line in case.written("moves.csv").splitlines()[1:]]
        assert answer.code == 0 and "no patch is written" in answer.text
        assert [row[4].partition("/")[0] for row in rows] == moves
        assert len({row[1] for row in rows}) == len(rows)

    @pytest.mark.parametrize(
        "name", ["tables-of-replicas session.txt", "answers-of-the-api volumes.json"]
    )
    def test_no_patch_is_written(self, public, name):
        folder, file = name.split()
        answer = public(f"longhorn/{folder}").run("solve", file, "-o", "plan.json")
        assert answer.code == 2 and "get -o json nodes.longhorn.io" in answer.text

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
    @pytest.mark.parametrize(
        "above", ["", "$ kubectl get replicas.longhorn.io -o custom-columns=X\n"]
    )
    def test_columns_without_names_of_replicas(self, order, above):
        rows = [("VOLUME", "NODE", "DISK"), ("pvc-a", "n1", "d1"), ("pvc-a", "n2", "d2"),
                ("pvc-b", "n1", "d1"), ("pvc-b", "n2", "d3")]  # fmt: skip
        text = above + "".join(
            "".join(f"{row[i]:9}" for i in order).rstrip() + "\n" for row in rows
        )
        cluster = ek.read(text.encode())
        names, placed = cluster.nodes.names, cluster.placement
        held = {
            name: {names[n] for n in row} for name, row in zip(
                cluster.partitions.names, placed.nodes.tolist(), strict=True
            )
        }  # fmt: skip
        assert held == {"pvc-a": {"n1/d1", "n2/d2"}, "pvc-b": {"n1/d1", "n2/d3"}}

    def test_what_is_built_or_has_failed_is_no_healthy_replica(self, public):
        cluster = ek.read(public("longhorn/answers-of-the-api").path("degraded.json"))
        healthy = cluster.placement.flags & ek.Flag.HEALTHY != 0
        assert healthy.tolist() == [True, False, False]


def test_cloned_disks_keep_what_they_hold_and_get_nothing(public):
    case = public("longhorn/cloned-nodes")
    note = "one diskUUID on several nodes: 1tcpe-s-k8sw03/default-disk-862cc248b04a55db, 1tcpe"
    answer = case.run("check", "longhorn.json")
    assert answer.code == 0 and note in answer.text
    drain = ("longhorn.json", "--drain", "host=1tcpe-s-k8sw01", "--table", "moves.json")
    assert case.run("solve", *drain).code == 0
    moves = json.loads(case.written("moves.json"))
    assert {one["to"] for one in moves} == {"1tcpe-s-k8sw02/default-disk-9be07c44d1f08a35"}
    torn = ("longhorn.json", "--drain", "host=1tcpe-s-k8sw05", "--level", "none", "-o", "move")
    answer = case.run("plan", *torn)
    assert answer.code == 2 and "pvc-a3: has two replicas on a disk" in answer.text


def test_instance_managers_are_no_replicas(public):
    answer = public("longhorn/everything-of-the-namespace").run("solve", "all.txt")
    assert answer.code == 3 and "2 nodes, 2 alive · 1 partition · 3 replicas" in answer.text


def test_nodes_alone_hold_nothing(public, tmp_path):
    case = public("longhorn/cloned-nodes")
    listed = json.loads(case.path("longhorn.json").read_text())
    listed["items"] = [one for one in listed["items"] if one["kind"] == "Node"]
    (tmp_path / "nodes.json").write_text(json.dumps(listed))
    answer = case.run("check", str(tmp_path / "nodes.json"))
    assert answer.code == 0 and "nothing that is placed: it is in kubectl -n" in answer.text


ONLY = {"a", "g", "h", "e"}
"""Volumes with one healthy replica."""


@pytest.mark.parametrize("words", [("--level", "5%"), ("--drain", "n1/d1", "--level", "none")])
def test_the_only_healthy_replica_stays_until_others_are_built(public, words):
    case = public("longhorn/only-healthy-replica")
    answer = case.run("solve", "longhorn.json", *words, "--table", "moves.json")
    assert "volumes with one healthy replica, which stays" in answer.text
    moves = json.loads(case.written("moves.json"))
    assert {one["partition"] for one in moves} >= ONLY
    assert not {one["partition"] for one in moves if one["from"] == "n1/d1"} & ONLY


def test_longhorn_itself_builds_beside_the_only_healthy_replica(public):
    answer = solved(public("longhorn/only-healthy-replica"), "--method", "longhorn")
    assert answer.json["moves"] == 5
