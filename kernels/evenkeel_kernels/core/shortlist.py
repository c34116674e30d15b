"""The nodes that are used least, in arrays of their own: nearly always the best one is among them.

A replica only adds to what a node carries, and so does what is charged besides its load: no node
scores less with it than its use without it. So where the best of a few nodes scores less than any
other is used, it is the best of all, and nobody need look at the others. Nodes that are all but
full, the most of a cluster just expanded, are looked at once in a while and not for every replica.
"""

from evenkeel_kernels.build.jit import device_function, inline_only
from evenkeel_kernels.core.feasibility import admits
from evenkeel_kernels.core.node_scan import FAR, REFUSALS, SPREADING, Scan, full_domain
from evenkeel_kernels.core.problem import Problem, State, index

FEWEST = 32
"""Replicas to place that are worth a list."""

HALVINGS, MOST = 24, 4.0
"""How closely is found up to which use nodes are listed, and the most."""


@device_function
def draw_up(problem: Problem, state: State, scan: Scan, replicas: int) -> None:
    """List the nodes that are used least, to place so many replicas; none if that is not worth it.

    The scores of ``scan`` hold no longer. O(D N), vectorised.
    """
    listed = scan.listed
    listed.length[0] = 0
    most = listed.node.shape[0]
    if most == 0 or replicas < FEWEST:
        return
    n_nodes = scan.score.shape[0]
    for n in range(n_nodes):
        scan.score[n] = use_of(state, scan, index(n)) if problem.nodes.accepts[n] else FAR
    low, high = 0.0, MOST
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        count = 0
        for n in range(n_nodes):
            count += int(scan.score[n] < middle)
        if count <= most:
            low = middle
        else:
            high = middle
    listed.beyond[0] = low
    at = index(0)
    for n in range(n_nodes):
        listed.place[n] = -1
        if scan.score[n] < low:
            listed.node[at] = n
            listed.place[n] = at
            for d in range(state.load.shape[0]):
                listed.load[d, at] = state.load[d, n]
                listed.scale[d, at] = scan.scale[d, n]
            for mask in range(listed.closed.shape[0]):
                listed.closed[mask, at] = scan.closed[mask, n]
            for level in range(listed.domain.shape[0]):
                listed.domain[level, at] = problem.domains.domain[level, n]
            at += 1
    listed.length[0] = at


@inline_only
def use_of(state: State, scan: Scan, n: int) -> float:
    """The least that node ``n`` can score: what it would with a replica that weighs nothing."""
    use = state.load[0, n] * scan.scale[0, n]
    for d in range(1, state.load.shape[0]):
        use = max(use, state.load[d, n] * scan.scale[d, n])
    return use


@inline_only
def follow(state: State, scan: Scan, n: int) -> None:
    """Keep the list current: the load of node ``n`` has changed, if there is such a node."""
    listed = scan.listed
    if listed.length[0] == 0 or n < 0:
        return
    at = listed.place[n]
    if at < 0:
        listed.beyond[0] = min(listed.beyond[0], use_of(state, scan, n))
        return
    for d in range(state.load.shape[0]):
        listed.load[d, at] = state.load[d, n]


@device_function
def find_listed(problem: Problem, state: State, scan: Scan, k: int, limit: float) -> int:
    """Best node for replica ``k``, in hand, if it is certain from the list alone, else -1.

    It scores at most ``limit``. The scores are those of
    `evenkeel_kernels.core.node_scan.fill`, bit for bit, and so is which of equals is first.
    """
    listed, rules = scan.listed, problem.rules
    count = listed.length[0]
    p = index(problem.partitions.owner[k])
    first, mask = problem.partitions.first, problem.partitions.mask[p]
    more = scan.size[0]
    for i in range(count):
        score = (listed.load[0, i] + more) * listed.scale[0, i]
        listed.score[i] = listed.closed[mask, i] + score
    for d in range(1, scan.size.shape[0]):
        more = scan.size[d]
        for i in range(count):
            score = (listed.load[d, i] + more) * listed.scale[d, i]
            listed.score[i] = max(listed.score[i], score)
    q = problem.partitions.rule[p]
    for limited in range(rules.limit_first[q], rules.limit_first[q + 1]):
        level = index(rules.limit[limited, 0])
        for j in range(first[p], first[p + 1]):
            where = full_domain(problem, state, k, index(limited), index(j))
            if where >= 0:
                for i in range(count):
                    full = listed.domain[level, i] == where
                    listed.score[i] = FAR if full else listed.score[i]
    flipped = (k * SPREADING) >> 32 & ~scan.keep
    for _ in range(min(REFUSALS, count)):  # LLVM would make four copies of a fixed number
        least = listed.bits[0] | ~scan.keep
        for i in range(count):
            least = min(least, (listed.bits[i] & scan.keep) | (listed.node[i] ^ flipped))
        n = index((least & ~scan.keep) ^ flipped)
        at = listed.place[n]
        if least & scan.keep >= listed.beyond_bits[0] & scan.keep or listed.score[at] > limit:
            return index(-1)
        if admits(problem, state, k, n):
            return n
        listed.score[at] = FAR
    return index(-1)
