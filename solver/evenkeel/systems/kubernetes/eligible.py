"""Which nodes the pods of a workload may come to, and which count to their spread."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.kubernetes.conditions import CORDONED, near, ready, tolerated, tolerates
from evenkeel.systems.kubernetes.resources import Node, PodSpec, SpreadConstraint, Taint

Mask = NDArray[np.bool_]
CORDON = Taint(CORDONED, "NoSchedule")


class Eligible:
    """Looks nodes up for what pods ask for, the same only once."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._labels = [node.metadata.labels or {} for node in nodes]
        self._masks: dict[bytes, Mask] = {}
        self._codes: dict[str, NDArray[np.int64]] = {}
        self.ready: Mask = np.array([ready(node) for node in nodes], np.bool_)
        self.cordoned: Mask = np.array([node.spec.unschedulable for node in nodes], np.bool_)

    def codes(self, key: str) -> NDArray[np.int64]:
        """Return the domain of each node by a label, (N,); -1 for none."""
        if key not in self._codes:
            numbers: dict[str, int] = {}
            told = [own.get(key) for own in self._labels]
            self._codes[key] = np.array(
                [-1 if one is None else numbers.setdefault(one, len(numbers)) for one in told],
                np.int64,
            )
        return self._codes[key]

    def open(self, spec: PodSpec) -> Mask:
        """Return the nodes that a pod may come to, (N,)."""
        return self._near(spec) & self._tolerated(spec) & self._labelled(spec)

    def counted(self, spec: PodSpec, each: SpreadConstraint) -> Mask:
        """Return the nodes whose domains a spread looks at, (N,)."""
        mask = self._labelled(spec)
        if each.nodeAffinityPolicy != "Ignore":
            mask = mask & self._near(spec)
        if each.nodeTaintsPolicy == "Honor":
            # a node that is not ready has a taint that says so
            mask = mask & self._tolerated(spec) & self.ready
        return mask

    def domains(self, spec: PodSpec, each: SpreadConstraint) -> int:
        """Return how many domains a spread looks at."""
        return len(np.unique(self.codes(each.topologyKey)[self.counted(spec, each)]))

    def closed(self, spec: PodSpec, each: SpreadConstraint) -> Mask:
        """Return the nodes of domains that a spread looks at and no pod may come to, (N,)."""
        codes = self.codes(each.topologyKey)
        return self.counted(spec, each) & ~np.isin(codes, codes[self.open(spec) & self.ready])

    def cordons(self, spec: PodSpec, each: SpreadConstraint) -> bool:
        """Whether a spread does not look at a domain because all that it has is cordoned."""
        if each.nodeTaintsPolicy != "Honor" or not self.cordoned.any():
            return False
        codes, mask = self.codes(each.topologyKey), self.counted(spec, each)
        rest = codes[mask & ~self.cordoned]
        return not tolerates(spec, CORDON) and not np.isin(codes[mask], rest).all()

    def _near(self, spec: PodSpec) -> Mask:
        """Return the nodes that a pod asks for, (N,)."""
        affinity = spec.affinity.nodeAffinity if spec.affinity else None
        needed = affinity.requiredDuringSchedulingIgnoredDuringExecution if affinity else None
        key = b"near" + msgspec.json.encode([spec.nodeSelector, needed])
        if key not in self._masks:
            self._masks[key] = near(spec, self._nodes)
        return self._masks[key]

    def _tolerated(self, spec: PodSpec) -> Mask:
        """Return the nodes whose taints a pod tolerates, (N,)."""
        key = b"taints" + msgspec.json.encode(spec.tolerations)
        if key not in self._masks:
            self._masks[key] = tolerated(spec, self._nodes)
        return self._masks[key]

    def _labelled(self, spec: PodSpec) -> Mask:
        """Return the nodes that are in a domain of each spread that must hold, (N,)."""
        mask = np.ones(len(self._nodes), np.bool_)
        for each in spec.topologySpreadConstraints or ():
            if each.whenUnsatisfiable == "DoNotSchedule":
                mask &= self.codes(each.topologyKey) >= 0
        return mask
