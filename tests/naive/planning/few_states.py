"""Every state of one partition, or of a few that share room: whether any order leads to a target.

A state is the set of nodes that hold a replica, voters and others, and the node that leads. Nothing
is shared with the planner: rules are read off the cluster and counted anew.
"""

from collections import Counter, deque
from itertools import combinations, permutations

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
    """The states of one partition between two placements that keep every role."""

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
        for size in range(1, len(voters | others) + 1 if self.protocol.whole else 2):
            for pairs in self.exchanges(state, size):
                yield from self.exchanged(state, pairs)
        added = len((voters | others) - (self.start[0] | self.start[1]))
        removed = len((self.start[0] | self.start[1]) - (voters | others))
        for mine, wanted, which in ((voters, self.end[0], 0), (others, self.end[1], 1)):
            if added - removed < self.adds:
                for n in wanted - voters - others:
                    if self.live[n] and self.admits(state, [(-1, n)]):
                        yield from self.made(state, which, mine | {n}, leader, [(-1, n)])
            if removed - added < self.drops:
                for n in mine - wanted - {leader}:
                    yield from self.made(state, which, mine - {n}, leader, [(n, -1)])

    def made(self, state, which, nodes, leader, pairs):
        after = (nodes, state[1], leader) if which == 0 else (state[0], nodes, leader)
        if self.keeps(*after[:2]):
            yield after, tuple(pairs)

    def exchanges(self, state, size):
        """Sets of pairs, an old node and a new one of the same role."""
        every = state[0] | state[1]
        goes = [(n, 0) for n in sorted(state[0] - self.end[0])]
        goes += [(n, 1) for n in sorted(state[1] - self.end[1])]
        new = [sorted(self.end[0] - every), sorted(self.end[1] - every)]
        if self.hops and size == 1:
            spare = {n for n, ok in enumerate(self.cluster.nodes.may_receive.tolist()) if ok}
            spare -= every | self.start[0] | self.start[1] | self.end[0] | self.end[1]
            taken = {n for q, n in self.cluster.forbidden.tolist() if q == self.p}
            away = every - (self.start[0] | self.start[1] | self.end[0] | self.end[1])
            more = [] if away else sorted(spare - taken)
            new = [new[0] + more, new[1] + more]
        for some in combinations(goes, size):
            count = [sum(role == r for _, role in some) for r in (0, 1)]
            for a in permutations(new[0], count[0]):
                for b in permutations(new[1], count[1]):
                    come = [list(a), list(b)]
                    yield [(n, come[role].pop(), role) for n, role in some]

    def exchanged(self, state, pairs):
        voters, others, leader = state
        if not all(self.live[new] for _, new, _ in pairs):
            return
        if not self.admits(state, [(old, new) for old, new, _ in pairs]):
            return
        lost = [old for old, _, _ in pairs if not self.live[old]]
        stay = [n for n in (voters | others) - {old for old, _, _ in pairs} if self.live[n]]
        if len(pairs) > 1 and (len(lost) > 1 or (lost and not stay)):
            return  # copied at once, each has a source of its own
        if not self.protocol.joint:
            old, new, role = pairs[0]
            if role == 0 and not self.keeps(voters | {new}, others, tuple(sorted((old, new)))):
                return
        after = [set(voters), set(others)]
        for old, new, role in pairs:
            after[role] -= {old}
            after[role] |= {new}
        then = frozenset(after[0]), frozenset(after[1])
        if not self.keeps(*then):
            return
        gone, came = {old for old, _, _ in pairs}, {new for _, new, role in pairs if role == 0}
        told = tuple((old, new) for old, new, _ in pairs)
        if leader < 0:
            yield (*then, -1), told
        elif leader not in gone:
            yield (*then, leader), told
        if self.end[2] >= 0 and leader in gone:
            for n in came if self.protocol.joint or len(pairs) == 1 else ():
                if self.leads((*then, n), n):
                    yield (*then, n), told

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
