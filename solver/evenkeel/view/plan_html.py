"""What notebooks show of a plan: what it comes to, its waves, and what is blocked."""

from evenkeel.model.runtime.figures import duration
from evenkeel.planning.account.held_to import held_to
from evenkeel.planning.plan import Plan
from evenkeel.planning.steps import StepKind
from evenkeel.view.bars import bar
from evenkeel.view.layout import SHOWN_ROWS
from evenkeel.view.markup import box, heading, line, shortened, signs, table
from evenkeel.view.plan_report import summary

CHART = 24
"""Characters of a bar."""


def plan_html(plan: Plan) -> str:
    """Write what a plan is.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> "2 copies" in plan_html(ek.solve(c, goals=ek.Goals(level=0.0)).plan())
    True
    """
    steps = plan.steps
    copied = steps.kind == StepKind.COPY
    counts = [int(copied[wave].sum()) for wave in plan.waves]
    rows = [
        (
            f"{i + 1}", f"{len(wave):,}", f"{counts[i]:,}",
            duration(float(steps.start[wave].min())), duration(float(steps.finish[wave].max())),
            signs(bar(counts[i], max(counts), CHART)),
        )
        for i, wave in enumerate(plan.waves[:SHOWN_ROWS])
    ]  # fmt: skip
    more = len(plan.waves) - SHOWN_ROWS
    blocked = [f"blocked: {shortened(str(one), 120)}" for one in plan.blocked[:SHOWN_ROWS]]
    unsaid = len(plan.blocked) - SHOWN_ROWS
    return box(
        [
            heading("Plan", summary(plan)),
            line(held_to(plan)),
            table(("wave", "steps", "copies", "start", "finish", "copies"), rows),
            *([line(f"... and {more:,} more waves")] if more > 0 else []),
            *map(line, blocked),
            *([line(f"... and {unsaid:,} more")] if unsaid > 0 else []),
        ]
    )
