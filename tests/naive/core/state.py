"""The incremental state in plain Python: every book is counted anew from where replicas are."""

from collections import Counter, defaultdict

import numpy as np

from evenkeel_kernels.core.problem import NON_VOTER, Problem, State

SPENT = ("spent", "moved_of", "came", "went")  # what budgets count


def leads(problem: Problem, state: State, k: int) -> bool:
    p = problem.partitions.owner[k]
    return state.leader[p] >= 0 and problem.partitions.first[p] + state.leader[p] == k


def loads(problem: Problem, state: State, k: int) -> list[float]:
    """Load of a replica in the role it has."""
    p = problem.partitions.owner[k]
    if leads(problem, state, k):
        return problem.partitions.leader_load[p].tolist()
    return following_loads(problem, state, k)


def following_loads(problem: Problem, state: State, k: int) -> list[float]:
    """Load of a replica while it does not lead."""
    p = problem.partitions.owner[k]
    if state.role[k] == NON_VOTER:
        return problem.partitions.non_voter_load[p].tolist()
    return problem.partitions.voter_load[p].tolist()


def members(problem: Problem, g: int) -> list[int]:
    """Replicas of a group."""
    owner = problem.partitions.owner
    return [k for k in range(len(owner)) if problem.partitions.group[owner[k]] == g]


def row(problem: Problem, p: int) -> list[int]:
    """Replicas of a partition."""
    return list(range(problem.partitions.first[p], problem.partitions.first[p + 1]))


def domains_of(problem: Problem, state: State, level: int, replicas: list[int]) -> Counter[int]:
    """How many of the replicas stand in each domain of a level."""
    domain = problem.domains.domain[level]
    at = [int(domain[state.node[k]]) for k in replicas if state.node[k] >= 0]
    return Counter(d for d in at if d >= 0)


def recount(problem: Problem, state: State) -> dict[str, np.ndarray]:
    """Every count of the state, from ``node``, ``role`` and ``leader`` alone."""
    counts = {
        name: np.zeros_like(getattr(state, name))
        for name in State._fields
        if name not in ("node", "role", "leader")
    }
    home = problem.partitions.home
    for k, n in enumerate(state.node.tolist()):
        for d, load in enumerate(loads(problem, state, k)):
            if n >= 0:
                counts["load"][d, n] += load
                for level in problem.domains.limited.tolist():
                    where = problem.domains.domain[level, n]
                    if where >= 0:
                        counts["domain_load"][d, where] += load
            left = problem.nodes.transient[d] and home[k] >= 0 and n != home[k]
            if left and problem.budgets.source[home[k]]:  # nothing is copied from a dead node
                counts["held"][d, home[k]] += following_loads(problem, state, k)[d]
        if n >= 0:
            counts["replicas"][n] += 1
            counts["leaders"][n] += leads(problem, state, k)
    rules, offset = problem.rules, problem.domains.domain_offset
    for g in range(len(state.moved)):
        replicas = members(problem, g)
        for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
            level = rules.group_limit[i, 0]
            count = domains_of(problem, state, level, replicas)
            counts["group_domains"][i] = len(count)
            for where, number in count.items():
                counts["group_count"][rules.group_base[i] + where - offset[level]] = number
        for i in range(rules.group_term_first[g], rules.group_term_first[g + 1]):
            counts["group_inside"][i] = inside(problem, state, rules.group_term[i], replicas)
        for level, base in enumerate(rules.near_base[g].tolist()):
            if base >= 0:
                for where, number in domains_of(problem, state, level, replicas).items():
                    counts["near_count"][base + where - offset[level]] = number
        counts["moved"][g] = sum(state.node[k] != home[k] for k in replicas)
        counts["moved_histogram"][counts["moved"][g]] += 1
    for one, other, level in needs(problem):
        have = domains_of(problem, state, level, members(problem, one))
        need = domains_of(problem, state, level, members(problem, other))
        for where in range(offset[level], offset[level + 1]):
            inside_level = where - offset[level]
            counts["near_absent"][rules.near_base[one, level] + inside_level] += where not in need
            counts["near_relying"][rules.near_base[other, level] + inside_level] += where in have
    counts["moved_most"][0] = counts["moved"].max(initial=0)
    if problem.budgets.binds:
        counts |= spent(problem, state)
    return counts


def inside(problem: Problem, state: State, term: np.ndarray, replicas: list[int]) -> int:
    """Replicas that a term counts and that stand on the nodes of its mask."""
    mask = problem.rules.term_mask[term[2]]
    return sum(
        bool(state.node[k] >= 0 and mask[state.node[k]])
        for k in replicas
        if not (term[1] and state.role[k] == NON_VOTER)
    )


def distance(problem: Problem, a: int, b: int) -> float:
    if a < 0 or b < 0:
        return 0.0
    if len(problem.moves.distance):
        return float(problem.moves.distance[a, b])
    levels = problem.domains.domain[:-1]
    differing = [level for level, at in enumerate(levels) if at[a] != at[b]]
    return float(problem.moves.tier_distance[differing[0] if differing else len(levels)])


def total_cost(problem: Problem, state: State) -> float:
    """Cost of the whole state by its definition."""
    nodes, moves = problem.nodes, problem.moves
    used: dict[tuple[int, int], float] = defaultdict(float)
    for k, n in enumerate(state.node.tolist()):
        for d, load in enumerate(loads(problem, state, k)):
            used[d, n] += load
    cost = 0.0
    for n in range(nodes.capacity.shape[1]):
        for d, weight in enumerate(nodes.weight.tolist()):
            cost += weight * max(0.0, used[d, n] - nodes.watermark[d, n])
        for (i, j), (ratio, weight) in zip(
            nodes.proportion_of.tolist(), nodes.proportion.tolist(), strict=True
        ):
            free_i, free_j = nodes.capacity[i, n] - used[i, n], nodes.capacity[j, n] - used[j, n]
            cost += weight * max(0.0, ratio * free_i - free_j)
        for h, (sign, weight) in enumerate(nodes.hinge.tolist()):
            beyond = sign * (used[int(nodes.hinge_of[h]), n] - nodes.hinge_at[h, n])
            cost += weight * max(0.0, beyond)
    cost += sharing(problem, state)
    moved: Counter[int] = Counter()
    for k, (n, home) in enumerate(
        zip(state.node.tolist(), problem.partitions.home.tolist(), strict=True)
    ):
        p = problem.partitions.owner[k]
        if n != home:
            moved[problem.partitions.group[p]] += 1
            cost += moves.move_cost[p] + moves.distance_weight * distance(problem, home, n)
    return float(cost + moves.group_weight * max(moved.values(), default=0))


def sharing(problem: Problem, state: State) -> float:
    """What groups pay for the domains that their replicas share."""
    rules, offset = problem.rules, problem.domains.domain_offset
    cost = 0.0
    for g in range(len(rules.group_limit_first) - 1):
        for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
            row, step = rules.price_of[i].tolist()
            if row < 0:
                continue
            level = rules.group_limit[i, 0]
            there = domains_of(problem, state, level, members(problem, g))
            for where in range(offset[level], offset[level + 1]):
                prices = rules.price[row + step * (where - offset[level])].tolist()
                beyond = max(0, there[where] - len(prices) + 1)
                cost += prices[there[where] - beyond] + beyond * (prices[-1] - prices[-2])
    return cost


def moved_to(state: State, k: int, n: int) -> State:
    """The state with one replica elsewhere, its counts left as they were."""
    node = state.node.copy()
    node[k] = n
    return state._replace(node=node)


def admits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether a move breaks nothing: what holds still holds, what is broken grows no worse."""
    here = int(state.node[k])
    p = int(problem.partitions.owner[k])
    if n == here or not problem.partitions.movable[k] or not problem.nodes.accepts[n]:
        return False
    if leads(problem, state, k):
        rank = problem.rules.lead_rank[problem.partitions.rule[p]]
        worse = here >= 0 and problem.nodes.leads[here] and rank[n] > rank[here]
        unfit = problem.partitions.led_from[p] < 0 and state.role[k] == NON_VOTER
        if not problem.nodes.leads[n] or rank[n] == 255 or worse or unfit:
            return False
        if not steps_down(problem, state, k, n):
            return False
    bans = slice(problem.partitions.forbidden_first[p], problem.partitions.forbidden_first[p + 1])
    if n in problem.partitions.forbidden[bans]:
        return False
    if not problem.rules.allowed[problem.partitions.mask[p], n]:
        return False
    after = moved_to(state, k, n)
    return (
        affords(problem, state, k, n)
        and has_room(problem, state, after, k, n)
        and limits_hold(problem, state, after, p, k, n)
        and terms_hold(problem, state, p, k, n)
        and group_holds(problem, state, after, k, n)
        and near_holds(problem, state, after, k, n)
    )


def steps_down(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether the node that a leader came with carries it as a follower until it has left."""
    here, home = int(state.node[k]), int(problem.partitions.home[k])
    if home < 0 or n == home or here not in (-1, home):
        return True
    counts = recount(problem, moved_to(state, k, -1))
    p = problem.partitions.owner[k]
    heavier = following_loads(problem, state, k) > problem.partitions.leader_load[p]
    over = (counts["load"] + counts["held"])[:, home] > problem.nodes.capacity[:, home]
    return not (problem.nodes.transient & heavier & over).any()


def has_room(problem: Problem, state: State, after: State, k: int, n: int) -> bool:
    counts = recount(problem, after)
    if counts["replicas"][n] > problem.nodes.max_replicas[n]:
        return False
    # what adds nothing in a dimension needs no room in it
    adds = np.array(loads(problem, state, k)) > 0.0
    if (adds & ((counts["load"] + counts["held"])[:, n] > problem.nodes.capacity[:, n])).any():
        return False
    for level in problem.domains.limited.tolist():
        where = problem.domains.domain[level, n]
        here = state.node[k]
        if where < 0 or (here >= 0 and problem.domains.domain[level, here] == where):
            continue
        over = counts["domain_load"][:, where] > problem.domains.tier_capacity[:, where]
        if (adds & over).any():
            return False
    return True


def domains_have_room(problem: Problem, before: dict, after: dict) -> bool:
    """Whether no domain whose capacity is limited gets more than that."""
    gains = after["domain_load"] > before["domain_load"]
    return not (gains & (after["domain_load"] > problem.domains.tier_capacity)).any()


def limits_hold(problem: Problem, state: State, after: State, p: int, k: int, n: int) -> bool:
    rules = problem.rules
    q = problem.partitions.rule[p]
    replicas = row(problem, p)
    for i in range(rules.limit_first[q], rules.limit_first[q + 1]):
        level, most, fewest, widest, skew = rules.limit[i].tolist()
        domain = problem.domains.domain[level]
        where = int(domain[n])
        before = domains_of(problem, state, level, replicas)
        then = domains_of(problem, after, level, replicas)
        came = state.node[k] >= 0 and domain[state.node[k]] == where
        if most >= 0 and where >= 0 and not came and then[where] > most:
            return False
        if fewest >= 0 and len(then) < min(fewest, len(before)):
            return False
        if widest >= 0 and len(then) > max(widest, len(before)):
            return False
        if skew >= 0:
            worst = max(skew, spread_of(problem, p, level, before))
            if not came and spread_of(problem, p, level, then) > worst:
                return False
    return True


def spread_of(problem: Problem, p: int, level: int, count: Counter[int]) -> int:
    """Most minus fewest replicas over the domains that hold an allowed node."""
    allowed = problem.rules.allowed[problem.partitions.mask[p]]
    eligible = {
        int(d)
        for d, ok in zip(problem.domains.domain[level], allowed, strict=True)
        if ok and d >= 0
    }
    if not eligible:
        return 0
    return max(0, max(count.values(), default=0) - min(count[d] for d in eligible))


def terms_hold(problem: Problem, state: State, p: int, k: int, n: int) -> bool:
    rules = problem.rules
    q = problem.partitions.rule[p]
    others = [j for j in row(problem, p) if j != k]
    here = state.node[k]
    for term in rules.term[rules.term_first[q] : rules.term_first[q + 1]]:
        mask = rules.term_mask[term[2]]
        if mask[n] or (term[1] and state.role[k] == NON_VOTER):
            continue
        if term[0] < 0:
            return False
        if here >= 0 and not mask[here]:
            continue
        still = inside(problem, state, term, others)
        if here < 0:
            still += sum(
                state.node[j] < 0 and not (term[1] and state.role[j] == NON_VOTER) for j in others
            )
        if still < term[0]:
            return False
    return True


def group_holds(problem: Problem, state: State, after: State, k: int, n: int) -> bool:
    rules = problem.rules
    g = problem.partitions.group[problem.partitions.owner[k]]
    replicas = members(problem, g)
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        level, most, fewest, widest, _ = rules.group_limit[i].tolist()
        domain = problem.domains.domain[level]
        before = domains_of(problem, state, level, replicas)
        then = domains_of(problem, after, level, replicas)
        where = int(domain[n])
        came = int(domain[state.node[k]]) if state.node[k] >= 0 else -1
        if most >= 0 and where >= 0 and where != came and then[where] > most:
            return False
        if fewest >= 0 and len(then) < min(fewest, len(before)):
            return False
        if widest >= 0 and len(then) > max(widest, len(before)):
            return False
        skew = int(rules.group_limit[i, 4])
        if skew >= 0 and where != came:
            now, later = (group_skew(problem, i, count) for count in (before, then))
            if later > max(skew, now):
                return False
    for term in rules.group_term[rules.group_term_first[g] : rules.group_term_first[g + 1]]:
        before_inside = inside(problem, state, term, replicas)
        if inside(problem, after, term, replicas) < min(term[0], before_inside):
            return False
    return True


def group_skew(problem: Problem, i: int, count: Counter[int]) -> int:
    """Most minus fewest replicas of a group in the domains of one of its limits."""
    rules, offset = problem.rules, problem.domains.domain_offset
    level = int(rules.group_limit[i, 0])
    inside = range(int(offset[level]), int(offset[level + 1]))
    base = int(rules.group_base[i]) - int(offset[level])
    eligible = [count[where] for where in inside if rules.group_open[base + where]]
    most = max((count[where] for where in inside), default=0)
    return max(0, most - min(eligible, default=1 << 30))


def spent(problem: Problem, state: State) -> dict[str, np.ndarray]:
    """What the placement has taken of the budgets, from scratch."""
    budgets, partitions = problem.budgets, problem.partitions
    counts = {name: np.zeros_like(getattr(state, name)) for name in SPENT}
    for k, (n, home) in enumerate(zip(state.node.tolist(), partitions.home.tolist(), strict=True)):
        p = int(partitions.owner[k])
        if n < 0:
            continue
        led_from = int(partitions.led_from[p])
        counts["spent"][2] += leads(problem, state, k) and led_from >= 0 and n != led_from
        if n == home:
            continue
        stood = partitions.home[partitions.owner == p].tolist()
        if n not in stood:
            counts["spent"][0] += 1
            counts["moved_of"][p] += 1
            if budgets.data_dimension >= 0:
                counts["spent"][1] += loads(problem, state, k)[budgets.data_dimension]
        for tier in budgets.tiers.tolist():
            domain = problem.domains.domain[tier]
            to, origin = int(domain[n]), int(domain[home]) if home >= 0 else -1
            is_node = tier + 1 == len(problem.domains.domain)
            if to != origin and to >= 0 and not (is_node and n in stood):
                counts["came"][to] += 1
            if to != origin and origin >= 0 and budgets.source[home]:
                counts["went"][origin] += 1
    return counts


def affords(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether no budget is exceeded, or exceeded by more than it was, once ``k`` is on ``n``."""
    budgets = problem.budgets
    if not budgets.binds:
        return True
    now, then = spent(problem, state), spent(problem, moved_to(state, k, n))
    limits = [
        (now["spent"][0], then["spent"][0], budgets.moves),
        (now["spent"][1], then["spent"][1], budgets.data),
        (now["spent"][2], then["spent"][2], budgets.leader_changes),
        (now["moved_of"], then["moved_of"], budgets.of_partition),
        (now["came"], then["came"], budgets.into),
        (now["went"], then["went"], budgets.out_of),
    ]
    return not any(((after > most) & (after > was)).any() for was, after, most in limits)


def overrun(problem: Problem, state: State) -> int:
    """What is spent beyond the budgets, all together; of data, moves of mean weight, begun ones."""
    budgets = problem.budgets
    if not budgets.binds:
        return 0
    count = spent(problem, state)
    moves, data, changes = count["spent"].tolist()
    beyond = max(0, moves - budgets.moves) + max(0, changes - budgets.leader_changes)
    if budgets.data_dimension >= 0 and data > budgets.data:
        beyond += 1 + (data - budgets.data) * moves // data
    for of, most in (("moved_of", budgets.of_partition), ("came", budgets.into),
                     ("went", budgets.out_of)):  # fmt: skip
        beyond += np.maximum(count[of] - most, 0).sum()
    return int(beyond)


def near_holds(problem: Problem, state: State, after: State, k: int, n: int) -> bool:
    """What the group of ``k`` needs is where it goes; what needs it has it where it came from."""
    g = int(problem.partitions.group[problem.partitions.owner[k]])
    for one, other, level in needs(problem):
        domain = problem.domains.domain[level]
        to = int(domain[n])
        came = int(domain[state.node[k]]) if state.node[k] >= 0 else -1
        if to == came:
            continue
        have = domains_of(problem, after, level, members(problem, one))
        need = domains_of(problem, after, level, members(problem, other))
        if one == g and to >= 0 and need[to] == 0:
            return False
        if other == g and came >= 0 and have[came] > 0 and need[came] == 0:
            return False
    return True


def needs(problem: Problem) -> list[tuple[int, int, int]]:
    rules = problem.rules
    return [
        (g, int(other), int(level))
        for g in range(len(rules.needs_first) - 1)
        for other, level in rules.needs[rules.needs_first[g] : rules.needs_first[g + 1]]
    ]
