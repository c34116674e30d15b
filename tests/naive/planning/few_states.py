"""Every state of one partition, or of a few that share room: whether any order leads to a target.

A state is the set of nodes that hold a replica, voters and others, and the node that leads. Nothing
is shared with the planner: rules are read off the cluster and counted anew.
"""

from collections import Counter, deque
from itertools import combinations

from evenkeel.measure.binding import nodes_of, nodes_that_meet
from evenkeel.model.placement import Role
from evenkeel.model.rules import Rule


def held(placement, p):
    """Voters, others, and the leading node (-1 for none) of a partition in a placement."""
    rows = range(int(placement.first[p]), int(placement.first[p + 1]))
    nodes = [(int(placement.node[k]), int(placement.role[k])) for k in rows]
    voters = frozenset(n for n, role in nodes if n >= 0 and role == Role.VOTER)
    others = frozenset(n for n, role in nodes if n >= 0 and role != Role.VOTER)
    return voters, others, int(placement.leader_node[p])


class Partition:
    """The states of one partition between two placements."""

    def __init__(self, cluster, target, protocol, p=0, hops=False):
        self.cluster, self.protocol, self.p, self.hops = cluster, protocol, p, hops
        nodes = cluster.nodes
        self.live = (nodes.alive & ~nodes.gone).tolist()
        self.may_lead = nodes.may_lead.tolist()
        self.begin = self.lead(held(cluster.placement, p))
        self.start, self.end = held(cluster.placement, p), held(target, p)
        first, last = (int(cluster.placement.first[q]) for q in (p, p + 1))
        old, new = cluster.placement.node[first:last], target.node[first:last]
        self.adds = int(((old < 0) & (new >= 0)).sum())
        self.drops = int(((old >= 0) & (new < 0)).sum())
        rule = int(cluster.partitions.rule[p])
        self.rule = cluster.rules[rule] if rule >= 0 else Rule()
        self.least = int(cluster.partitions.min_active[p])
        tiers = range(len(cluster.topology.tiers) + 1)
        self.domain = [cluster.topology.domain_with_nodes[t].tolist() for t in tiers]
        self.tier = {name: t for t, name in enumerate([*cluster.topology.tiers, "node"])}
        self.masks = {term.text: nodes_of(cluster, term).tolist() for term in self.rule.terms()}
        ends = [self.values([*one[0]], [*one[1]]) for one in (self.start, self.end)]
        self.kept = [
            rule for rule in ends[0]
            if rule[0] == "live" or all(end[rule] >= 0 for end in ends)
        ]  # fmt: skip
        self.live_least = min(self.least, *(end["live", ""] for end in ends))
        self.fine = {}

    def lead(self, state):
        """Forget a leader that is down."""
        voters, others, leader = state
        return voters, others, leader if leader >= 0 and self.live[leader] else -1

    # rules ---------------------------------------------------------------------------------

    def values(self, voters, others, twin=None):
        """By how much each rule is kept; a pair of nodes of one replica counts once, or either."""
        every = voters + others
        found = {("live", ""): len({twin_of(n, twin) for n in every if self.live[n]})}
        for t, domain in enumerate(self.domain):
            lives = [n for n in (voters if self.protocol.quorum else every) if self.live[n]]
            worst = max(Counter(domain[n] for n in lives if domain[n] >= 0).values(), default=0)
            left = len(lives) - worst
            enough = len(voters) // 2 + 1 if self.protocol.quorum else 1
            found["loss", t] = left - enough
        # what is left on dead nodes keeps no rule, and breaks none
        every, voters = ([n for n in some if self.live[n]] for some in (every, voters))
        for limit in self.rule.limits():
            if limit.hard:
                found[limit.kind, limit.tier] = self.limit(limit, every, twin)
        for term in self.rule.terms():
            some = voters if term.voters else every
            inside = sum(self.masks[term.text][n] for n in some)
            found[term.kind, term.text] = inside - (len(some) if term.for_all else term.least)
        return found

    def limit(self, limit, every, twin):
        domain = self.domain[self.tier[limit.tier]]
        if limit.kind == "spread":
            pairs = {(twin_of(n, twin), domain[n]) for n in every if domain[n] >= 0}
            return limit.amount - max(Counter(d for _, d in pairs).values(), default=0)
        if limit.kind == "min_domains":
            return len({domain[n] for n in every if domain[n] >= 0}) - limit.amount
        worst = []
        for gone in twin or (-1,):
            count = Counter(domain[n] for n in every if domain[n] >= 0 and n != gone)
            if limit.kind == "max_domains":
                worst.append(limit.amount - len(count))
                continue
            fits = nodes_that_meet(self.cluster, self.rule.require) & self.cluster.nodes.may_hold
            able = {d for n, d in enumerate(domain) if d >= 0 and fits[n]}
            least = min((count[d] for d in able), default=0)
            skew = max(count.values(), default=0) - least if able else 0
            worst.append(limit.amount - skew)
        return min(worst)

    def keeps(self, voters, others, twin=None):
        """Whether a state keeps what both ends keep."""
        key = voters, others, twin
        if key not in self.fine:
            now = self.values([*voters], [*others], twin)
            self.fine[key] = now["live", ""] >= self.live_least and all(
                now[rule] >= 0 for rule in self.kept if rule[0] != "live"
            )
        return self.fine[key]

    def admits(self, state, pairs):
        """Whether learners may be copied beside all that is there: crowds and requirements."""
        every = [*state[0], *state[1]]
        for limit in self.rule.limits():
            if limit.hard and limit.kind == "spread" and (limit.kind, limit.tier) in self.kept:
                domain = self.domain[self.tier[limit.tier]]
                seen = Counter(domain[n] for n in every if domain[n] >= 0 and self.live[n])
                for old, new in pairs:
                    beside = old >= 0 and self.live[old] and domain[old] == domain[new]
                    if domain[new] >= 0 and not beside:
                        seen[domain[new]] += 1
                if max(seen.values(), default=0) > limit.amount:
                    return False
        return all(
            self.masks[text][new] for text in self.rule.require
            if ("require", text) in self.kept for _, new in pairs
        )  # fmt: skip

    # steps ---------------------------------------------------------------------------------

    def leads(self, state, node):
        """Whether a node may lead in a state."""
        return node in state[0] and self.live[node] and (self.may_lead[node] or node == self.end[2])

    def steps(self, state):
        """Every state that one allowed step leads to, with the pairs of nodes that it exchanges."""
        voters, others, leader = state
        if self.end[2] >= 0:
            for n in voters - {leader}:
                if self.leads(state, n):
                    yield (voters, others, n), ()
        for pairs, recast in self.changes(state):
            yield from self.changed(state, pairs, recast)

    def changes(self, state):
        """Pairs of an old node and a new one, -1 for none, and nodes whose roles change."""
        # all that changes at one instant; with joint consensus that may be any number
        every = state[0] | state[1]
        new = {n for n in self.end[0] | self.end[1] if self.live[n]} - every
        singles = [(n, m) for n in sorted(every) for m in sorted(self.targets(state, n))]
        singles += [(-1, n) for n in sorted(new)]
        flips = [n for n in sorted(every) if self.protocol.roles and self.may_flip(state, n)]
        more = len(every) - len(self.start[0] | self.start[1])
        for pairs, recast in self.joined(state, singles, flips):
            then = more + sum((old < 0) - (new < 0) for old, new in pairs)
            if -self.drops <= then <= self.adds:
                yield pairs, recast

    def joined(self, state, singles, flips):
        """Single changes, and with joint consensus all sets of those that touch no node twice."""
        if not self.protocol.joint:
            yield from (([one], ()) for one in singles)
            yield from (([], (n,)) for n in flips)
            return
        ends = self.start[0] | self.start[1] | self.end[0] | self.end[1] | {-1}
        yield from (([one], ()) for one in singles if one[1] not in ends)
        known = [one for one in singles if one[1] in ends]

        def sets(i, touched):
            if i == len(known):
                yield []
                return
            yield from sets(i + 1, touched)
            mine = {*known[i]} - {-1}
            if not mine & touched:
                yield from ([known[i], *rest] for rest in sets(i + 1, touched | mine))

        for pairs in sets(0, set()):
            left = [n for n in flips if n not in {old for old, _ in pairs}]
            for size in range(len(left) + 1):
                for recast in combinations(left, size):
                    if pairs or recast:
                        yield pairs, recast

    def targets(self, state, node):
        """Where a replica may go from a node, -1 for nowhere."""
        every, ends = state[0] | state[1], self.end[0] | self.end[1]
        if node in ends and (node in self.end[0]) == (node in state[0]):
            return set()
        role = 0 if node in state[0] else 1
        found = set((ends if self.protocol.roles else self.end[role]) - every)
        if node not in ends and node in self.start[role]:  # what leaves keeps its role
            found.add(-1)
        if self.hops:
            known = self.start[0] | self.start[1] | ends
            spare = {n for n, ok in enumerate(self.cluster.nodes.may_receive.tolist()) if ok}
            taken = {n for q, n in self.cluster.forbidden.tolist() if q == self.p}
            found |= set() if every - known else spare - every - known - taken
        return {n for n in found if n < 0 or self.live[n]}

    def may_flip(self, state, node):
        """Whether a node's role changes in place: to what the end has there, or before it goes."""
        ends = self.end[0] | self.end[1]
        if node in ends:
            return (node in self.end[0]) != (node in state[0])
        if not self.end[1 if node in state[0] else 0]:
            return False
        started = self.start[0] | self.start[1]
        return node in started and (node in self.start[0]) == (node in state[0])

    def changed(self, state, pairs, recast):
        """The states that come of changes at one instant, one for each next leader."""
        voters, others, leader = state
        gone = {old for old, _ in pairs if old >= 0}
        comes = [(old, new) for old, new in pairs if new >= 0]
        if not self.admits(state, comes):
            return
        lost = [old for old, _ in comes if old < 0 or not self.live[old]]
        stay = [n for n in (voters | others) - {old for old, _ in comes} if self.live[n]]
        if len(pairs) > 1 and len(lost) > len(stay):
            return  # copied at once, each has a source of its own
        after = [set(voters) - gone, set(others) - gone]
        for old, new in comes:
            after[self.role_of(state, old, new)].add(new)
        for n in recast:
            after[0 if n in voters else 1].remove(n)
            after[1 if n in voters else 0].add(n)
        if not self.protocol.joint and pairs and pairs[0][0] in voters and comes:
            old, new = pairs[0]
            if not self.keeps(voters | {new}, others, tuple(sorted((old, new)))):
                return
        then = frozenset(after[0]), frozenset(after[1])
        if not self.keeps(*then):
            return
        told = tuple(pairs)
        if leader < 0 or (leader not in gone and leader not in recast):
            yield (*then, leader), told
        elif self.end[2] >= 0:
            for n in then[0] & ({new for _, new in comes} | {*recast}):
                if self.leads((*then, n), n):
                    yield (*then, n), told

    def role_of(self, state, old, new):
        """What comes to a node: what goes there was, or of what was nowhere what is to be there."""
        if old < 0:
            return 0 if new in self.end[0] else 1
        return 0 if old in state[0] else 1

    def is_end(self, state):
        """Whether a state is the target."""
        led = self.end[2] < 0 or state[2] == self.end[2]
        return state[:2] == self.end[:2] and led


def twin_of(n, twin):
    """The one that a node is counted as."""
    return twin[0] if twin and n in twin else n


def has_order(cluster, target, protocol, p=0, hops=False):
    """Whether any order of allowed steps leads a partition to its target, room left aside."""
    one = Partition(cluster, target, protocol, p, hops)
    seen, queue = {one.begin}, deque([one.begin])
    while queue:
        state = queue.popleft()
        if one.is_end(state):
            return True
        for after, _ in one.steps(state):
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return False
