"""Count how often results on many small clusters equal the best that CP-SAT finds."""

from collections.abc import Iterator

from tests.judge.beside import Beside

# what is measured, and what it must reach
TARGETS = {
    "mean moves above the fewest": "<= 0.05",
    "most moves above the fewest": "<= 2",
    "goals reached where they can be": ">= 99 %",
    "mendable but unmended": "<= 0.1 %",
    "placeable but unplaced": "<= 0.1 %",
    "repairs under budgets, of the best": ">= 98 %",
    "order of repairs inverted": "0",
}


def figures(tried: list[Beside]) -> dict[str, tuple[float | None, int]]:
    """Return each figure, shares as parts of 1, and of how many cases it is."""
    above = [one.above for one in tried if one.above is not None]
    reached = [one.reached for one in tried if one.reached is not None]
    mended = [one.mended for one in tried if one.mended is not None]
    repairs = [one.repairs for one in tried if one.repairs is not None]
    free = [one for one in repairs if not one.limited and one.best > 0]
    limited = [one for one in repairs if one.limited and one.best > 0]
    could = sum(one.best for one in limited)
    done = sum(min(one.own, one.best) for one in limited)
    found = (
        (_mean(above), len(above)),
        (max(above, default=None), len(above)),
        (_mean(reached), len(reached)),
        (_mean([not one for one in mended]), len(mended)),
        (_mean([one.own < one.best for one in free]), len(free)),
        (done / could if could else None, len(limited)),
        (sum(one.inverted for one in limited) if limited else None, len(limited)),
    )
    return dict(zip(TARGETS, found, strict=True))


def _mean(values: list[int] | list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def table(tried: list[Beside]) -> Iterator[str]:
    """Yield the figures as lines of a table, and how many cases were left undecided."""
    yield f"{'beside CP-SAT':36} {'is':>9} {'target':>9} {'cases':>7}"
    for name, (value, cases) in figures(tried).items():
        target = TARGETS[name]
        yield f"{name:36} {_shown(value, target):>9} {target:>9} {cases:7,}"
    for question in ("mending", "goals", "repairs"):
        count = sum(question in one.undecided for one in tried)
        yield f"{f'not decided by CP-SAT: {question}':36} {count:9,}"


def _shown(value: float | None, target: str) -> str:
    if value is None:
        return "-"
    if target.endswith("%"):
        return f"{100 * value:.2f} %"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
