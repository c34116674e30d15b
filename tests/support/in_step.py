"""Keep a kernel state in step with the plain lists that a twin changes."""

import numpy as np

from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core import feasibility
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import relocate


@no_alloc
def admits(problem: Problem, state: State, k: int, n: int) -> bool:
    """The kernel, which others only inline, as something to call."""
    return feasibility.admits(problem, state, k, n)


class InStep:
    """Replicas by number, on the nodes of a list that a twin changes."""

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem, self.state = problem, state
        self.node = state.node.tolist()

    def follow(self) -> None:
        """Put the state where the list is."""
        gone = np.flatnonzero(self.state.node != self.node)
        relocate(self.problem, self.state, gone, np.array(self.node, np.int32)[gone])

    def leads(self, k: int) -> bool:
        p = self.problem.partitions.owner[k]
        first, leader = self.problem.partitions.first[p], self.state.leader[p]
        return bool(leader >= 0 and k == first + leader)

    def size(self, k: int) -> list[float]:
        partitions = self.problem.partitions
        load = partitions.leader_load if self.leads(k) else partitions.voter_load
        return load[partitions.owner[k]].tolist()

    def may(self, k: int, n: int) -> bool:
        self.follow()
        return admits(self.problem, self.state, k, n)

    def cluster(self) -> dict[str, object]:
        """Return what twins read, in plain lists."""
        state, nodes = self.state, self.state.load.shape[1]
        first, member = by_node(state.node, nodes)
        return {
            "load": state.load.T.tolist(), "node": self.node, "leaders": state.leaders.tolist(),
            "members": [member[first[n] : first[n + 1]].tolist() for n in range(nodes)],
            "home": self.problem.partitions.home.tolist(), "size": self.size, "leads": self.leads,
        }  # fmt: skip
