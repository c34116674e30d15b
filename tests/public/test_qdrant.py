"""What operators of Qdrant reported, and what is right for each."""

import json
from collections import Counter

import pytest

import evenkeel as ek

EMPTY, FULL = 9834046559507417430, 11532566549086892528


def moves(case, *files_and_words, code=0):
    """The moves that were written, as (collection, shard, from, to)."""
    answer = case.run("solve", *files_and_words, "-o", "plan.json")
    assert answer.code == code, answer.text
    rows = json.loads(case.written("plan.json"))
    return [
        (one["collection"], *(one["request"]["move_shard"][key]
                              for key in ("shard_id", "from_peer_id", "to_peer_id")))
        for one in rows
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "file", "partitions"),
    [
        ("qdrant/all-shards-on-one-node", "session.txt",
         ["test_collection_1/0", "test_collection_1/1"]),
        ("qdrant/answers-of-three-pods", "session.txt", [f"question/{i}" for i in range(3)]),
        ("qdrant/loop-over-ports", "lines.txt", [f"test_collection/{i}" for i in range(3)]),
        ("qdrant/session-of-requests", "session.txt", ["a/0", "a/1", "b/0"]),
    ],
)  # fmt: skip
def test_a_collection_is_named_after_its_request(public, case, file, partitions):
    assert [*ek.read(public(case).path(file)).partitions.names] == partitions


def test_other_peers_are_asked_for(public):
    answer = public("qdrant/all-shards-on-one-node").run("solve", "session.txt", "--json")
    assert (answer.code, answer.json["moves"]) == (0, 0)
    assert "no answer of GET /cluster" in answer.err


def test_shards_on_which_peers_disagree_stay(public):
    case = public("qdrant/answers-of-three-pods")
    assert moves(case, "session.txt", "--drain", "434571113528785", code=3) == []
    answer = case.run("check", "session.txt")
    assert "left alone (question/0, question/1, question/2)" in answer.err


def test_one_shard_on_each_of_three_peers_is_level(public):
    assert moves(public("qdrant/loop-over-ports"), "lines.txt") == []


def test_numbers_that_a_tool_has_rounded_are_those_of_the_cluster(public):
    case = public("qdrant/rounded-numbers")
    files = ("cluster.json", "wiki@1.json")
    assert [*ek.read([*map(case.path, files)]).nodes.names] == [str(EMPTY), str(FULL)]
    ((name, _, source, target),) = moves(case, *files)
    assert (name, source, target) == ("wiki", FULL, EMPTY)


def test_shards_are_spread_after_the_factor_was_lowered(public):
    found = moves(public("qdrant/factor-lowered"), "cluster.json", "wiki.json")
    assert [source for _, _, source, _ in found] == [2] * 4
    assert sorted(target for *_, target in found) == [1, 1, 3, 3]


def test_numbers_beyond_63_bits_are_exact(public):
    words = ("test@0.json", "--drain", "1995564390118081002")
    ((name, shard, source, target),) = moves(public("qdrant/twenty-digits"), *words)
    assert (name, shard, source) == ("test", 0, 1995564390118081002)
    assert target in (3084118168649519856, 10993045052641065997)


def test_requests_and_answers_of_a_session_are_told_apart(public):
    found = moves(public("qdrant/session-of-requests"), "session.txt")
    assert len(found) == 1 and found[0][2:] == (1, 2)


def test_a_factor_under_another_name_is_noted(public):
    case = public("qdrant/factor-under-another-name")
    answer = case.run("check", "wiki@0.json", "collection.json")
    assert answer.code == 0 and "without shards (collection), which is not used" in answer.err
    cluster = ek.read([case.path("wiki@0.json"), case.path("wiki.json")])
    assert cluster.partitions.replicas.tolist() == [2, 1, 1]  # shards with a key have their own


def test_telemetry_of_the_cluster_has_all_peers(public):
    case = public("qdrant/telemetry")
    cluster = ek.read(case.path("cluster.json"))
    assert cluster.nodes.alive.tolist() == [True, True, False]
    assert cluster.partitions.load.voter[:, 0].tolist() == [310386, 358500]
    # the replica on the peer that is silent is made anew on the one that lacks it
    answer = case.run("solve", "cluster.json", "-o", "plan.json")
    assert answer.code == 0, answer.text
    assert [one["request"] for one in json.loads(case.written("plan.json"))] == [
        {"replicate_shard": {"shard_id": 1, "from_peer_id": 2, "to_peer_id": 1}},
        {"drop_replica": {"shard_id": 1, "peer_id": 3}},
    ]


def test_telemetry_of_a_peer_names_the_others(public):
    found = moves(public("qdrant/telemetry"), "peer.json")
    assert [(name, *peers) for name, _, *peers in found] == [("benchmark", 1, 2)] * 2


def test_telemetry_without_the_cluster_is_of_the_peers_whose_points_it_has(public):
    cluster = ek.read(public("qdrant/telemetry").path("collections.json"))
    assert [*cluster.partitions.names] == ["benchmark/0", "benchmark/1"]
    assert cluster.nodes.alive.all() and len(cluster.nodes) == 2


def test_results_alone_are_read(public):
    case = public("qdrant/results-alone")
    cluster = ek.read([case.path("cluster.json"), case.path("orion.json")])
    assert [*cluster.nodes.names] == ["101", "202", "303", "404"]
    assert cluster.placement.node.tolist() == [0, 1, 1, 3]


def test_replicas_of_before_there_were_states_are_active(public):
    case = public("qdrant/before-there-were-states")
    files = ("cluster.json", *(f"test_collection@{i}.json" for i in range(3)))
    assert case.run("check", *files).code == 0
    emptied = 10993045052641065997
    ((_, shard, source, target),) = moves(case, *files, "--drain", str(emptied))
    assert (shard, source) == (2, emptied)
    assert target in (1995564390118081002, 3084118168649519856)


def written(case, *files_and_words, code):
    """Return the answer, and the requests that were written."""
    answer = case.run("solve", *files_and_words, "-o", "plan.json")
    assert answer.code == code, answer.text
    return answer, [one["request"] for one in json.loads(case.written("plan.json"))]


def test_replicas_of_a_dead_peer_stay_where_no_other_peer_is_left(public):
    case = public("qdrant/one-of-three-peers-is-killed")
    answer, found = written(case, "cluster.json", "docs.json", "docs@1.json", "docs@2.json", code=4)
    assert found == [] and "the last 12 of the replicas find no node" in answer.text


def test_second_replicas_are_made_without_giving_one_up(public):
    case = public("qdrant/more-replicas-by-hand")
    files = ("cluster.json", "wiki.json", *(f"wiki@{i}.json" for i in range(3)))
    _, found = written(case, *files, "--replicas", "wiki=2", code=0)
    made = [one["replicate_shard"] for one in found]
    assert sorted(one["shard_id"] for one in made) == [*range(6)]
    assert {*Counter(one["to_peer_id"] for one in made).values()} == {2}


def test_a_peer_is_emptied_but_for_what_is_being_copied(public):
    case = public("qdrant/drained-during-a-transfer")
    files = ("cluster.json", *(f"docs@{i}.json" for i in range(4)))
    answer, found = written(case, *files, "--drain", "host=qdrant-3.qdrant-headless", code=3)
    assert [one["move_shard"]["shard_id"] for one in found] == [2, 7, 10, 11]
    assert {one["move_shard"]["from_peer_id"] for one in found} == {404}
    assert "being copied; they are left alone (docs/3)" in answer.text


class TestShardKeyAtItsSite:
    FILES = ("cluster.json", "readings.json")

    @pytest.mark.parametrize("form", ["group=readings/{}_shard", "readings/{}_shard"])
    def test_each_key_goes_to_its_peer(self, public, form):
        case = public("qdrant/shard-key-at-its-site")
        asked = [f"{form.format(one)}:host=qdrant-{one}" for one in ("site1", "main")]
        answer = case.run(
            "solve", *self.FILES, "--require", asked[0], "--require", asked[1], "-o", "plan.json"
        )
        moves = [one["request"]["move_shard"] for one in json.loads(case.written("plan.json"))]
        assert answer.code == 0
        assert {one["shard_id"]: one["to_peer_id"] for one in moves} == {
            1: 6011432157330011, 2: 6011432157330377,
        }  # fmt: skip

    def test_a_key_alone_is_refused_with_its_group(self, public):
        case = public("qdrant/shard-key-at-its-site")
        answer = case.run("solve", *self.FILES, "--require", "site1_shard:host=qdrant-site1")
        assert answer.code == 2 and "did you mean 'group=readings/site1_shard'?" in answer.text


def test_the_console_names_a_collection_without_a_slash(public):
    case = public("qdrant/request-of-the-console")
    assert "(wiki/1)" in case.run("check", "asked.txt").text
