"""Where replicas are by name, whatever order the files of a system list them in."""

from collections import Counter

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.planning.plan import Plan
from evenkeel.planning.steps import Steps, outcome

Where = dict[str, tuple[list[str], str]]
"""Per partition the nodes that hold it, and the one that leads."""


def where(cluster: Cluster, placement: Placement | None = None) -> Where:
    """Return the nodes and the leader of every partition."""
    placed = cluster.placement if placement is None else placement
    names = [*cluster.nodes.names]
    found: Where = {}
    leads = placed.leader_node.tolist()
    for p, partition in enumerate(cluster.partitions.names):
        own = placed.node[placed.first[p] : placed.first[p + 1]].tolist()
        held = sorted(names[n] for n in own if n >= 0)
        found[partition] = (held, names[leads[p]] if leads[p] >= 0 else "")
    return found


def apart(now: Where, then: Where) -> dict[str, tuple[object, object]]:
    """Return what differs, so that a failure shows it."""
    return {
        key: (now.get(key), then.get(key))
        for key in now.keys() | then.keys()
        if now.get(key) != then.get(key)
    }


def moves_between(before: Where, after: Where) -> int:
    """Count the replicas that are where none of their partition was."""
    return sum(len({*after[name][0]} - {*before[name][0]}) for name in before)


def height(seen: Where, nodes: int) -> float:
    """Return how many replicas are on the fullest node, by the mean over ``nodes``."""
    held = Counter(node for own, _ in seen.values() for node in own)
    return max(held.values()) * nodes / held.total()


def after_wave(plan: Plan, wave: int) -> Placement:
    """Return the placement once a wave has ended; steps need not be in the order of waves."""
    chosen = plan.steps.wave <= plan.steps.wave[plan.waves[wave][0]]
    names = ("kind", "partition", "replica", "source", "target", "size", "start", "finish", "wave")
    own = {name: getattr(plan.steps, name)[chosen] for name in names}
    nothing = Steps.none()
    steps = Steps(**own, first=nothing.first, before=nothing.before)
    return outcome(plan.cluster.placement, steps, plan.target)
