"""Refine the answer of the search by annealing, where replicas times nodes are few.

It runs `evenkeel_kernels.levelling.annealing` at the requested targets. Where these cannot be
reached, an aim falls as far as possible, which gives the least load of the fullest node. The other
nodes are relieved all the same, and then each node has the load reached as its target, with the
fewest moves.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import has_leaders
from evenkeel.methods.levelling.rest import NO_TARGET, excess, let_be_the_highest
from evenkeel.methods.levelling.run_state import placed_state
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.annealing import Aim, Best, Course, Pace, begin_course, note, refine
from evenkeel_kernels.levelling.penalty import highest, new_targets
from evenkeel_kernels.levelling.threshold_walk import mean_square

RUNS = 96
LENGTHS = (1, 1, 1, 1, 3, 3)  # how much longer than others runs are, in turn
DESCENTS = 12
DESCENT = 12
RELIEFS, FRUITLESS = 12, 3
# where goals are out of reach: runs with a falling aim, and how much longer each is; runs that
# relieve all but the fullest nodes, how many in a row may be in vain, and how much longer each is
RELIEF = 3
STEPS_PER_PLACE = 40  # steps of a run for each replica and node
MOST_STEPS = 20_000

# prices of a move, in units of the mean square of what a replica presses
TOLLS = (0.03, 0.01, 0.003, 0.001)

# temperatures at the beginning, in the same units: from what came in, and from the best so far
HEATS = (0.03, 0.01)

# steps of all runs, and steps without a move less, where no more is asked for
BRIEF_STEPS, BRIEF_PATIENCE = 150_000, 50_000
BRIEF_STEPS_PER_PLACE = 1_000  # steps of all runs for each replica and node, at most, of these
# once goals are reached, and nothing else takes steps, so many times as many look for fewer moves;
# and how much longer runs are that come on top
REACHED, LONGER = 3, 3
PARTS = 8  # no run takes more than one in so many of the steps allowed, or so much more
# where goals are out of reach: by what share of a level the aim falls, how near to what each node
# was found to reach a plan with fewer moves is as good; how near the least level everything stays
# where it is, unless no more is left than such a part of what nodes are beyond their targets
FALL, NEAR, STAY, RELIEVED = 0.002, 0.002, 0.0095, 0.75


@dataclass
class Refining:
    """Runs on one small cluster."""

    cluster: Cluster  # the cluster
    problem: Problem  # compiled from it
    state: State  # what the search found. It is used up.
    # nodes (K,) int32 and leading slots (P,) int16 to stay with, if they are nearly as good
    home: tuple[NDArray[np.int32], NDArray[np.int16]]
    # forced, dropped: (K,) replicas that must get another node, and those that are too many
    forced: NDArray[np.bool_]
    dropped: NDArray[np.bool_]
    most_leaders: NDArray[np.float64]  # (N,) leaders that each node may have
    floor: NDArray[np.float64]  # (D, N) load that each node is to hold at least
    fewest_moves: int  # proven least, where the goals are met
    seed: int  # all randomness comes from it
    # most_steps, patience: steps of all runs together, and steps without a move less after which no
    # fewer are looked for
    most_steps: int
    patience: int
    # receives the steps done and the best level so far; returns whether to go on
    goes_on: Callable[[int, float], bool]
    best: Best = field(init=False)
    _aim: Aim = field(init=False)
    _course: Course = field(init=False)
    _start: tuple[NDArray[np.int32], NDArray[np.int16]] = field(init=False)
    _unit: float = field(init=False)
    _steps: int = field(init=False)
    _done: int = field(default=0, init=False)
    _going: bool = field(default=True, init=False)
    _as_asked: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        problem, state, cluster = self.problem, self.state, self.cluster
        targets, scratch = (new_targets(problem, self.most_leaders, 1.0 + 1e-10) for _ in range(2))
        self._aim = Aim(np.ones(1), targets, scratch, self.floor.copy())
        self._start = state.node.copy(), state.leader.copy()
        self.best = _unmeasured(state.node, state.leader)
        self._course = Course(
            forced=self.forced,
            led=(cluster.partitions.replicas > 0) & has_leaders(cluster),
            mixed=_mixed_roles(problem, state),
            faults=np.zeros(len(state.leader), np.int64),
            tally=np.zeros(4, np.int64),
            random=np.array([(2 * self.seed + 88172645463325252) % 2**64], np.uint64),
        )
        self._unit = mean_square(targets, problem.partitions.voter_load) or 1.0
        places = len(state.node) * len(state.replicas)
        self._steps = min(STEPS_PER_PLACE * places, MOST_STEPS)

    def found(self) -> bool:
        """Refine; whether ``best`` holds a placement within all capacities."""
        floor = self._aim.floor.copy()
        self._look_at(self._start, 1.0)
        self._search(self.most_steps // 3)
        if self.best.worth[0] > 0.0:
            if floor.any():
                self._aim.floor[:] = 0.0  # out of reach, as far as is known
                self._look_at(self._start, 1.0)
                self._search(self.most_steps * 2 // 3)
            if self.best.worth[0] > 0.0:
                self._descend()
            if not np.isfinite(self.best.worth[0]):
                return False
            if self.best.worth[1] > 1.0 or floor.any():
                nearest, short = self._relieved(floor)
                if not self._stays_home(short, floor):
                    self._ask_what_can_be(nearest, floor)
            self._search(self.most_steps)
        return True

    def _relieved(self, floor: NDArray[np.float64]) -> tuple[Best, float]:
        """Relieve what can be, besides the fullest nodes, which do not bound the others."""
        # returns what is least beyond its targets and below its ``floor``, all nodes together, of
        # what was met with no node fuller than one has to be, and how far it is
        own, begun, fruitless = self.best, self._done, 0
        nearest, least = own, np.inf
        begins = [(own.node, own.leader), self._start, *([] if self.forced.any() else [self.home])]
        for run in range(-len(begins), RELIEFS):
            if not self._going or fruitless == FRUITLESS:
                break
            self.best = _unmeasured(own.node, own.leader, own.worth[0])
            self._aim.floor[:] = floor
            if run < 0:
                self._look_at(begins[run], 1.0)
            else:
                placed = self._start if run % 4 == 3 else (nearest.node, nearest.leader)
                self._relieve_from(placed, lets_be=run % 2 == 0)
            short = self._shortfall(floor)
            fruitless += run >= 0
            if short < least * (1.0 - NEAR):
                self._aim.floor[:] = np.minimum(floor, self.state.load)
                most = max(1.0, float(own.worth[1]) * (1.0 + NEAR))
                begin_course(self.problem, self.state, self._aim, most, self._course)
                found = _unmeasured(self.state.node, self.state.leader, own.worth[0])
                if note(self.problem, self.state, self._aim, self._course, found, 0.0):
                    nearest, least, fruitless = found, short, 0
        self.best = own
        self.most_steps += self._done - begun
        return nearest, least

    def _relieve_from(
        self, placed: tuple[NDArray[np.int32], NDArray[np.int16]], *, lets_be: bool
    ) -> None:
        """Relieve nodes from there on, or only those that are not the highest."""
        asked, unit = self._aim.asked, self._unit
        scale, leader_scale = asked.scale.copy(), asked.leader_scale.copy()
        self._look_at(placed, 1.0)
        if lets_be:
            let_be_the_highest(self.state, asked)
            self._look_at(placed, 1.0)
        pace = Pace(0.001 * unit, 0.0, 2.0 * unit, HEATS[0] * unit, 0.0003 * unit, 0.0)
        self._run(pace, min(RELIEF * self._steps, self.most_steps // (2 * PARTS)))
        asked.scale[:], asked.leader_scale[:] = scale, leader_scale
        if np.isfinite(self.best.worth[1]):
            self._look_at((self.best.node, self.best.leader), 1.0)

    def _shortfall(self, floor: NDArray[np.float64]) -> float:
        """How far nodes are beyond their targets and below a floor, in units of the targets."""
        asked, state = self._aim.asked, self.state
        lack = np.maximum(floor - state.load, 0.0) * np.minimum(asked.scale, NO_TARGET)
        return excess(state, asked) + float(lack.sum())

    def _stays_home(self, short: float, floor: NDArray[np.float64]) -> bool:
        """Take what was there for the best, if it is nearly as level and not much further off."""
        own = self.best
        self._look_at(self.home, 1.0)
        if self.forced.any() or RELIEVED * self._shortfall(floor) > short:
            return False
        self._aim.floor[:] = np.minimum(floor, self.state.load)
        self.best = _unmeasured(own.node, own.leader, own.worth[0])
        worth = self.best.worth
        self._look_at(self.home, max(1.0, float(own.worth[1]) * (1.0 + STAY)))
        if np.isinf(worth[1]):
            self.best = own
            return False
        worth[1] = 1.0  # of what can be
        return True

    def _ask_what_can_be(self, nearest: Best, floor: NDArray[np.float64]) -> None:
        """Ask each node for its target and ``floor``, or for what it holds there, if less."""
        asked, placed = self._aim.asked, (nearest.node.copy(), nearest.leader.copy())
        self._look_at(placed, 1.0)
        state = self.state
        for scale, held in ((asked.scale, state.load), (asked.leader_scale, state.leaders)):
            scale /= np.maximum(held * scale * (1.0 + NEAR), 1.0)
        self._aim.floor[:] = np.minimum(floor, state.load)
        self.fewest_moves, self._as_asked = 0, False  # bounds hold for the goals only
        self.best.worth[:] = np.inf
        self._look_at(placed, 1.0)
        self._look_at(self._start, 1.0)

    def _look_at(self, placed: tuple[NDArray[np.int32], NDArray[np.int16]], aim: float) -> None:
        """Go there, and note it if it is the best."""
        placement = self.cluster.placement.replaced(*placed)
        self.state = placed_state(self.cluster, self.problem, placement, self.dropped)
        begin_course(self.problem, self.state, self._aim, aim, self._course)
        note(self.problem, self.state, self._aim, self._course, self.best, 0.0)

    def _is_done(self) -> bool:
        """Return whether no fewer moves are possible, as far as is known, or it is time to stop."""
        if not self._going:
            return True
        if self.best.worth[0] > 0.0 or self.best.worth[1] > 1.0:
            return False
        made = self.best.worth[2]
        return bool(made <= max(np.count_nonzero(self.forced), self.fewest_moves))

    def _goes_on(self, most: int, since: int) -> bool:
        """Return whether steps are left to save moves, as the best answer reaches the goals."""
        reaches = self.best.worth[0] == 0.0 and self.best.worth[1] <= 1.0 and self._as_asked
        return reaches and self._done < REACHED * min(most, since + self.patience)

    def _search(self, until: int) -> None:
        """Search for placements within the targets, and of these for one with the fewest moves."""
        # not beyond ``until`` steps while there is none within them: they may be out of reach
        unit, since, fewest = self._unit, self._done, np.inf
        for run in range(RUNS):
            most = until if np.isinf(self.best.worth[2]) else self.most_steps
            if self.best.worth[2] < fewest or self.best.worth[0] > 0.0:
                since, fewest = self._done, self.best.worth[2]
            longer = 1 if self._done < min(most, since + self.patience) else LONGER
            if self._is_done() or (longer > 1 and not self._goes_on(most, since)):
                return
            odd, sound = run % 2, self.best.worth[0] == 0.0
            begin = self.home if sound else self._start
            if odd and np.isfinite(self.best.worth[0]):
                begin = self.best.node, self.best.leader
            self._look_at(begin, 1.0)
            move_penalty = unit * TOLLS[run // 2 % len(TOLLS)]
            heat = unit * HEATS[odd if sound else 0]
            self._run(
                Pace(move_penalty, 0.1 * move_penalty, 2.0 * unit, heat, 0.0003 * unit, 0.0),
                LENGTHS[run % len(LENGTHS)] * self._steps,
                longer,
            )

    def _descend(self) -> None:
        """Lower the aim for as long as placements within it are found."""
        unit, value = self._unit, 1e6
        self.best.worth[1:] = np.inf
        for run in range(DESCENTS):
            if not self._going or self._done >= self.most_steps * 2 // 3:
                break
            known = run % 2 == 1 and np.isfinite(self.best.worth[0])
            self._look_at((self.best.node, self.best.leader) if known else self._start, value)
            self._run(
                Pace(0.003 * unit, 0.0, 2.0 * unit, 0.3 * unit, 0.001 * unit, FALL),
                DESCENT * self._steps,
            )
            value = float(self._aim.value[0])
            if self.best.worth[0] == 0.0 and self.best.worth[1] <= 1.0:
                return
        for placed in (self._start, *([] if self.forced.any() else [self.home])):
            self._look_at(placed, 1.0)
            self._look_at(placed, max(1.0, highest(self.state, self._aim.asked)))

    def _run(self, pace: Pace, steps: int, longer: int = 1) -> None:
        steps = longer * min(steps, max(self.most_steps // PARTS, 1))
        refine(
            self.problem, self.state, self._aim, self._course, self.best, pace, 0, steps, steps
        )  # fmt: skip
        self._done += steps
        self._going = self.goes_on(self._done, float(self.best.worth[1]))


def _mixed_roles(problem: Problem, state: State) -> NDArray[np.bool_]:
    """Return whether the replicas of each partition are not all of one role, (P,)."""
    owner, count = problem.partitions.owner, len(state.leader)
    others = np.bincount(owner[state.role != Role.VOTER], minlength=count)
    size = np.diff(problem.partitions.first)
    mixed: NDArray[np.bool_] = (others > 0) & (others < size)
    return mixed


def _unmeasured(node: NDArray[np.int32], leader: NDArray[np.int16], faults: float = np.inf) -> Best:
    """Return a placement as the best, of which no more is known than what it breaks."""
    return Best(node.copy(), leader.copy(), np.array([faults, *[np.inf] * 4]))
