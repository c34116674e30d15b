"""Judge sweeps and pipelines over a case by the requirements on a solve."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import evenkeel as ek
from evenkeel.control.executors import InlineWorkers
from evenkeel.control.pipeline import Pipeline
from tests.judge.case import Case, build
from tests.judge.mending import left_undone
from tests.judge.verdict import Finding, but_wishes, judged, standing_of, worse
from tests.judge.world import NON_VOTER, Standing, World

SCENARIOS = 3  # nodes of a case that a sweep loses, one at a time
STEPS = 6  # steps in which a pipeline should come to rest


def of_sweep(case: Case) -> Iterator[Finding]:
    """Lose some nodes, one at a time, and judge each repair and each figure of the sweep."""
    cluster, goals, limits = build(case)
    there = [n for n in range(len(cluster.nodes)) if World(case).carries[n]][:SCENARIOS]
    lost = [ek.Changes(down=[n]) for n in there]
    swept = ek.sweep(cluster, lost, goals=goals, limits=limits, seed=case.seed)
    for i, n in enumerate(there):
        if swept.status[i] == "failed":
            yield Finding("a scenario failed", f"{swept.names[i]}: {swept.results[i].message}")
            continue
        result = swept.result(i)
        world = World(without(case, n))
        after = standing_of(result.placement)
        for found in (*judged(world, result), *left_undone(world, after)):
            yield _said(found, f"without node {n}: {found.where}")
        yield from _misreported(swept, i, world, after, result)


def _said(found: Finding, where: str) -> Finding:
    """Say of a finding where it is in other words."""
    return found._replace(where=where)


def without(case: Case, n: int) -> Case:
    """Return a case of which node ``n`` is dead."""
    given: dict[str, Any] = dict(case.cluster)
    world = World(case)
    for name in ("alive", "keeps"):
        flags = list(getattr(world, name))
        flags[n] = False
        given[name] = flags
    for name in ("accepts", "leads"):
        given[name] = list(getattr(world, name))
    return replace(case, cluster=given)


def _misreported(
    swept: ek.Sweep, i: int, world: World, after: Standing, result: ek.Result
) -> Iterator[Finding]:
    """Yield figures of a sweep that are not those of the repair."""

    def lost(*standings: Standing) -> int:
        """Count the partitions of which a replica is on a dead node, and none lives."""
        rows = [[[n for n in at.rows[p] if n >= 0] for at in standings]
                for p, want in enumerate(world.wanted) if want > 0]  # fmt: skip
        return sum(any(row and not world.live(row) for row in of) for of in rows)

    for name, told, is_so in (
        ("moves", int(swept.moves[i]), result.comparison.moves),
        ("hard violations", int(swept.hard[i]), result.audit.hard),
        ("partitions lost before", int(swept.lost[i, 0]), lost(world.came)),
        ("partitions lost after", int(swept.lost[i, 1]), lost(world.came, after)),
        ("what fits", bool(swept.fits[i]), result.audit.hard == 0),
        ("status", swept.status[i], result.status),
    ):
        if told != is_so:
            yield Finding(f"sweep misreports {name}", f"{told} told, {is_so} are")


def of_pipeline(case: Case) -> Iterator[Finding]:
    """Let a pipeline come to rest, lose a node, let it come to rest again, and judge both."""
    if any(NON_VOTER in roles for roles in World(case).roles):
        return  # an assignment does not tell who votes
    with Pipeline("balance", workers=InlineWorkers(), seed=case.seed) as pipeline:
        after, found = _at_rest(pipeline, case, "at first")
        yield from found
        there = [n for n in range(World(case).nodes) if World(case).carries[n]]
        if there and after is not None:
            gone = without(_moved(case, after), there[0])
            yield from _at_rest(pipeline, gone, f"without node {there[0]}")[1]


def _at_rest(pipeline: Pipeline, case: Case, when: str) -> tuple[Standing | None, list[Finding]]:
    """Run a pipeline until it comes to rest; where that is, and what is wrong with it."""
    world, last, found = World(case), None, []
    cluster = build(case)[0]
    for _ in range(STEPS):
        step = pipeline.run(cluster)
        found += [Finding("a calculation of a pipeline failed", f"{when}: {failure}")
                  for failure in step.failures]  # fmt: skip
        if last is not None and last.same_as(step.assignment):
            break
        last = step.assignment
    else:
        found.append(Finding("a pipeline does not come to rest", f"{when}: {STEPS} steps"))
    node, first = step.assignment.node, step.assignment.first
    after = in_slots(world, node, first, step.placement)
    if after is None:
        beyond = "more replicas than slots are free"
        for p in _beyond_need(world, node, first):
            found.append(Finding(beyond, f"{when}: partition {p}"))
        return None, found
    return after, [
        *found,
        *(
            _said(one, f"{when}: {one.where}")
            for one in but_wishes(world, after, worse(world, after))
        ),
    ]


def _moved(case: Case, after: Standing) -> Case:
    """Return a case of which the replicas have moved to where a pipeline wants them."""
    given, world = dict(case.cluster), World(case)
    given["placement"] = [n for row in after.rows for n in row]
    given["first"] = np.cumsum([0, *map(len, after.rows)]).tolist()
    given["replicas"] = world.wanted
    given["leader"] = after.leaders
    if "flags" in given:
        given["flags"] = [int(n >= 0 and n in world.pinned[p])
                          for p, row in enumerate(after.rows) for n in row]  # fmt: skip
    return replace(case, cluster=given)


def _beyond_need(world: World, node: Any, first: Any) -> list[int]:
    """List partitions with more replicas than free slots, and than ``min_active`` takes in all."""
    # an overwrite adds what ``min_active`` asks for until those that were lost are back
    found = []
    for p, was in enumerate(world.came.rows):
        held = node[first[p] : first[p + 1]].tolist()
        stays = [n for n in was if n in held or (n in world.pinned[p] and not world.serves[n])]
        free = len(was) - len(stays)
        needed = min(world.min_active[p], world.wanted[p])
        if len(set(held) - set(was)) > free and world.live(held) > needed:
            found.append(p)
    return found


def in_slots(world: World, node: Any, first: Any, placement: ek.Placement) -> Standing | None:
    """Return an assignment in the slots of a case; None where it has more replicas than slots."""
    # who stays keeps its slot
    rows, leaders = [], []
    led = placement.leader_node
    for p, was in enumerate(world.came.rows):
        held = node[first[p] : first[p + 1]].tolist()
        if len(held) > len(was):
            return None
        row = [-1] * len(was)
        for slot, n in enumerate(was):
            if n in held:
                row[slot] = n
                held.remove(n)
            elif n in world.pinned[p] and not world.serves[n]:
                row[slot] = n  # an assignment lists no dead node, nor does it order a move
        if len(held) > row.count(-1):
            return None
        for n in held:
            row[row.index(-1)] = n
        rows.append(row)
        leader = int(led[p]) if world.has_leaders else -1
        leaders.append(row.index(leader) if leader >= 0 else -1)
    return Standing(rows, leaders)
