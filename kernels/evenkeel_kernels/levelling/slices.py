"""Sizes of the slices of work between two checks of the clock, some hundredths of a second.

Sizes depend on the problem alone, so that slices end at the same places every time.
"""

from collections.abc import Generator, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.problem import Problem

Result = TypeVar("Result")

# nodes, times dimensions, that a slice of best fit looks at; what a replica costs besides
LOOKS, OVERHEAD = 40_000_000, 1_000

# pairs of replicas of a node that a slice of choosing what it gives away looks at; and the most
# that each is paired with, since of many few are looked at again
PAIRS, MANY = 50_000_000, 2_500

PARTITIONS = 200_000  # partitions that a slice looks at where each takes a step or two

RULES = 200_000  # partitions, or nodes for one, whose rules a slice looks at


def replica_slices(problem: Problem, order: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut an order in which best fit places replicas; no slice ends within a partition."""
    step = looks_in_slice(problem)
    owner = problem.partitions.owner[order]
    begin = 0
    while begin < len(order):
        end = min(begin + step, len(order))
        while end < len(order) and owner[end] == owner[end - 1]:
            end += 1
        yield begin, end
        begin = end


def looks_in_slice(problem: Problem) -> int:
    """How often a slice looks for the best among all nodes."""
    return max(1, LOOKS // (problem.nodes.watermark.size + OVERHEAD))


def node_slices(nodes: int, replicas: int) -> Iterator[tuple[int, int]]:
    """Cut the nodes, which hold so many replicas in all, for them to choose what they give away."""
    each = replicas // max(1, nodes)
    return slices(nodes, max(1, PAIRS // max(1, each * min(each, MANY))))


def slices(count: int, step: int) -> Iterator[tuple[int, int]]:
    """Cut ``count`` into slices of ``step``."""
    for begin in range(0, count, step):
        yield begin, min(begin + step, count)


def at_once(in_slices: Generator[int, None, Result]) -> Result:
    """Run to its end what is done in slices, and return what it returns."""
    while True:
        try:
            next(in_slices)
        except StopIteration as ended:
            result: Result = ended.value
            return result
