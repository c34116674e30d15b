"""Finds the workloads whose pods a selector selects."""

from collections.abc import Sequence

import msgspec

from evenkeel.systems.kubernetes.conditions import selects
from evenkeel.systems.kubernetes.resources import Selector
from evenkeel.systems.kubernetes.workloads import Workload


class Selected:
    """Looks selectors up among workloads, each selector once."""

    def __init__(self, workloads: Sequence[Workload]) -> None:
        self._workloads = workloads
        self._by_label: dict[tuple[str, str, str], set[int]] = {}
        self._inside: dict[str, set[int]] = {}
        self._found: dict[bytes, frozenset[int]] = {}
        for w, one in enumerate(workloads):
            self._inside.setdefault(one.namespace, set()).add(w)
            for key, value in one.labels.items():
                self._by_label.setdefault((one.namespace, key, value), set()).add(w)

    @property
    def namespaces(self) -> list[str]:
        """The namespaces that have pods."""
        return [*self._inside]

    def by(self, namespace: str, selector: Selector | None) -> frozenset[int]:
        """Return the workloads of a namespace that a selector selects; none selects nothing."""
        if selector is None:
            return frozenset()
        key = msgspec.json.encode([namespace, selector])
        if key not in self._found:
            near = self._near(namespace, selector)
            self._found[key] = frozenset(
                w for w in near if selects(selector, self._workloads[w].labels)
            )
        return self._found[key]

    def _near(self, namespace: str, selector: Selector) -> set[int]:
        """Return no fewer than a selector selects: those with the rarest label that it wants."""
        wanted = [[pair] for pair in (selector.matchLabels or {}).items()]
        wanted += [
            [(one.key, value) for value in one.values or ()]
            for one in selector.matchExpressions or ()
            if one.operator == "In"
        ]
        near = self._inside.get(namespace, set())
        for pairs in wanted:
            own = [self._by_label.get((namespace, *pair), set()) for pair in pairs]
            if sum(map(len, own)) < len(near):
                near = set().union(*own)
        return near
