"""The audit, rule by rule and replica by replica, with dictionaries and loops."""

from collections import Counter, defaultdict

from evenkeel.model.placement import Flag, Role
from evenkeel.model.rules import Rule

# kind, partition, group, node, level, domain, dimension; -1 for none
Row = tuple[str, int, int, int, int, int, int]


class Found:
    """Rows found so far and how much of each."""

    def __init__(self):
        self.amounts = defaultdict(float)
        self.counts = Counter()

    def add(
        self, kind, amount, partition=-1, group=-1, node=-1, level=-1, domain=-1, dimension=-1, *,
        counts=None,
    ):  # fmt: skip
        self.amounts[kind, partition, group, node, level, domain, dimension] += amount
        self.counts[kind] += amount if counts is None else counts


def audit(cluster, placement):
    """Every violation of a placement; the cluster's own placement is what it came from."""
    found = Found()
    rows = rows_of(placement)
    check_replicas(cluster, placement, rows, found)
    check_leaders(cluster, placement, rows, found)
    check_partition_rules(cluster, placement, rows, found)
    check_group_rules(cluster, placement, rows, found)
    check_depends(cluster, rows, found)
    check_loads(cluster, placement, rows, found)
    return found


def rows_of(placement):
    """Per partition, a list of (slot, node, role) of the slots that have a node."""
    rows = []
    for p in range(len(placement)):
        start, end = int(placement.first[p]), int(placement.first[p + 1])
        rows.append(
            [
                (k - start, int(placement.node[k]), int(placement.role[k]))
                for k in range(start, end)
                if placement.node[k] >= 0
            ]
        )
    return rows


def check_replicas(cluster, placement, rows, found):
    nodes, parts = cluster.nodes, cluster.partitions
    forbidden = {tuple(pair) for pair in cluster.forbidden.tolist()}
    origin = cluster.placement
    came_from = rows_of(origin)
    for p, row in enumerate(rows):
        here = staying = live = 0
        for _, n, _ in row:
            serves = nodes.alive[n] and not nodes.gone[n]
            here += 1
            live += bool(serves)
            if nodes.keeps[n] and not nodes.gone[n]:
                staying += 1
            elif serves:
                found.add("not_kept", 1, p, node=n)
            else:
                found.add("on_dead", 1, p, node=n)
        for n in sorted({n for _, n, _ in row}):
            more = sum(at == n for _, at, _ in row) - sum(at == n for _, at, _ in came_from[p])
            closed = nodes.keeps[n] and not nodes.gone[n] and not nodes.accepts[n]
            if closed and more > 0:
                found.add("not_accepted", more, p, node=n)
        wanted = int(parts.replicas[p])
        if here < wanted:
            found.add("unassigned", wanted - here, p)
        if staying > wanted:
            found.add("surplus", staying - wanted, p)
        if live < parts.min_active[p]:
            found.add("min_active", int(parts.min_active[p]) - live, p)
        standing = {n for _, n, _ in row}
        for n in standing:
            if (p, n) in forbidden:
                found.add("forbidden", 1, p, node=n)
        for k in range(int(origin.first[p]), int(origin.first[p + 1])):
            n = int(origin.node[k])
            if n >= 0 and origin.flags[k] & Flag.PINNED and n not in standing:
                found.add("pinned", 1, p, node=n)


def check_leaders(cluster, placement, rows, found):
    nodes = cluster.nodes
    anybody = any(slot >= 0 for slot in cluster.placement.leader)
    for p, row in enumerate(rows):
        leader = [(n, role) for slot, n, role in row if slot == placement.leader[p]]
        if not leader:
            if anybody and cluster.partitions.replicas[p] > 0:
                found.add("leaderless", 1, p)
            continue
        ((n, role),) = leader
        if not can_lead(nodes, n) or role != Role.VOTER:
            found.add("leader", 1, p, node=n)


def can_lead(nodes, n):
    return bool(
        nodes.alive[n] and nodes.leads[n] and nodes.lead_weight[n] > 0 and not nodes.gone[n]
    )


def meets(cluster, text, n):
    """Whether a node meets an expression such as "zone=z1,+ssd"."""
    for test in text.split(","):
        test = test.strip()
        if test[0] in "+-" and "=" not in test:
            holds = bool(cluster.nodes.tags[test[1:].strip()][n])
            if holds != (test[0] == "+"):
                return False
            continue
        wanted = "!=" not in test
        key, value = (part.strip() for part in test.split("=" if wanted else "!=", 1))
        if key in cluster.topology.tiers:
            row = cluster.topology.tiers.index(key)
            code, meaning = cluster.topology.label[row][n], cluster.topology.label_names[row]
        elif key in cluster.nodes.attributes:
            codes, meaning = cluster.nodes.attributes[key]
            code = codes[n]
        else:
            assert key == "node"
            code, meaning = n, cluster.nodes.names
        holds = code >= 0 and meaning[code] == value
        if holds != wanted:
            return False
    return True


def check_partition_rules(cluster, placement, rows, found):
    parts = cluster.partitions
    for p, row in enumerate(rows):
        own = cluster.rules[parts.rule[p]] if parts.rule[p] >= 0 else Rule()
        of_group = int(parts.group_rule[parts.group[p]])
        shared = cluster.rules[of_group] if of_group >= 0 else Rule()
        require = [*own.require, *shared.require]
        for _, n, role in row:
            for rule in (own, shared):  # each rule that excludes a node counts
                if not all(meets(cluster, text, n) for text in rule.require):
                    found.add("require", 1, p, node=n)
                voters = rule.voters_require
                if role == Role.VOTER and not all(meets(cluster, text, n) for text in voters):
                    found.add("voters_require", 1, p, node=n)
        check_limits(cluster, own.limits(), row, require, parts.replicas[p] > 0, found, p=p)
        if parts.replicas[p] > 0:
            check_places(cluster, own, row, found, p=p)
        check_preference(cluster, list(own.lead or shared.lead), placement.leader[p], row, p, found)


def check_group_rules(cluster, placement, rows, found):
    parts = cluster.partitions
    for g in range(len(parts.group_names)):
        if parts.group_rule[g] < 0:
            continue
        rule = cluster.rules[parts.group_rule[g]]
        members = [p for p in range(len(parts)) if parts.group[p] == g]
        together = [replica for p in members for replica in rows[p]]
        wanted = any(parts.replicas[p] > 0 for p in members)
        limits = rule.limits(per_node=False)
        check_limits(cluster, limits, together, rule.require, wanted, found, g=g)
        if wanted:
            check_places(cluster, rule, together, found, g=g)


def check_limits(cluster, limits, row, require, wanted, found, p=-1, g=-1):
    for limit in limits:
        level, domain_of = domains(cluster, limit.tier)
        count = Counter(domain_of[n] for _, n, _ in row if domain_of[n] >= 0)
        prefix = "" if limit.hard else "soft_"
        if limit.kind == "spread":
            kind = "same_node" if limit.tier == "node" else "spread"
            for domain, here in count.items():
                if here > limit.amount:
                    over = here - limit.amount
                    found.add(prefix + kind, over, p, g, level=level, domain=domain)
            continue
        short = 0
        if limit.kind == "min_domains" and wanted:
            short = limit.amount - len(count)
        elif limit.kind == "max_domains":
            short = len(count) - limit.amount
        elif limit.kind == "skew":
            eligible = {
                domain_of[n]
                for n in range(len(cluster.nodes))
                if domain_of[n] >= 0
                and cluster.nodes.keeps[n]
                and not cluster.nodes.gone[n]
                and all(meets(cluster, text, n) for text in require)
            }
            if eligible and count:
                fullest = max(count.values())
                emptiest = min(count[domain] for domain in eligible)
                short = fullest - min(emptiest, fullest) - limit.amount
        if short > 0:
            found.add(prefix + limit.kind, short, p, g, level=level)


def domains(cluster, level):
    """The row of a level, and the domain of each node on it."""
    topology = cluster.topology
    if level not in topology.tiers:
        return len(topology.tiers), list(range(len(cluster.nodes)))
    row = topology.tiers.index(level)
    return row, topology.domain[row].tolist()


def wanted_on(cluster, term, n):
    """Whether a term wants replicas on a node."""
    return meets(cluster, term.text, n)


def check_places(cluster, rule, row, found, p=-1, g=-1):
    for term in rule.terms():
        inside = 0
        for _, n, role in row:
            if role == Role.VOTER or not term.voters:
                inside += wanted_on(cluster, term, n)
        if inside < term.least:
            found.add(term.kind, term.least - inside, p, g)


def check_preference(cluster, lead, leader, row, p, found):
    def rank(n):
        for choice, text in enumerate(lead):
            if meets(cluster, text, n):
                return choice
        return len(lead)

    for slot, n, _ in row:
        if slot == leader:
            others = [
                rank(other)
                for _, other, role in row
                if role == Role.VOTER and can_lead(cluster.nodes, other)
            ]
            best = min([*others, len(lead)])
            if rank(n) > best:
                found.add("lead", rank(n) - best, p, node=n, counts=1)


def check_depends(cluster, rows, found):
    topology = cluster.topology
    for one, other, level in sorted({tuple(edge) for edge in cluster.depends.tolist()}):
        domain_of = topology.domain_with_nodes[level].tolist()
        there = {one: set(), other: set()}
        for p, row in enumerate(rows):
            g = int(cluster.partitions.group[p])
            if g in there:
                there[g] |= {domain_of[n] for _, n, _ in row} - {-1}
        for domain in there[one] - there[other]:
            found.add("depends", 1, group=one, level=level, domain=domain)


def replica_load(cluster, p, d, leads, role):
    load = cluster.partitions.load
    if leads:
        return float(load.leader[p, d])
    return float((load.non_voter if role == Role.NON_VOTER else load.voter)[p, d])


def loads_of(cluster, placement, rows):
    """Load per (node, dimension)."""
    total = defaultdict(float)
    for p, row in enumerate(rows):
        for slot, n, role in row:
            for d in range(len(cluster.dimensions)):
                total[n, d] += replica_load(cluster, p, d, slot == placement.leader[p], role)
    return total


def check_loads(cluster, placement, rows, found):
    nodes = cluster.nodes
    load = loads_of(cluster, placement, rows)
    held, was = defaultdict(float), rows_of(cluster.placement)
    came = loads_of(cluster, cluster.placement, was)
    for p, before in enumerate(was):
        now = [n for _, n, _ in rows[p]]
        kept = {(slot, n) for slot, n, _ in rows[p]}
        for slot, n, role in sorted(before, key=lambda one: one[:2] not in kept):
            ends = slot == cluster.placement.leader[p] and placement.leader_node[p] < 0
            if n in now:
                now.remove(n)
            elif nodes.alive[n]:
                for d in range(len(cluster.dimensions)):
                    held[n, d] += min(
                        replica_load(cluster, p, d, leads, role) for leads in {False, ends}
                    )
    serving = [
        n for n in range(len(nodes)) if (nodes.alive[n] or nodes.keeps[n]) and not nodes.gone[n]
    ]
    for n in serving:
        for d in range(len(cluster.dimensions)):
            room = float(nodes.capacity[n, d])
            if load[n, d] > room * (1 + 1e-11):
                found.add("capacity", load[n, d] - room, node=n, dimension=d, counts=1)
                continue
            both = load[n, d] + held[n, d]
            most = max(room, came[n, d])  # of one that came too full some only leave
            if cluster.transient[d] and held[n, d] > 0.0 and both > most * (1 + 1e-11):
                found.add("transient", both - room, node=n, dimension=d, counts=1)
        count = sum(n == other for row in rows for _, other, _ in row)
        if 0 <= nodes.max_replicas[n] < count:
            found.add("max_replicas", count - int(nodes.max_replicas[n]), node=n)
    for level, capacity in cluster.topology.tier_capacity.items():
        row, domain_of = domains(cluster, level)
        for domain in range(len(capacity)):
            for d in range(len(cluster.dimensions)):
                total = sum(load[n, d] for n in serving if domain_of[n] == domain)
                if total > capacity[domain, d] * (1 + 1e-11):
                    found.add(
                        "tier_capacity", total - float(capacity[domain, d]),
                        level=row, domain=domain, dimension=d, counts=1,
                    )  # fmt: skip
