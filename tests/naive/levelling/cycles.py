"""The fewest moves of replicas that weigh alike: a flow from partitions by domains to nodes.

Each partition sends as many units as it has replicas through the domains that its limits count, the
widest first, to nodes that may hold it; a node where it does not stand costs 1.
"""

from collections.abc import Sequence

from ortools.graph.python import min_cost_flow


def fewest_moves(
    rows: Sequence[Sequence[int]],
    tiers: Sequence[tuple[Sequence[int], int]],
    may: Sequence[Sequence[bool]],
    room: Sequence[int],
) -> int | None:
    """Return the fewest moves to a placement within limits and room; None if there is none."""
    # ``rows`` are the nodes of each partition, ``tiers`` the domain of each node and the most
    # replicas in one, the widest first; ``may[p][n]`` says where a partition may stand, and
    # ``room`` how many replicas a node may hold
    flow, ids = min_cost_flow.SimpleMinCostFlow(), {}

    def vertex(*name: object) -> int:
        return ids.setdefault(name, len(ids))

    arcs: dict[tuple[int, int], tuple[int, int]] = {}
    for p, row in enumerate(rows):
        for n in range(len(room)):
            if not may[p][n]:
                continue
            at = vertex("partition", p)
            for level, (domain, most) in enumerate(tiers):
                inside = vertex("domain", p, level, domain[n])
                arcs[at, inside] = most, 0
                at = inside
            arcs[at, vertex("node", n)] = 1, int(n not in row)
    for n, most in enumerate(room):
        arcs[vertex("node", n), vertex("sink")] = max(0, most), 0
    for (a, b), (most, cost) in arcs.items():
        flow.add_arc_with_capacity_and_unit_cost(a, b, most, cost)
    for p, row in enumerate(rows):
        flow.set_node_supply(vertex("partition", p), len(row))
    flow.set_node_supply(vertex("sink"), -sum(map(len, rows)))
    return int(flow.optimal_cost()) if flow.solve() == flow.OPTIMAL else None
