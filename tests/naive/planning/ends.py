"""What both ends of a plan keep, counted with dictionaries and loops."""

from collections import Counter
from fractions import Fraction
from math import inf

from evenkeel.measure.binding import nodes_of, nodes_that_meet
from evenkeel.model.placement import Role
from evenkeel.model.rules import Rule

SERVES = {"serving", "demoting"}


class TransitionTable:
    """The limits of a plan, and how its state lies to them."""

    def weight(self, p, k, d, leads=False, role=None):
        load = self.cluster.partitions.load
        role = self.role[k] if role is None else role
        by = load.leader if leads else load.non_voter if role == Role.NON_VOTER else load.voter
        return Fraction(float(by[p, d]))

    def loads_of(self, placement):
        load = Counter()
        for p in range(len(placement)):
            for k in range(placement.first[p], placement.first[p + 1]):
                leads = placement.leader[p] == k - placement.first[p]
                for d in range(len(self.cluster.dimensions)):
                    load[int(placement.node[k]), d] += self.weight(
                        p, k, d, leads, placement.role[k]
                    )
        return load

    def serving_node(self, n):
        nodes = self.cluster.nodes
        return (nodes.alive[n] or nodes.keeps[n]) and not nodes.gone[n]

    def places(self):
        """Every place with a capacity: its kind, key, nodes, and capacity per dimension."""
        c = self.cluster
        for n in range(len(c.nodes)):
            if self.serving_node(n):
                yield "capacity", n, [n], c.nodes.capacity[n]
        for tier, capacity in c.topology.tier_capacity.items():
            row = c.topology.tiers.index(tier)
            for domain in range(len(capacity)):
                inside = [n for n in range(len(c.nodes)) if c.topology.domain[row, n] == domain]
                inside = [n for n in inside if self.serving_node(n)]
                yield "tier_capacity", (tier, domain), inside, capacity[domain]

    def set_limits(self):
        ends = [self.load] + ([self.loads_of(self.target)] if self.target is not None else [])
        self.limits = []
        for kind, key, nodes, capacity in self.places():
            for d in range(len(self.cluster.dimensions)):
                most = [float(sum(end[n, d] for n in nodes)) for end in ends]
                self.limits.append((kind, key, nodes, d, max(float(capacity[d]), *most)))
        self.held = {(*one[:2], one[3]): self.held_by(one) for one in self.limits}
        self.most = {}
        for n in range(len(self.cluster.nodes)):
            if self.cluster.nodes.max_replicas[n] >= 0 and self.serving_node(n):
                then = 0 if self.target is None else (self.target.node == n).sum()
                self.most[n] = max(self.cluster.nodes.max_replicas[n], self.counts[n], then)

        self.held |= {n: self.counts[n] for n in self.most}
        # what is free of every place, dimension by dimension, and of the replicas of a node
        most = {(*one[:2], one[3]): one[4] for one in self.limits} | self.most
        self.free = {
            key: Fraction(float(most[key])) * (1 + Fraction(1, 10**11)) - held
            for key, held in self.held.items() if most[key] != inf
        }  # fmt: skip
        self.trades = {key: [] for key in self.held}

    def held_by(self, limit):
        return sum((self.load[n, limit[3]] for n in limit[2]), Fraction(0))

    def measures(self, p, placement=None):
        """Every rule that binds a partition, with its value and the least that keeps it."""
        c = self.cluster
        if placement is None:
            seats = [(k, n, s) for (q, k, n), s in self.seats.items() if q == p]
        else:
            rows = range(placement.first[p], placement.first[p + 1])
            seats = [(k, int(placement.node[k]), "serving") for k in rows if placement.node[k] >= 0]
        role = self.role if placement is None else placement.role
        serve = [(k, n) for k, n, s in seats if s in SERVES]
        present = [(k, n) for k, n, _ in seats]
        voters = [(k, n) for k, n in serve if role[k] == Role.VOTER]
        found = {}
        if c.partitions.min_active[p] > 0:
            lives = len({k for k, n in serve if self.alive[n]})
            found["min_active", ""] = lives, int(c.partitions.min_active[p])
        tiers = [*c.topology.tiers, "node"]
        for tier in tiers:
            domain = c.topology.domain_with_nodes[c.topology.tier_index(tier)]
            lost = Counter(int(domain[n]) for _, n in voters if self.alive[n] and domain[n] >= 0)
            left = sum(self.alive[n] for _, n in voters) - max(lost.values(), default=0)
            if self.quorum:
                found["quorum", tier] = 2 * left - len(voters), 1
            else:
                lives = [int(domain[n]) for _, n in serve if self.alive[n]]
                lost = Counter(d for d in lives if d >= 0)
                found["survivor", tier] = len(lives) - max(lost.values(), default=0), 1
        # what is left on dead nodes keeps no rule, and breaks none
        serve, present, voters = (
            [one for one in held if self.alive[one[1]]] for held in (serve, present, voters)
        )
        own, shared = self.rules(p)
        limits = [limit for limit in own.limits() if limit.hard]
        for limit in limits:
            domain = c.topology.domain_with_nodes[c.topology.tier_index(limit.tier)]
            value, least = self.limit(limit, domain, serve, present, own, shared)
            kind = "same_node" if (limit.kind, limit.tier) == ("spread", "node") else limit.kind
            if limit.kind != "min_domains" or c.partitions.replicas[p] > 0:
                found[kind, limit.tier] = value, least
        for number, rule in enumerate((own, shared)):
            for kind, texts, held in (
                ("require", rule.require, present), ("voters_require", rule.voters_require, voters),
            ):  # fmt: skip
                if texts:
                    mask = nodes_that_meet(c, texts)
                    found[kind, number] = -sum(not mask[n] for _, n in held), 0
        for term in own.terms():
            if not term.for_all and c.partitions.replicas[p] > 0:
                mask, held = nodes_of(c, term), voters if term.voters else serve
                found[term.kind, term.text] = sum(mask[n] for _, n in held), term.least
        return found

    def rules(self, p):
        c = self.cluster
        shared = c.partitions.group_rule[c.partitions.group[p]]
        own = c.partitions.rule[p]
        return (c.rules[own] if own >= 0 else Rule(), c.rules[shared] if shared >= 0 else Rule())

    def limit(self, limit, domain, serve, present, own, shared):
        if limit.kind == "spread":
            pairs = {(k, int(domain[n])) for k, n in present if domain[n] >= 0}
            crowd = Counter(d for _, d in pairs)
            return -max(crowd.values(), default=0), -limit.amount
        if limit.kind == "min_domains":
            return len({int(domain[n]) for _, n in serve if domain[n] >= 0}), limit.amount
        worst = 0
        by_column = sorted(serve, key=lambda seat: (self.cluster.placement.node[seat[0]] != seat[1],
                                                    seat))  # fmt: skip
        for order in (by_column, by_column[::-1]):
            settled = {}
            for k, n in order:
                settled.setdefault(k, n)
            count = Counter(int(domain[n]) for n in settled.values() if domain[n] >= 0)
            if limit.kind == "max_domains":
                worst = max(worst, len(count))
                continue
            may_hold = self.cluster.nodes.may_hold
            fits = nodes_that_meet(self.cluster, [*own.require, *shared.require])
            able = {int(d) for n, d in enumerate(domain) if d >= 0 and may_hold[n] and fits[n]}
            if able:
                worst = max(worst, max(count.values(), default=0) - min(count[d] for d in able))
        return -worst, -limit.amount

    def kept_by_ends(self, p):
        kept = set()
        then = None if self.target is None else self.measures(p, self.target)
        for rule, (value, least) in self.measures(p).items():
            ends = then is None or then[rule][0] >= then[rule][1]
            if value >= least and ends:
                kept.add(rule)
        return kept

    def group_values(self, placement=None):
        """Every rule of a group, by its kind, group and domain, with its value."""
        if placement is None:
            seats = [(p, k, n, s) for (p, k, n), s in self.seats.items()]
        else:
            seats = [(p, k, int(placement.node[k]), "serving") for p in range(len(placement))
                     for k in range(placement.first[p], placement.first[p + 1])
                     if placement.node[k] >= 0]  # fmt: skip
        role = self.role if placement is None else placement.role
        return {rule: value for rule, (value, _) in self.group_rules(seats, role).items()}

    def groups_kept_by_ends(self):
        """The least of every rule of a group that both ends keep."""
        c = self.cluster
        seats = [(p, k, n, s) for (p, k, n), s in self.seats.items()]
        rules = self.group_rules(seats, self.role)
        start = self.group_values(c.placement)
        ends = [start] + ([] if self.target is None else [self.group_values(self.target)])
        kept = {}
        for rule, (_, least) in rules.items():
            # a limit on every domain is kept where all of them keep it
            depends = rule[0] == "depends"
            alike = [rule] if depends else [one for one in rules if one[:3] == rule[:3]]
            if all(end[one] >= rules[one][1] for end in ends for one in alike):
                kept[rule] = least
        return kept

    def group_rules(self, seats, role):
        c = self.cluster
        group_of = c.partitions.group
        found = {}
        for g, number in enumerate(c.partitions.group_rule):
            if number < 0:
                continue
            rule = c.rules[number]
            mine = [one for one in seats if group_of[one[0]] == g and self.alive[one[2]]]
            serve = [(k, n) for p, k, n, s in mine if s in SERVES]
            present = [(k, n) for p, k, n, s in mine]
            mine.sort(key=lambda one: self.joined.get(one[:3], -1))
            stays = {k: n for _, k, n, s in mine if s in SERVES}
            wanted = any(c.partitions.replicas[p] for p in range(len(group_of)) if group_of[p] == g)
            for limit in rule.limits(per_node=False):
                if not limit.hard:
                    continue
                tier = c.topology.tier_index(limit.tier)
                domain = c.topology.domain_with_nodes[tier]
                if limit.kind == "spread":
                    pairs = {(k, int(domain[n])) for k, n in present if domain[n] >= 0}
                    crowd = Counter(d for _, d in pairs)
                    kind = "same_node" if limit.tier == "node" else "spread"
                    for d in range(int(c.topology.domain_count[tier])):
                        found[kind, g, limit.tier, d] = -crowd[d], -limit.amount
                    continue
                one = "min_domains", g, limit.tier, -1
                if limit.kind == "min_domains":
                    if wanted:
                        held = {int(domain[n]) for _, n in serve if domain[n] >= 0}
                        found[one] = len(held), limit.amount
                    continue
                count = Counter(int(domain[n]) for n in stays.values() if domain[n] >= 0)
                one = limit.kind, g, limit.tier, -1
                if limit.kind == "max_domains":
                    found[one] = -len(count), -limit.amount
                    continue
                fits = nodes_that_meet(c, rule.require) & c.nodes.may_hold
                able = {int(d) for n, d in enumerate(domain) if d >= 0 and fits[n]}
                skew = max(count.values(), default=0) - min((count[d] for d in able), default=0)
                found[one] = -skew if able else 0, -limit.amount
            for term in rule.terms():
                if wanted and not term.for_all:
                    mask = nodes_of(c, term)
                    held = [k for k, n in serve
                            if mask[n] and (role[k] == Role.VOTER or not term.voters)]  # fmt: skip
                    found[term.kind, g, term.text, -1] = len(held), term.least
        for one, other, tier in c.depends.tolist():
            domain = c.topology.domain_with_nodes[tier]
            held = {(int(group_of[p]), int(domain[n])) for p, k, n, s in seats
                    if s in SERVES and self.alive[n]}  # fmt: skip
            for d in range(int(c.topology.domain_count[tier])):
                lacks = (one, d) in held and (other, d) not in held
                found["depends", one, (other, tier), d] = -int(lacks), 0
        return found
