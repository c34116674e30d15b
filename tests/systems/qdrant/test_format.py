"""Qdrant: answers of peers are read, and shards are moved by folders of requests."""

import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.intake.stranded import stranded
from evenkeel.model.placement import Flag
from tests.support.dumps.qdrant import answers, cluster_of, encoded
from tests.support.systems.bench import System


def read(*rows):
    return ek.read(encoded(rows))


def left_alone(cluster):
    return bool(cluster.placement.flags[0] & Flag.PINNED)


@pytest.mark.parametrize(
    ("states", "transfers", "more", "kept"),
    [
        ({}, (), {}, False),
        ({(0, 1): "Initializing"}, (), {}, True),
        ({(0, 1): "Dead"}, (), {}, True),
        ({}, ({"shard_id": 0, "from": 1, "to": 3},), {}, True),
        ({}, (), {"resharding_operations": [{"shard_id": 5}]}, True),
    ],
)
def test_what_qdrant_changes_itself_is_left_alone(states, transfers, more, kept):
    rows = answers({0: [1, 2]}, [1, 2], states, transfers, **more)
    assert left_alone(read(cluster_of([1, 2, 3]), *rows)) is kept


def test_a_shard_whose_own_peers_are_active_is_not_lost():
    rows = answers({0: [2, 3]}, [2, 3]) + answers(
        {0: [2, 3]}, [1], {(0, 2): "Dead", (0, 3): "Dead"}
    )
    cluster = read(cluster_of([1, 2, 3]), *rows)
    assert left_alone(cluster) and not stranded(cluster.placement).any()
    notes = " ".join(cluster.native["notes"])
    assert "some peers and not in those of others" in notes and "restores" not in notes


def test_a_file_names_its_collection(tmp_path):
    file = tmp_path / "a%20b@peer1.json"
    file.write_text(json.dumps(answers({7: [1]}, [1])[0]))
    assert [*ek.read(file).partitions.names] == ["a b/7"]
    again = file.with_name("a%20b.json")
    again.write_bytes(file.read_bytes())
    with pytest.raises(ek.InvalidInput, match="already"):
        ek.read([file, again])


def test_points_that_no_peer_gives_count_as_the_mean():
    cluster = read(*answers({0: [1], 1: [1]}, [1]), {"collection": "other", **answers({}, [1])[0]})
    assert cluster.partitions.load.voter[:, 0].tolist() == [100.0, 101.0]
    rows = answers({0: [1], 1: [2]}, [1])
    rows[0]["result"]["remote_shards"][0].pop("points_count")
    assert read(*rows).partitions.load.voter[:, 0].tolist() == [100.0, 100.0]


@pytest.fixture
def system(tmp_path):
    shards = [{"collection": name, "shard": s, "peers": [1, 2 + s % 2], "copies": []}
              for name in ("wiki", "n%3F") for s in range(6)]  # fmt: skip
    state = {"shards": shards, "peers": [1, 2, 3, 4], "pace": 2}
    return System(tmp_path / "qdrant", "qdrant", ["curl"], state)


def planned(system):
    down = system.state.get("down", [])
    rows = []
    for name in ("wiki", "n?"):
        own = [one for one in system.state["shards"] if one["collection"] in (name, "n%3F")]
        own = [one for one in own if (one["collection"] == "wiki") == (name == "wiki")]
        states = {(one["shard"], p): "Dead" for one in own for p in one["peers"] if p in down}
        given_ = answers({one["shard"]: one["peers"] for one in own}, [1], states)[0]
        rows.append({"collection": name, **given_})
    cluster = read(cluster_of([1, 2, 3, 4]), *rows)
    result = ek.solve(cluster, goals=ek.Goals(level=0.05))
    return ek.plan(cluster, result, throttle=ek.Throttle(node_in=2))


def held(system):
    return [sorted(one["peers"]) for one in system.state["shards"]]


def test_a_folder_is_carried_out_and_undone(system):
    before, plan = held(system), planned(system)
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"breaks": 2}
    assert system.run(folder, QDRANT="http://q").returncode == 1
    done = system.run(folder, QDRANT="http://q")
    assert done.returncode == 0, done.stderr
    counts = np.bincount(np.concatenate(held(system)), minlength=5)[1:]
    assert counts.tolist() == [6, 6, 6, 6]
    back = system.run(folder / "undo", QDRANT="http://q")
    assert back.returncode == 0, back.stderr
    assert held(system) == before


def test_replicas_on_a_peer_that_is_down_are_made_anew(system):
    system.state = system.state | {"down": [2]}
    folder = ek.write_plan_folder(planned(system), system.folder / "move")
    done = system.run(folder, QDRANT="http://q")
    assert done.returncode == 0, done.stderr
    assert all(2 not in one and len(one) == 2 for one in held(system))
    assert any("drop_replica" in one for one in system.calls)
