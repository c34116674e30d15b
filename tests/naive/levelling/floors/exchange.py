"""Exchanging in plain Python: who lacks most trades with who can spare most, best pair first."""

import math

BEYOND = math.inf


def exchange(cluster, lowest, most_leaders, admits, donors=8, moving=0.7):
    """Make the exchanges (one, other), in order; ``cluster``, a dict of lists, is changed."""
    # ``load[n][d]``, ``target[n][d]``, ``members[n]``, ``node[k]``, ``home[k]``, ``owner[k]``,
    # ``size(k)[d]``, ``leads(k)``, ``leaders[n]`` and ``accepts[n]`` say where things stand;
    # ``admits(k, n)`` whether the rules allow a move
    load, target, node = cluster["load"], cluster["target"], cluster["node"]
    members, home, size, leads = (cluster[key] for key in ("members", "home", "size", "leads"))
    dimensions = range(len(lowest[0]))
    stuck, trades = set(), []

    def relocate(k, n):
        here = node[k]
        for d in dimensions:
            load[here][d] -= size(k)[d]
            load[n][d] += size(k)[d]
        cluster["leaders"][here] -= leads(k)
        cluster["leaders"][n] += leads(k)
        node[k] = n

    def lack(n):
        parts = [1.0 - load[n][d] / lowest[n][d] for d in dimensions if lowest[n][d] > 0.0]
        most = max([0.0, *parts])
        return most if most > 1e-12 else 0.0

    def lacks(n, more):
        total = 0.0
        for d in dimensions:
            after = load[n][d] + more[d]
            if more[d] > 0.0 and after > target[n][d]:
                return BEYOND
            part = 1.0 - after / lowest[n][d] if lowest[n][d] > 0.0 else 0.0
            total += part * part if part > 1e-12 else 0.0
        return total

    def spare(n, lacking):
        found = -1.0
        for d in dimensions:
            if lowest[lacking][d] > load[lacking][d]:
                over = load[n][d] - lowest[n][d]
                finite = 0.0 < target[n][d] < math.inf
                found = max(found, over / target[n][d] if finite else over)
        return found

    def admits_both(k, i):
        here, n = node[k], node[i]
        if not admits(k, n):
            return False
        relocate(k, n)
        admitted = admits(i, here)
        relocate(k, here)
        return admitted

    def worth(k, i):
        here, n = node[k], node[i]
        more = [a - b for a, b in zip(size(k), size(i), strict=True)]
        nothing = [0.0 for _ in dimensions]
        was = lacks(n, nothing)
        gain = was - lacks(n, more)
        if gain <= 0.01 * was:
            return 0.0
        gain += lacks(here, nothing) - lacks(here, [-x for x in more])
        if gain <= 0.01 * was:
            return 0.0
        newly = (n != home[k]) - (here != home[k]) + (here != home[i]) - (n != home[i])
        for _ in range(newly):
            gain *= moving
        taker = n if leads(k) else here
        fits = leads(k) == leads(i) or cluster["leaders"][taker] + 1.0 <= most_leaders[taker]
        return gain if fits and cluster["owner"][k] != cluster["owner"][i] else 0.0

    def best_trade(n):
        ranked = sorted((-spare(m, n), m) for m in range(len(load)) if m != n)
        ranked = [m for over, m in ranked if over < 0.0]
        for start in range(0, len(ranked), donors):
            most, chosen = 0.0, None
            for here in ranked[start : start + donors]:
                if most > 0.45 * lacks(n, [0.0 for _ in dimensions]):
                    break
                for k in members[here]:
                    for i in members[n]:
                        gain = worth(k, i)
                        if gain > most and admits_both(k, i):
                            most, chosen = gain, (k, i)
            if chosen is not None:
                return chosen
        return None

    while True:
        lacking = [(-lack(n), n) for n in range(len(load)) if n not in stuck]
        lacking = [one for one in lacking if one[0] < 0.0 and cluster["accepts"][one[1]]]
        if not lacking:
            return trades
        n = min(lacking)[1]
        chosen = best_trade(n)
        if chosen is None:
            stuck.add(n)
            continue
        k, i = chosen
        here = node[k]
        members[n][members[n].index(i)], members[here][members[here].index(k)] = k, i
        relocate(k, n)
        relocate(i, here)
        trades.append((i, k))
