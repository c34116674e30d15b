"""Taking idle moves back in plain Python: who can go home without more being too much, does."""


def take_back_idle(cluster, height, admits, trades):
    """Send replicas home, in order; ``cluster`` is a dict of lists, changed in place."""
    # ``load[n][d]``, ``scale[n][d]``, ``leaders[n]``, ``leader_scale[n]``, ``members[n]``,
    # ``node[k]``, ``home[k]``, ``forced[k]``, ``size(k)[d]`` and ``leads(k)`` say where things
    # stand; ``admits(k, n)`` and ``trades(k, i)`` whether the rules allow a move, or two places
    # traded
    node, home, forced, members = (cluster[key] for key in ("node", "home", "forced", "members"))
    size, leads, load, leaders = (cluster[key] for key in ("size", "leads", "load", "leaders"))
    scale, leader_scale = cluster["scale"], cluster["leader_scale"]
    dimensions = range(len(load[0]))

    def relocate(k, n):
        here = node[k]
        for d in dimensions:
            load[here][d] -= size(k)[d]
            load[n][d] += size(k)[d]
        leaders[here] -= leads(k)
        leaders[n] += leads(k)
        node[k] = n

    def is_idle(k, i):
        more = [x - (0.0 if i is None else size(i)[d]) for d, x in enumerate(size(k))]
        led = leads(k) - (0 if i is None else leads(i))
        change = 0.0
        for n, sign in ((home[k], 1), (node[k], -1)):
            pairs = [
                (load[n][d] * scale[n][d], (load[n][d] + sign * more[d]) * scale[n][d])
                for d in dimensions
            ]
            pairs.append(
                (leaders[n] * leader_scale[n], (leaders[n] + sign * led) * leader_scale[n])
            )
            if any(after > before and after > height for before, after in pairs):
                return False
            change += sum(max(0.0, now - 1.0) - max(0.0, was - 1.0) for was, now in pairs)
        return change <= 1e-9

    def go_home(k, here, at):
        if is_idle(k, None) and admits(k, home[k]):
            relocate(k, home[k])
            return 1
        for other, i in enumerate(members[home[k]]):
            came = node[i] == home[k] != home[i] and home[i] >= 0 and not forced[i]
            if came and is_idle(k, i) and trades(k, i):
                members[here][at], members[home[k]][other] = i, k
                relocate(k, home[k])
                relocate(i, here)
                return 1 + (home[i] == here)
        return 0

    returned, before = 0, -1
    while returned > before:
        before = returned
        for here in range(len(load)):
            for at in range(len(members[here])):
                k = members[here][at]
                if node[k] == here != home[k] and home[k] >= 0 and not forced[k]:
                    returned += go_home(k, here, at)
    return returned
