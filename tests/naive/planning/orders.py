"""Every order there is: whether replicas get where they are to be, and at what least cost.

One replica after another goes to where it is to be, or first to some other node. All weigh the same
whether they lead or not, and count on both their nodes while they hand over.
"""

from heapq import heappop, heappush


def least_bytes(cluster, target, hops=1, tiers=()):
    """Return the least bytes that are copied, None where no order leads to the target."""
    # ``hops`` is how often a replica may wait on another node. Those of a partition never share a
    # node, nor a domain of the ``tiers``.
    begin = tuple(int(n) for n in cluster.placement.node)
    goal = tuple(int(n) for n in target.node)
    best = {(begin, (0,) * len(begin)): 0.0}
    heap = [(0.0, begin, (0,) * len(begin))]
    forbidden = {(int(p), int(n)) for p, n in cluster.forbidden}
    owner = cluster.placement.owner.tolist()
    apart = [[*range(len(cluster.nodes))]]
    apart += [cluster.topology.domain[cluster.topology.tiers.index(t)].tolist() for t in tiers]
    limits = _limits(cluster, begin, goal)
    while heap:
        cost, state, hopped = heappop(heap)
        if state == goal:
            return cost
        if best[state, hopped] < cost:
            continue
        for k, here in enumerate(state):
            if begin[k] == goal[k] or here == goal[k]:
                continue
            p = owner[k]
            others = [n for j, n in enumerate(state) if j != k and owner[j] == p]
            for to in range(len(cluster.nodes)):
                hop = to != goal[k]
                if to == here or (hop and (hopped[k] == hops or (p, to) in forbidden)):
                    continue
                if any(where[to] == where[n] for where in apart for n in others):
                    continue
                if not _fits(cluster, limits, state, k, to):
                    continue
                after = (*state[:k], to, *state[k + 1 :])
                then = (*hopped[:k], hopped[k] + hop, *hopped[k + 1 :])
                total = cost + float(cluster.partitions.load.voter[p, cluster.bytes_dimension])
                if total < best.get((after, then), float("inf")):
                    best[after, then] = total
                    heappush(heap, (total, after, then))
    return None


def _places(cluster):
    for n in range(len(cluster.nodes)):
        yield {n}, cluster.nodes.capacity[n]
    for tier, capacity in cluster.topology.tier_capacity.items():
        row = cluster.topology.tiers.index(tier)
        for domain, most in enumerate(capacity):
            inside = [cluster.topology.domain[row, n] == domain for n in range(len(cluster.nodes))]
            yield {n for n, one in enumerate(inside) if one}, most


def _carried(cluster, state, nodes, d, twice=None):
    total = 0.0
    for k, (p, n) in enumerate(zip(cluster.placement.owner.tolist(), state, strict=True)):
        held = {n, twice[1]} if twice and twice[0] == k else {n}
        total += float(cluster.partitions.load.voter[p, d]) * len(held & nodes)
    return total


def _limits(cluster, begin, goal):
    return [
        (nodes, [max(float(most[d]), *(_carried(cluster, one, nodes, d) for one in (begin, goal)))
                 for d in range(len(most))])
        for nodes, most in _places(cluster)
    ]  # fmt: skip


def _fits(cluster, limits, state, k, to):
    """Whether there is room while a replica is on its way, and when it has arrived."""
    after = (*state[:k], to, *state[k + 1 :])
    return all(
        _carried(cluster, one, nodes, d, twice) <= most + 1e-9
        for nodes, limit in limits
        for d, most in enumerate(limit)
        for one, twice in ((state, (k, to)), (after, None))
    )
