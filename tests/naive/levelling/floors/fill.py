"""Filling in plain Python: who lacks most takes what makes up most, from whoever can spare it."""

import math


def fill(cluster, lowest, most_leaders, admits, most_moves, donors=8, free=1.5, leading=0.5):
    """Make the moves (replica, node), in order; ``cluster``, a dict of lists, is changed."""
    # ``load[n][d]``, ``target[n][d]``, ``node[k]``, ``home[k]``, ``size(k)[d]``, ``leads(k)`` and
    # ``accepts[n]`` say where things stand; ``admits(k, n)`` whether the rules allow a move
    load, target, node = cluster["load"], cluster["target"], cluster["node"]
    dimensions = range(len(lowest[0]))
    began = list(node)
    stuck, moves, made = set(), [], 0

    def lack(n):
        parts = [1.0 - load[n][d] / lowest[n][d] for d in dimensions if lowest[n][d] > 0.0]
        most = max([0.0, *parts])
        return most if most > 1e-12 else 0.0

    def spare(n, lacking):
        found = -1.0
        for d in dimensions:
            if lowest[lacking][d] > load[lacking][d]:
                over = load[n][d] - lowest[n][d]
                finite = 0.0 < target[n][d] < math.inf
                found = max(found, over / target[n][d] if finite else over)
        return found

    def made_up(k, here, n):
        gain, size = 0.0, cluster["size"](k)
        for d in dimensions:
            if load[n][d] + size[d] > target[n][d]:
                return 0.0
            if size[d] > 0.0 and load[here][d] - size[d] < lowest[here][d]:
                return 0.0
            if lowest[n][d] > 0.0:
                gain += min(size[d], max(0.0, lowest[n][d] - load[n][d])) / lowest[n][d]
        return gain

    while True:
        lacking = [(-lack(n), n) for n in range(len(load)) if n not in stuck]
        lacking = [one for one in lacking if one[0] < 0.0 and cluster["accepts"][one[1]]]
        if not lacking:
            return moves
        n = min(lacking)[1]
        may_lead = cluster["leaders"][n] + 1.0 <= most_leaders[n]
        ranked = sorted((-spare(m, n), m) for m in range(len(load)) if m != n)
        ranked = [m for over, m in ranked if over < 0.0]
        chosen = None
        for start in range(0, len(ranked), donors):
            most = 0.0
            for here in ranked[start : start + donors]:
                for k in range(len(node)):
                    if began[k] != here or node[k] != here:
                        continue
                    gain = made_up(k, here, n)
                    if cluster["leads"](k):
                        gain *= leading if may_lead else 0.0
                    more = (n != cluster["home"][k]) - (here != cluster["home"][k])
                    if more <= 0:
                        gain *= free
                    elif most_moves - made < 1:
                        continue
                    if gain > most and admits(k, n):
                        chosen, most = k, gain
            if chosen is not None:
                break
        if chosen is None:
            stuck.add(n)
            continue
        here = node[chosen]
        made += (n != cluster["home"][chosen]) - (here != cluster["home"][chosen])
        for d in dimensions:
            load[here][d] -= cluster["size"](chosen)[d]
            load[n][d] += cluster["size"](chosen)[d]
        if cluster["leads"](chosen):
            cluster["leaders"][here] -= 1
            cluster["leaders"][n] += 1
        node[chosen] = n
        moves.append((chosen, n))
