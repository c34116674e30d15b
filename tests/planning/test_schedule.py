"""The scheduler against its plain twin, and its arrows against any execution that keeps them."""

import numpy as np
import pytest

from evenkeel.planning.list_scheduler import Resources, changes_of, fresh
from evenkeel_kernels.planning.schedule import run_schedule
from tests.naive.planning.schedule import schedule as plain_schedule


def problem(seed):
    """A few changes that claim and give back resources, some of them in debt."""
    rng = np.random.default_rng(seed)
    count, kinds = int(rng.integers(0, 14)), int(rng.integers(1, 6))
    free = rng.integers(-2 if seed % 3 == 0 else 0, 4, kinds).astype(float)
    previous = np.array(
        [c - 1 if c and rng.random() < 0.3 else -1 for c in range(count)], np.int32
    ).reshape(-1)
    rows = []
    for _ in range(count):
        row = []
        for _ in range(2):
            on = rng.permutation(kinds)[: rng.integers(0, min(kinds, 3) + 1)]
            row.append([(int(r), float(rng.integers(1, 4))) for r in sorted(on)])
        rows.append(row)
    duration = rng.integers(0, 4, count).astype(float)
    return free, previous, rows, duration, rng.permutation(count).astype(np.int32)


def run(seed):
    free, previous, rows, duration, by_rank = problem(seed)
    resources = Resources(len(rows))
    resources.add("any", free)
    for c, (claims, returns) in enumerate(rows):
        for charge, pairs in ((resources.claim, claims), (resources.give, returns)):
            for r, amount in pairs:
                charge(np.array([r]), np.array([c]), np.array([amount]))
    changes = changes_of(resources, duration, by_rank, previous)
    made = fresh(changes, free)
    run_schedule(changes, made, by_rank)
    return made


@pytest.mark.small
@pytest.mark.parametrize("seed", range(300))
def test_schedule_agrees_with_plain_twin(seed):
    free, previous, rows, duration, by_rank = problem(seed)
    rank = np.argsort(by_rank)
    changes = [
        {
            "duration": duration[c], "rank": int(rank[c]), "claims": claims, "returns": returns,
            "previous": None if previous[c] < 0 else int(previous[c]),
        }
        for c, (claims, returns) in enumerate(rows)
    ]  # fmt: skip
    start, finish, wave, lacks, sequence, arrows = plain_schedule(changes, free, by_rank.tolist())
    made = run(seed)
    assert [None if np.isnan(x) else x for x in made.start] == start
    assert [None if np.isnan(x) else x for x in made.finish] == finish
    assert made.sequence[: made.counts[0]].tolist() == sequence
    assert [None if x < 0 else x for x in made.lacks.tolist()] == lacks
    assert set(map(tuple, made.arrow[:, : made.counts[1]].T.tolist())) == arrows
    started = [c for c in range(len(rows)) if start[c] is not None]
    assert [int(made.wave[c]) for c in started] == [wave[c] for c in started]


@pytest.mark.parametrize("seed", range(200))
def test_any_execution_that_keeps_the_arrows_keeps_within_resources(seed):
    free, previous, rows, _, _ = problem(seed)
    made = run(seed)
    ahead = {int(c): set() for c in made.sequence[: made.counts[0]]}
    for giver, taker in made.arrow[:, : made.counts[1]].T.tolist():
        ahead[taker].add(giver)
    for c in ahead:
        if previous[c] >= 0:
            ahead[c].add(int(previous[c]))
    rng = np.random.default_rng(seed)
    room, waiting, running, done = free.copy(), sorted(ahead), [], set()
    while waiting or running:
        able = [c for c in waiting if ahead[c] <= done]
        if able and (not running or rng.random() < 0.6):
            c = able[rng.integers(len(able))]
            waiting.remove(c)
            running.append(c)
            for r, amount in rows[c][0]:
                room[r] -= amount
                assert room[r] >= 0.0
        else:
            c = running.pop(rng.integers(len(running)))
            done.add(c)
            for r, amount in rows[c][1]:
                room[r] += amount
