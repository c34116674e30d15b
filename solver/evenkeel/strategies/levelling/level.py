"""Placing and levelling: the descent piece by piece, then pairs of replicas that move at once."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.strategies.levelling.budgets import moves_spent
from evenkeel.strategies.levelling.make_room import make_room
from evenkeel.strategies.levelling.pair_moves import move_pairs
from evenkeel.strategies.levelling.rest import at_rest
from evenkeel.strategies.levelling.run_state import Run
from evenkeel_kernels.levelling.descent import SLICES, descend
from evenkeel_kernels.levelling.penalty import highest


def place_and_level(run: Run) -> None:
    """Take the pieces of the descent until it ends or must stop; the most level one stands.

    After the first piece, what fits nowhere takes the room of smaller replicas, which go elsewhere.
    """
    if at_rest(run):
        return
    best: tuple[float, NDArray[np.int32], NDArray[np.int16]] | None = None
    level = np.inf
    before = run.work
    is_brief = not run.may_take_long and len(run.state.node) <= run.parameters.brief_replicas
    brief = replace(run.parameters, walk_per_replica=run.parameters.brief_walk)
    targets = run.targets
    pieces = descend(
        run.problem, run.state, run.forced, run.most_leaders, run.most_moves, run.request.seed,
        brief if is_brief else run.parameters,
    )  # fmt: skip
    for piece in pieces:
        if piece.stage in SLICES:
            if not run.look(piece.stage):
                break
            continue
        level = piece.highest
        if best is None and room_made(run) > 0:
            level = highest(run.state, targets)
        if best is None or level < best[0]:
            best = (level, run.state.node.copy(), run.state.leader.copy())
        if not run.tell(piece.stage, before + piece.steps, level):
            break
        if piece.stage != "redistribute" and moves_spent(run):
            break
    pieces.close()  # what was halfway takes effect
    if best is not None and best[0] < level and level > 1.0:
        run.restart_from(best[1], best[2])


def room_made(run: Run) -> int:
    """Make room for what fits nowhere; how many were placed."""
    return make_room(
        run.problem, run.state, run.forced, run.most_moves, lambda: run.look("make room")
    )


def level_pairs(run: Run) -> None:
    """Move two replicas of a partition at once, where single moves did not level all."""
    excess = run.ratio - 1.0
    if run.stop is not None or excess <= 0.0 or moves_spent(run):
        return
    left = run.most_moves - run.moves
    move_pairs(run.problem, run.state, run.targets, left, lambda: run.look("pairs"), run.parameters)
    if run.ratio - 1.0 < run.parameters.worth_descending * excess:
        place_and_level(run)
