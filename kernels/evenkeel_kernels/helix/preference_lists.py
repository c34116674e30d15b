"""Who leads: the order of each partition's nodes.

References
----------
Apache Helix, CRUSH-ed for even distribution, step 3; ``AbstractEvenDistributionRebalanceStrategy``.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import jit, no_alloc
from evenkeel_kernels.core.leader_lists import Leading, Search, leave_lead, take_lead
from evenkeel_kernels.helix.even_deal import Lists


@jit
def shuffle_lists(
    lists: Lists,
    order: NDArray[np.int64],
    load: NDArray[np.int64],
    partition_hash: NDArray[np.uint32],
    name_hash: NDArray[np.uint32],
    name_power: NDArray[np.uint32],
) -> None:
    """Order each partition's nodes so that all of them come first about equally often.

    The node that comes first is charged R * R, and each node of the list pays one back, from what
    it holds.

    ``order (p,)``: the partitions in the order in which they are walked; ``load (N,)``: replicas
    that each node holds; ``partition_hash (P,)``: java hash of each partition's name;
    ``name_hash``, ``name_power (N,)``: java hash of each node's name, and 31 to the power of its
    length; together with the former they give the hash of the names put together, which decides
    between equals.
    """
    score = load.copy()
    tie = np.empty(lists.node.shape[1], np.int32)
    for p in order:
        size = lists.size[p]
        for i in range(size):
            n = lists.node[p, i]
            own = np.int32(np.uint32(partition_hash[p] * name_power[n] + name_hash[n]))
            j = i
            while j > 0:
                other = lists.node[p, j - 1]
                ahead = score[other] < score[n]
                if ahead or (score[other] == score[n] and tie[j - 1] <= own):
                    break
                lists.node[p, j] = other
                tie[j] = tie[j - 1]
                j -= 1
            lists.node[p, j] = n
            tie[j] = own
        for i in range(size):
            score[lists.node[p, i]] -= 1
        score[lists.node[p, 0]] += size * size


@jit
def level_leaders(lists: Lists, nodes: int) -> None:
    """Swap leaders within lists until no chain of swaps levels them further.

    The node that leads most hands a partition on to another node of its list, and that one hands
    on one of its own, until it reaches a node that leads at least two fewer than the first.
    """
    partitions = lists.size.size
    leading = Leading(
        led=np.zeros(nodes, np.int64),
        first=np.full(nodes, -1),
        next=np.full(partitions, -1),
        previous=np.full(partitions, -1),
    )
    search = Search(
        queue=np.empty(nodes, np.int64),
        reached=np.full(nodes, -1),
        through=np.empty(nodes, np.int64),
        before=np.empty(nodes, np.int64),
    )
    settled = np.zeros(nodes, np.bool_)
    for p in range(partitions - 1, -1, -1):
        if lists.size[p] > 0:
            take_lead(leading, lists.node[p, 0], p)
    number = 0
    while True:
        top = -1
        for n in range(nodes):
            if not settled[n] and (top < 0 or leading.led[n] > leading.led[top]):
                top = n
        if top < 0:
            return
        goal = shortest_chain(lists, leading, search, settled, top, number)
        if goal < 0:
            # whom a chain reaches from here leads at most one fewer, and reaches nobody else
            for n in range(nodes):
                settled[n] |= search.reached[n] == number
            number += 1
            continue
        number += 1
        while goal != top:
            p, giver = search.through[goal], search.before[goal]
            k = 1
            while lists.node[p, k] != goal:
                k += 1
            lists.node[p, k] = giver
            lists.node[p, 0] = goal
            leave_lead(leading, giver, p)
            take_lead(leading, goal, p)
            goal = giver


@no_alloc
def shortest_chain(
    lists: Lists,
    leading: Leading,
    search: Search,
    settled: NDArray[np.bool_],
    top: int,
    number: int,
) -> int:
    """Find the nearest node that leads at least two fewer than another, past no settled one.

    Returns the node, -1 where there is none; the chain to it is in ``search``.
    """
    search.queue[0] = top
    search.reached[top] = number
    head, tail = 0, 1
    while head < tail:
        n = search.queue[head]
        head += 1
        p = leading.first[n]
        while p >= 0:
            for k in range(1, lists.size[p]):
                other = lists.node[p, k]
                if settled[other] or search.reached[other] == number:
                    continue
                search.reached[other] = number
                search.before[other] = n
                search.through[other] = p
                if leading.led[other] <= leading.led[top] - 2:
                    return int(other)
                search.queue[tail] = other
                tail += 1
            p = leading.next[p]
    return -1
