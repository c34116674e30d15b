"""Every order of a few moves that need room from their start: when the last one can be done."""

from functools import cache
from itertools import combinations

# the node it leaves, the node it joins, what it weighs, and how long its copy takes
Move = tuple[int, int, float, float]


def soonest(moves: list[Move], room: list[float]) -> float:
    """Return the least time until all are done, inf if there is no order."""

    @cache
    def search(waiting: frozenset[int], running: frozenset[tuple[int, float]]) -> float:
        if not waiting and not running:
            return 0.0
        free = list(room)
        done = set(range(len(moves))) - waiting
        for i in done:
            free[moves[i][1]] -= moves[i][2]
        for i in done - {i for i, _ in running}:
            free[moves[i][0]] += moves[i][2]
        best = float("inf")
        for count in range(len(waiting) + 1):
            for some in combinations(sorted(waiting), count):
                after = list(free)
                for i in some:
                    after[moves[i][1]] -= moves[i][2]
                if min(after) < 0.0 or not (running or some):
                    continue
                on = {*running, *((i, moves[i][3]) for i in some)}
                step = min(left for _, left in on)
                left = frozenset((i, rest - step) for i, rest in on if rest > step)
                best = min(best, step + search(waiting - set(some), left))
        return best

    return search(frozenset(range(len(moves))), frozenset())
