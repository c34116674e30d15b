"""``evenkeel diff``: list the moves from one description of a cluster to another."""

import argparse
from typing import TYPE_CHECKING, Any

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.commands.plan import note_left_alone
from evenkeel.cli.output import DONE, complain, emit, list_kinds
from evenkeel.cli.waiting import Waiting
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.runtime.printable import counted, some_of

if TYPE_CHECKING:
    from evenkeel.measure.audit import Audit
    from evenkeel.result_rows import DiskMove, LeaderChange, Move, Removal

SHOWN = 10  # moves, and leader changes, that are listed one by one; the rest is counted


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "tell what moves, and who leads, between two descriptions of a cluster"
    parser = add_command(commands, "diff", summary, run)
    parser.add_argument(
        "before", metavar="BEFORE",
        help="the cluster as it is, in one file; in several with --target",
    )  # fmt: skip
    parser.add_argument(
        "after", metavar="AFTER", nargs="*",
        help="where everything should be, or came to be, in files that name the same partitions, "
        "or some of them; with --target more files of BEFORE",
    )  # fmt: skip
    parser.add_argument(
        "--target", action="append", metavar="FILE",
        help="a file of AFTER, where BEFORE has several; may be given several times",
    )  # fmt: skip
    parser.add_argument("--format", metavar="FORMAT", help="format of BEFORE; by its content")
    parser.add_output()
    parser.examples = (
        "evenkeel diff now.npz placed.npz",
        "evenkeel diff described.txt racks.json --target reassignment.json",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.measure.audit import audit
    from evenkeel.measure.compare import compare
    from evenkeel.result_rows import (
        disk_moves_of,
        leader_changes_of,
        led_elsewhere,
        moves_of,
        removals_of,
    )
    from evenkeel.systems.plans.targets import beside_by_name, grown_by_name
    from evenkeel.systems.registry import read

    before, files = [arguments.before], arguments.after
    if arguments.target:
        before, files = [*before, *files], arguments.target
    if not files:
        raise InvalidInput([Fault("AFTER", [], "names no file: give one behind BEFORE")])
    with Waiting(arguments.quiet) as waiting:
        waiting.doing(f"reading {', '.join(before)}")
        cluster = read(before, format=arguments.format)
        waiting.doing(f"reading {', '.join(files)}")
        wanted = read(files)
        cluster, joined = grown_by_name(cluster, wanted)
        if joined and not arguments.quiet:
            complain(
                f"note: nodes of AFTER that BEFORE has not, taken to join: {some_of(joined, str)}"
            )
        cluster, after = beside_by_name(cluster, wanted)
        note_left_alone(arguments, cluster, wanted, "AFTER", "are compared as if they stayed")
        compared = compare(cluster, cluster.placement, after)
        moves = moves_of(cluster, after, compared.joined.nonzero()[0])
        inside = disk_moves_of(cluster, after)
        removals = removals_of(cluster, after)
        leaders = leader_changes_of(cluster, after, led_elsewhere(cluster, after))
        audits = audit(cluster, cluster.placement), audit(cluster, after)

    def figures() -> dict[str, Any]:
        return {
            "moves": compared.moves,
            "disk_moves": len(inside),
            "leader_changes": len(leaders),
            "removed": compared.removed,
            "bytes_moved": compared.bytes_moved,
            "broken_before": {kind: n for kind, n in audits[0].counts.items() if n},
            "broken": {kind: n for kind, n in audits[1].counts.items() if n},
            "moved": [vars(one) for one in moves],
            "moved_inside": [vars(one) for one in inside],
            "given_up": [vars(one) for one in removals],
            "led_elsewhere": [vars(one) for one in leaders],
        }

    return emit(
        arguments, DONE, figures=figures,
        text=lambda: "\n".join(_lines(moves, inside, removals, leaders, audits)),
    )  # fmt: skip


def _lines(
    moves: "tuple[Move, ...]",
    inside: "tuple[DiskMove, ...]",
    removals: "tuple[Removal, ...]",
    leaders: "tuple[LeaderChange, ...]",
    audits: "tuple[Audit, Audit]",
) -> list[str]:
    """Return what differs, the first of it one by one."""
    led = counted(len(leaders), "partition")
    removed = f"{counted(len(removals), 'replica')} given up, " if removals else ""
    within = f"{counted(len(inside), 'move')} inside nodes, " if inside else ""
    lines = [f"{counted(len(moves), 'move')}, {within}{removed}{led} that another node leads"]
    for several in (
        [
            f"{one.partition}[{one.slot}]  {one.source or 'nowhere'} -> {one.target}"
            for one in moves
        ],
        [
            f"{one.partition}[{one.slot}] inside nodes  {one.source} -> {one.target}"
            for one in inside
        ],
        [f"{one.partition}[{one.slot}]  {one.source} -> nowhere" for one in removals],
        [
            f"{one.partition} leads  {one.source or 'nowhere'} -> {one.target or 'nowhere'}"
            for one in leaders
        ],
    ):
        lines += [f"  {line}" for line in several[:SHOWN]]
        lines += [f"  ... and {len(several) - SHOWN:,} more"] if len(several) > SHOWN else []
    for word, audited in zip(("before", "after"), audits, strict=True):
        lines.append(f"broken {word}: {list_kinds(audited.counts) or 'nothing'}")
    return lines
