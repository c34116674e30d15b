"""What every tuning value of ``balance`` is worth: ``python -m bench.parameters [NAME...]``.

A name is a field of `Parameters`, all by default, or a constant, as MODULE:NAME with the module as
in ``evenkeel.methods``. Each is put out of effect, where there is such a value, halved and doubled,
one at a time. A case that does not read a field is not solved for it. Beside the answers with the
default a row has the cases that differ, the changes of goals reached, of broken rules and unplaced
replicas, of the sum of the highest nodes, of moves and leader changes (in cases that reach their
goals both times, or never), and the ratio of CPU times.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from importlib import import_module
from math import inf
from typing import Any, NamedTuple

import numpy as np

import evenkeel as ek
from evenkeel.measure.bounds import goals_met
from evenkeel_kernels.levelling.parameters import DEFAULT, Parameters
from tests.judge.case import build
from tests.judge.clusters import FAMILIES, draw
from tests.support.instances import as_cluster, generate

# families of the judge, seeds, and how much larger than usual they are
SMALL = [(family, seed, (1, 1)) for family in FAMILIES for seed in (40, 41)]
LARGER = [(family, 40, (6, 20)) for family in FAMILIES]

# partitions, nodes, zones, fullness, level, and that of leaders
LARGE = [(25_000, 500, 10, 0.7, 0.04, None), (25_000, 500, 10, 0.7, 0.01, 0.1),
         (25_000, 500, 10, 0.7, 0.002, None), (25_000, 500, 10, 0.7, 0.002, 0.1),
         (1_500, 40, 5, 0.9, 0.002, 0.1), (1_500, 40, 5, 0.95, 5e-4, 0.1)]  # fmt: skip

ENDLESS = (
    "walk_steps", "first_steps", "fruitless_reliefs", "many_replicas", "pair_looks", "chunk",
    "pair_stretch", "few_overfull", "MOST_STEPS", "BRIEF_PATIENCE", "BRIEF_STEPS_PER_PLACE",
    "IN_VAIN", "PAIRS",
)  # fmt: skip
ONE = ("ceiling", "move_penalty_falls", "worth_moving", "LONGER", "REACHED", "PARTS", "RELIEVED")
# values that have no effect where that is not 0
OFF = {**dict.fromkeys(ENDLESS, 1 << 40), **dict.fromkeys(ONE, 1), "falls": inf, "patience": inf,
       "most_steps": None}  # fmt: skip

Solve = Callable[[], ek.Result]
HEAD = ("value", "tried", "differ", "goals", "broken", "height", "moves", "leaders", "time")


class Answer(NamedTuple):
    """Figures of a result."""

    met: bool
    broken: int
    height: float
    moves: int
    leads: int
    bits: bytes
    seconds: float


def cases() -> Iterator[Solve]:
    """Yield the solves of the sweep."""
    for drawn in SMALL + LARGER:
        with suppress(ek.InvalidInput):
            cluster, goals, limits = build(draw(*drawn))
            yield lambda c=cluster, g=goals, m=limits: ek.solve(c, goals=g, limits=m)
    for partitions, nodes, zones, full, level, leads in LARGE:
        cluster, goals = as_cluster(generate(partitions, nodes, zones, util=full)), ek.Goals(level)
        goals = goals if leads is None else ek.Goals(level, leaders=leads)
        yield lambda c=cluster, g=goals: ek.solve(c, goals=g)


def answer(solve: Solve) -> Answer:
    """Solve and take the figures."""
    began = time.thread_time()
    found = solve()
    seconds, ratio, placed = time.thread_time() - began, found.levelness.ratio, found.placement
    return Answer(
        goals_met(found.levelness, found.bounds), found.audit.hard + len(found.unplaced_replicas),
        float(ratio[np.isfinite(ratio)].max(initial=0.0)), len(found.moves),
        len(found.leader_changes), placed.node.tobytes() + placed.leader.tobytes(), seconds,
    )  # fmt: skip


class _Recorder(Parameters):
    """Parameters that note which of them are read, other than to be copied."""

    read: set[str] = set()

    def __getattribute__(self, name: str) -> Any:
        if "dataclasses" not in sys._getframe(1).f_code.co_filename:
            _Recorder.read.add(name)
        return object.__getattribute__(self, name)


def fields_read(solve: Solve) -> set[str]:
    """Return the names of the fields that a solve reads."""
    _Recorder.read = set()
    with changed(DEFAULT, "__class__", _Recorder):
        solve()
    return _Recorder.read


@contextmanager
def changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give a frozen object, or a module, another value for a while."""
    before = getattr(owner, name)
    object.__setattr__(owner, name, value)
    try:
        yield
    finally:
        object.__setattr__(owner, name, before)


def tried(owner: Any, name: str, called: str) -> Any:
    """Return the value that a default is replaced by; None where there is none."""
    value, base = getattr(owner, name), 1.0 if name == "ceiling" else 0.0
    if called == "off":
        return OFF.get(name, type(value)(0))
    return type(value)(base + (value - base) * (0.5 if called == "halved" else 2.0))


def row(name: str, value: str, pairs: list[tuple[Answer, Answer]]) -> str:
    """Return a row of the table, of answers with the default and with another value."""

    def sums(one: str, alike: bool = False) -> tuple[float, float]:
        some = [pair for pair in pairs if pair[0].met == pair[1].met or not alike]
        return sum(getattr(was, one) for was, _ in some), sum(getattr(now, one) for _, now in some)

    more = {one: now - was for one in ("met", "broken", "height") for was, now in [sums(one)]}
    share = {one: now / max(was, 1e-9) if now else 1.0 for one in ("moves", "leads", "seconds")
             for was, now in [sums(one, one != "seconds")]}  # fmt: skip
    differ = sum(was.bits != now.bits for was, now in pairs)
    cells = [
        name, value, f"{differ} of {len(pairs)}", f"{more['met']:+d}", f"{more['broken']:+d}",
        f"{more['height']:+.4f}", f"{100 * share['moves'] - 100:+.2f} %",
        f"{100 * share['leads'] - 100:+.2f} %", f"{share['seconds']:.2f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def owned(name: str) -> tuple[Any, str]:
    """Return the object that a name belongs to, and its own name there."""
    module, _, constant = name.rpartition(":")
    return (import_module(f"evenkeel.methods.{module}") if module else DEFAULT), constant


def main(names: list[str]) -> None:
    """Print the table of all fields, or of what is named."""
    read = {solve: fields_read(solve) for solve in cases()}
    default = {solve: answer(solve) for solve in read}
    print(f"| {' | '.join(HEAD)} |\n|---|---{'|---:' * (len(HEAD) - 2)}|")
    for called in ("off", "halved", "doubled"):
        for owner, name in map(owned, names or [one.name for one in fields(Parameters)]):
            value = tried(owner, name, called)
            if value is None:
                continue
            some = [one for one, by in read.items() if owner is not DEFAULT or name in by]
            with changed(owner, name, value):
                pairs = [(default[solve], answer(solve)) for solve in some]
            print(row(name, f"{called}: {value:g}", pairs), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
