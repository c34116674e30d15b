"""Repair of the skews of groups in plain Python: counts and rules are taken anew each time."""

from collections import Counter
from math import inf

from evenkeel_kernels.core.problem import Problem, State
from tests.naive.core.state import admits, domains_of, group_skew, leads, moved_to, recount


def even_out(
    problem: Problem, state: State, forced: list[bool], groups: list[list[int]], most: int
) -> tuple[State, int]:
    """The state once no skew falls any further, and the moves that this took."""
    # no more than ``most`` moves may pass until fewer wait or a skew falls
    made, rules = 0, problem.rules
    for g, members in enumerate(groups):
        for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
            if rules.group_limit[i, 4] >= 0:
                one = Skew(problem, i, forced, members)
                state, moves = one.repaired(state, most)
                made += moves
    return state, made


class Skew:
    """One limit of one group."""

    def __init__(self, problem: Problem, i: int, forced: list[bool], members: list[int]) -> None:
        self.problem, self.i, self.forced, self.members = problem, i, forced, members
        self.level, _, _, _, self.allowed = problem.rules.group_limit[i].tolist()
        offset = problem.domains.domain_offset[self.level]
        ids = range(offset, problem.domains.domain_offset[self.level + 1])
        base = problem.rules.group_base[i] - offset
        self.domains, self.open = ids, [d for d in ids if problem.rules.group_open[base + d]]

    def repaired(self, state: State, most: int) -> tuple[State, int]:
        best, made, since = state, 0, 0
        while self.undone(state) != (0, 0) and since + 2 <= most:
            after, moves = self.stepped(state)
            if moves == 0:
                break
            state, since = after, since + moves
            if self.undone(state) < self.undone(best):
                best, made, since = state, made + since, 0
        return best, made

    def undone(self, state: State) -> tuple[int, int]:
        """Replicas that wait, and by how much the skew is too great."""
        skew = group_skew(self.problem, self.i, self.counts(state))
        waiting = sum(self.waits(state, k) for k in self.members)
        return waiting, max(0, skew - self.allowed)

    def waits(self, state: State, k: int) -> bool:
        return self.forced[k] and state.node[k] in (-1, self.problem.partitions.home[k])

    def counts(self, state: State) -> Counter[int]:
        return domains_of(self.problem, state, self.level, self.members)

    def domain(self, n: int) -> int:
        return int(self.problem.domains.domain[self.level, n]) if n >= 0 else -1

    def held(self, state: State, k: int) -> float:
        """How many there are where a replica stands; no end of them where it waits."""
        where = self.domain(state.node[k])
        if self.waits(state, k):
            return inf
        return self.counts(state)[where] if where >= 0 else -1

    def stepped(self, state: State) -> tuple[State, int]:
        """The state after one step, and the moves it takes; 0 where there is none."""
        count = self.counts(state)
        most = max((count[d] for d in self.domains), default=0)
        fewest = min((count[d] for d in self.open), default=inf)
        if any(self.waits(state, k) for k in self.members):
            after, moves = self.lowered(state, inf, fewest)
            if moves > 0:
                return after, moves
        return self.lowered(state, most, fewest)

    def lowered(self, state: State, most: float, fewest: float) -> tuple[State, int]:
        count = self.counts(state)

        def goals(k: int, at_most: float, apart: int) -> list[int]:
            where = self.domain(state.node[k])
            closed = where >= 0 and where not in self.open
            lower = min(at_most, self.held(state, k) - apart + closed)
            return [d for d in self.open if count[d] <= lower]

        for least, at_most in ((most, fewest), (most, most), (0, fewest)):
            who = [k for k in self.members if self.held(state, k) >= least]
            after = self.sent(state, {k: goals(k, at_most, 2) for k in who})
            if after is not None:
                return after, 1
        for k in self.members if most - fewest > 1 else ():
            between = self.domain(state.node[k])
            if between >= 0 and fewest < count[between] < most:
                way = self.sent(state, {k: goals(k, fewest, 1)})
                if way is None:
                    continue
                who = [j for j in self.members if self.held(way, j) >= most]
                who = [j for j in who if self.domain(way.node[j]) != between]
                after = self.sent(way, {j: [between] if between in self.open else [] for j in who})
                if after is not None:
                    return after, 2
        return state, 0

    def sent(self, state: State, goals: dict[int, list[int]]) -> State | None:
        """The state with the first replica that may go on the node used least in its goals."""
        partitions = self.problem.partitions
        use = (state.load * self.problem.nodes.inverse).max(axis=0, initial=0.0)

        def order(k: int) -> tuple[int, float]:
            n, home = state.node[k], partitions.home[partitions.owner == partitions.owner[k]]
            height = use[n] if n >= 0 else 0.0
            if self.waits(state, k) or n not in home:
                return 0, -height
            return 1 + leads(self.problem, state, k), -height

        for k in sorted(goals, key=order):
            if not partitions.movable[k]:
                continue
            nodes = [n for n in range(len(state.replicas)) if self.domain(n) in goals[k]]
            for n in sorted(nodes, key=lambda n: use[n]):
                if admits(self.problem, state, k, n):
                    after = moved_to(state, k, n)
                    return after._replace(**recount(self.problem, after))
        return None
