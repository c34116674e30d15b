"""A cluster held ready: compiled once, so that the loss of nodes costs what they held.

Where nothing is wrong with a cluster before, all that must move is what stood on the lost nodes. An
answer that places all of it, breaks no rule and keeps every node within its target has made as many
moves as replicas were lost, and so is proven to be the best: no placement makes do with fewer. One
move more is the best, too, where a replica is proven to fit nowhere unless another gives way. Where
budgets do not let all of it move, the most endangered moves, and all else waits for a budget. In
any other case there is no answer here, and the search has to be asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.row_demands import row_demands
from evenkeel.methods.contract import Loss, LossSeries
from evenkeel.methods.levelling.losses.demands import roles_fit, stock_and_demands
from evenkeel.methods.levelling.losses.desks import Desk, Desks
from evenkeel.methods.shared.compile import budget_arrays, compile_problem, compile_state
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.intake.stranded import unchanged
from evenkeel.model.limits import Limits
from evenkeel_kernels.levelling.best_fit import share_of_room
from evenkeel_kernels.levelling.losses.play import play_losses
from evenkeel_kernels.levelling.losses.records import DANGERS, Asked, Demanded, Stock
from evenkeel_kernels.levelling.losses.series import play_series


@dataclass(frozen=True, eq=False)
class Standing:
    """A cluster in which all is well, with all that the loss of nodes asks for.

    Several threads may ask at once: each takes a desk of its own. An answer depends on the cluster,
    the nodes and the goals alone, bit by bit, not on what was asked before.
    """

    cluster: Cluster
    stock: Stock
    demanded: Demanded
    desks: Desks
    unchanged: NDArray[np.bool_]  # (N,) nodes with a replica of a partition that stays as it is

    def lose(
        self, nodes: NDArray[np.int32], goals: Goals | Cost, limits: Limits | None = None
    ) -> Loss | None:
        """Lose nodes, each named once; None if that takes a search."""
        asked = _asked(self.cluster, goals)
        if asked is None or self.unchanged[nodes].any():
            return None
        with self.desks.one() as desk:
            # a copy, since a frozen array would compile the kernel a second time
            return self._lose(desk, np.array(nodes, np.int32), asked, limits)

    def lose_each(
        self, losses: Sequence[NDArray[np.int32]], goals: Goals | Cost
    ) -> LossSeries | None:
        """Lose nodes, find how that ends, and have them back; None if every loss takes a search."""
        asked = _asked(self.cluster, goals)
        if asked is None:
            return None
        first = np.zeros(len(losses) + 1, np.int64)
        np.cumsum([len(nodes) for nodes in losses], out=first[1:])
        nodes = np.concatenate([np.zeros(0, np.int32), *losses])
        if self.unchanged[nodes].any():
            return None
        with self.desks.one() as desk:
            figures = desk.figures(len(losses))
            played = play_series(
                desk.problem, desk.state, desk.scan, self.stock, self.demanded, asked,
                self.desks.kept, first, nodes, desk.forced, desk.led, desk.every, desk.most_leaders,
                desk.told, figures,
            )  # fmt: skip
            ends = np.cumsum(figures.endangered_count[:played]).reshape(-1, DANGERS)
            return LossSeries(
                moves=figures.moves[:played],
                gave_way=figures.gave_way[:played],
                most=figures.most[:played],
                fair=figures.fair[:played],
                moved=figures.moved[:played],
                endangered=figures.endangered[: ends[-1, -1] if played else 0].copy(),
                ends=ends,
            )

    def _lose(
        self, desk: Desk, nodes: NDArray[np.int32], asked: Asked, limits: Limits | None
    ) -> Loss | None:
        told, budgeted = desk.told, desk.problem
        if limits not in (None, Limits()):
            assert limits is not None
            budgets = budget_arrays(self.cluster, limits)
            source = budgets.source.copy()
            source[nodes] = False  # what stands on a lost node does not leave it
            budgeted = desk.problem._replace(budgets=budgets._replace(source=source))
        count = play_losses(
            desk.problem, budgeted, desk.state, desk.scan, self.stock, self.demanded, asked,
            self.desks.kept, nodes, desk.forced, desk.led, desk.every, desk.most_leaders, told,
        )  # fmt: skip
        # where little waits on a small cluster, CP-SAT looks for better before it is left undone
        if count < 0 or (told.waits[0] and size_of(self.cluster) <= SMALL):
            return None
        lost, short, stuck = (
            np.sort(told.endangered[i, :n]) for i, n in enumerate(told.endangered_count)
        )
        return Loss(
            replica=told.replica[:count].copy(),
            node=told.node[:count].copy(),
            slot=told.slot[:count].copy(),
            lost=lost,
            under_min_active=short,
            without_quorum=stuck,
            loads=np.ascontiguousarray(told.load.T),
            replicas=told.replicas.copy(),
            leaders=told.leaders.copy(),
            most=told.most.copy(),
            fair=told.fair.copy(),
            moved=told.moved.copy(),
            gave_way=int(told.gave_way[0]),
            waits=int(told.waits[0]),
            fits=bool(told.waits[1]),
        )


def standing(cluster: Cluster) -> Standing | None:
    """Hold a cluster ready for the loss of nodes; None if something is wrong with it before."""
    if len(cluster.placement.node) == 0:
        return None
    rows = row_demands(cluster)
    if rows is None or not roles_fit(cluster):
        return None
    capacity = np.ascontiguousarray(cluster.nodes.capacity.T)
    problem = compile_problem(cluster, capacity, np.ones(len(capacity)))
    state = compile_state(cluster, problem)
    stock, demanded = stock_and_demands(cluster, rows, share_of_room(problem))
    stays = unchanged(cluster.placement)[cluster.placement.owner]
    problem.partitions.movable[stays] = False
    nodes = np.zeros(len(cluster.nodes) + 1, np.bool_)  # and one for nowhere
    nodes[cluster.placement.node[stays]] = True
    return Standing(cluster, stock, demanded, Desks(problem, state), nodes[:-1])


def _asked(cluster: Cluster, goals: Goals | Cost) -> Asked | None:
    """Return goals as numbers; None if they are of a kind that takes a search."""
    if isinstance(goals, Cost):
        return None
    names = cluster.dimensions
    if any(goals.floor_tolerance(name) is not None for name in names):
        return None
    given = [goals.tolerance(name) for name in names]
    tolerance = np.array([-1.0 if one is None else one for one in given])
    return Asked(tolerance, -1.0 if goals.leaders is None else float(goals.leaders))
