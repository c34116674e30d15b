"""Every state of a few partitions together: whether any order leads all of them to a target.

One step of one partition at a time, as ``few_states`` has them, third nodes included; what moves
counts on both of its nodes meanwhile. Partitions that the target leaves alone stay as they are.
"""

from collections import Counter
from heapq import heappop, heappush

from evenkeel.measure.binding import nodes_that_meet
from tests.naive.planning.few_states import Partition, held
from tests.naive.planning.orders import _places

STATES = 30_000  # states that are looked at before nothing is known


class Joint:
    """The partitions that differ between two placements which keep every role."""

    def __init__(self, cluster, target, protocol):
        self.cluster, self.target = cluster, target
        every = range(len(cluster.partitions))
        ends = [[held(one, p) for p in every] for one in (cluster.placement, target)]
        self.some = [p for p in every if ends[0][p] != ends[1][p]]
        self.parts = [Partition(cluster, target, protocol, p, hops=True) for p in self.some]
        self.begin = tuple(one.begin for one in self.parts)
        self.goal = tuple(one.end for one in self.parts)
        self.rest = [ends[0][p] for p in every if p not in self.some]
        self.rest_of = [p for p in every if p not in self.some]
        self.weight = cluster.partitions.load.voter.tolist()
        self.places = [({*nodes}, most.tolist()) for nodes, most in _places(cluster)]
        loads = [self.loads(state) for state in (self.begin, self.goal)]
        self.limit = [
            [max(m, *(load[i][d] for load in loads)) for d, m in enumerate(most)]
            for i, (_, most) in enumerate(self.places)
        ]
        self.live = self.parts[0].live if self.parts else []
        self.tests = [*self.group_tests()]
        self.known = {}

    def members(self, state):
        """Pairs of a partition and a node."""
        for whose, rows in ((self.some, state), (self.rest_of, self.rest)):
            for p, (voters, others, _) in zip(whose, rows, strict=True):
                for n in (*voters, *others):
                    yield p, n

    def loads(self, state, more=()):
        """What every place carries, with pairs of a partition and a node that come besides."""
        found = [[0.0] * len(most) for _, most in self.places]
        for p, n in (*self.members(state), *more):
            for i, (nodes, _) in enumerate(self.places):
                if n in nodes:
                    for d, w in enumerate(self.weight[p]):
                        found[i][d] += w
        return found

    def fits(self, state, more):
        loads = self.loads(state, more)
        return all(
            a <= b + 1e-9 for mine, most in zip(loads, self.limit, strict=True)
            for a, b in zip(mine, most, strict=True)
        )  # fmt: skip

    # rules of groups -----------------------------------------------------------------------

    def group_tests(self):
        """Yield what both ends keep of each group: a test of a state, and of one with pairs."""
        cluster = self.cluster
        for g, number in enumerate(cluster.partitions.group_rule.tolist()):
            if number < 0:
                continue
            rule = cluster.rules[number]
            for limit in rule.limits(per_node=False):
                if limit.hard:
                    test = self.limit_test(g, rule, limit)
                    if all(test(state, ()) for state in (self.begin, self.goal)):
                        yield test
            for text, least in rule.place.items():
                test = self.place_test(g, nodes_that_meet(cluster, [text]), least)
                if all(test(state, ()) for state in (self.begin, self.goal)):
                    yield test

    def of_group(self, g, state):
        group = self.cluster.partitions.group
        return [(p, n) for p, n in self.members(state) if group[p] == g and self.live[n]]

    def limit_test(self, g, rule, limit):
        cluster = self.cluster
        tier = cluster.topology.tier_index(limit.tier)
        domain = cluster.topology.domain_with_nodes[tier].tolist()
        fits = nodes_that_meet(cluster, rule.require) & cluster.nodes.may_hold
        able = {d for n, d in enumerate(domain) if d >= 0 and fits[n]}

        def kept(state, pairs):
            count = Counter(domain[n] for _, n in self.of_group(g, state) if domain[n] >= 0)
            if limit.kind == "min_domains":
                return len(count) >= limit.amount
            if limit.kind == "max_domains":
                return len(count) <= limit.amount
            if limit.kind == "skew":
                least = min((count[d] for d in able), default=0)
                return not able or max(count.values(), default=0) - least <= limit.amount
            for p, old, new in pairs:
                beside = old >= 0 and self.live[old] and domain[old] == domain[new]
                if cluster.partitions.group[p] == g and domain[new] >= 0 and not beside:
                    count[domain[new]] += 1
            return max(count.values(), default=0) <= limit.amount

        kept.crowds = limit.kind == "spread"
        return kept

    def place_test(self, g, mask, least):
        def kept(state, pairs):
            return sum(bool(mask[n]) for _, n in self.of_group(g, state)) >= least

        kept.crowds = False
        return kept

    # search --------------------------------------------------------------------------------

    def steps(self, i, state):
        key = i, state
        if key not in self.known:
            self.known[key] = [*self.parts[i].steps(state)]
        return self.known[key]

    def left(self, state):
        return sum(
            len((a[0] | a[1]) ^ (b[0] | b[1])) + (a[2] != b[2] >= 0)
            for a, b in zip(state, self.goal, strict=True)
        )

    def has_order(self):
        """Whether there is an order, None where that is not known."""
        seen, heap = {self.begin}, [(self.left(self.begin), 0, self.begin)]
        serial = 0
        while heap:
            _, _, state = heappop(heap)
            if all(one.is_end(mine) for one, mine in zip(self.parts, state, strict=True)):
                return True
            if len(seen) > STATES:
                return None
            for i, mine in enumerate(state):
                for then, pairs in self.steps(i, mine):
                    after = (*state[:i], then, *state[i + 1 :])
                    if after in seen:
                        continue
                    p = self.some[i]
                    comes = [(p, old, new) for old, new in pairs if new >= 0]
                    if not self.fits(state, [(p, new) for _, _, new in comes]):
                        continue
                    if not all(
                        test(after, ()) and (not test.crowds or test(state, comes))
                        for test in self.tests
                    ):
                        continue
                    seen.add(after)
                    serial += 1
                    heappush(heap, (self.left(after), serial, after))
        return False
