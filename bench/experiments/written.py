"""Tables of experiments as the CRUSH-ed text prints them."""

from collections.abc import Sequence

from bench.experiments.tables import Change, Size, Spread, Table

HEADS: dict[type, tuple[str, ...]] = {
    Spread: (
        "", "nodes", "replicas", "min", "max", "std", "std/√n",
        "min leaders", "max leaders", "std", "std/√n",
    ),
    Change: (
        "", "nodes", "moved", "moved %", "forced", "extra",
        "leader changes", "changes %", "forced", "extra",
    ),
    Size: ("", "max", "mean", "std", "max/mean"),
}  # fmt: skip


def written(table: Table) -> str:
    """Write a table as text in columns.

    >>> print(written(Table("Sizes", (Size("crush", 12.0, 10.0, 1.5),))))
    Sizes
             max   mean   std  max/mean
    crush  12.00  10.00  1.50     1.200
    """
    if not table.rows:
        return table.title
    lines = [HEADS[type(table.rows[0])], *(_cells(row) for row in table.rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    return "\n".join([table.title, *(_line(line, widths) for line in lines)])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *figures = (
        cell.ljust(width) if k == 0 else cell.rjust(width)
        for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([name, *figures])


def _cells(row: Spread | Change | Size) -> tuple[str, ...]:
    if isinstance(row, Spread):
        root = max(row.nodes, 1) ** 0.5
        return (
            row.what, f"{row.nodes:,}", f"{row.total:,}",
            f"{row.least:,}", f"{row.most:,}", f"{row.std:.3f}", f"{row.std / root:.3f}",
            f"{row.leaders_least:,}", f"{row.leaders_most:,}",
            f"{row.leaders_std:.3f}", f"{row.leaders_std / root:.3f}",
        )  # fmt: skip
    if isinstance(row, Change):
        return (
            row.event, f"{row.nodes:+,}",
            f"{row.moved:,}", f"{100 * row.moved / max(row.total, 1):.2f}",
            f"{row.forced:,}", f"{row.extra:,}",
            f"{row.leader_changes:,}", f"{100 * row.leader_changes / max(row.leaders, 1):.2f}",
            f"{row.forced_changes:,}", f"{row.extra_changes:,}",
        )  # fmt: skip
    ratio = row.most / row.mean if row.mean else 1.0
    return row.what, f"{row.most:.2f}", f"{row.mean:.2f}", f"{row.std:.2f}", f"{ratio:.3f}"
