"""Which nodes anti-affinity closes for pods because of the pods of others that stand there."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.kubernetes.selected import Selected
from evenkeel.systems.kubernetes.terms import Term, terms_of
from evenkeel.systems.kubernetes.workloads import Workload

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]


class Apart:
    """Closes domains: neither may a term's pods come to those it selects, nor they to them.

    Parameters
    ----------
    workloads : sequence of Workload
        Those that may move first, then the others.
    movable : int
        How many may move.
    selected : Selected
        Finds them.
    stands : sequence of ndarray of int64
        The nodes where the pods of each stand.
    codes : callable
        The domain of each node by a label, (N,); -1 for none.
    """

    def __init__(
        self,
        workloads: Sequence[Workload],
        movable: int,
        selected: Selected,
        stands: Sequence[Numbers],
        codes: Callable[[str], Numbers],
    ) -> None:
        self._movable = movable
        self._stands = stands
        self.closed: dict[int, Mask] = {}
        """Nodes that are closed, by number of the workload, (N,) bool each."""

        self.loose: set[tuple[int, str]] = set()
        """Workload and label of each term that selects others which may move, too."""

        askers: dict[tuple[str, frozenset[int]], list[int]] = {}
        for w, one in enumerate(workloads):
            for term in terms_of(one):
                if term.weight is None:
                    chosen = chosen_by(one, term, selected)
                    askers.setdefault((term.key, chosen), []).append(w)
        for (key, chosen), asking in askers.items():
            asks = frozenset(asking)
            others = sum(w < movable for w in chosen)
            self.loose |= {(w, key) for w in asks if w < movable and others > (w in chosen)}
            self._part(codes(key), asks, chosen)

    def _part(self, codes: Numbers, asks: frozenset[int], chosen: frozenset[int]) -> None:
        """Close domains for workloads with the same term, and for those that it selects."""
        # of those that want each other away, the last may stay where they stand together:
        # those that do not move come last
        stays = np.full(int(codes.max(initial=-1)) + 2, -1)
        for w in sorted(asks & chosen):
            stays[codes[self._stands[w]]] = w
        taken = self._taken(codes, chosen)
        silent = self._taken(codes, chosen - asks)
        for w in asks:
            shut = taken.copy()
            if w in chosen:
                own = codes[self._stands[w]]
                own = own[own >= 0]
                shut[own] = silent[own] | (stays[own] != w)
            self._close(w, shut[codes])
        asked = self._taken(codes, asks)[codes]
        unselected = self._taken(codes, asks - chosen)[codes]
        for w in chosen:
            # who asks keeps away from all that are selected by that alone
            shut = (unselected if w in asks else asked).copy()
            # who does not ask is not sent away
            shut[self._stands[w]] = False
            self._close(w, shut)

    def _taken(self, codes: Numbers, which: Iterable[int]) -> Mask:
        """Return the domains where pods of some workloads stand; the last, of no domain, is not."""
        taken = np.zeros(int(codes.max(initial=-1)) + 2, np.bool_)
        for w in which:
            taken[codes[self._stands[w]]] = True
        taken[-1] = False
        return taken

    def _close(self, w: int, shut: Mask) -> None:
        """Close nodes for a workload, if it moves at all."""
        if w < self._movable and shut.any():
            mask = self.closed.setdefault(w, np.zeros(len(shut), np.bool_))
            mask |= shut


def chosen_by(one: Workload, term: Term, selected: Selected) -> frozenset[int]:
    """Return the workloads that a term selects, its own among them."""
    spaces = term.namespaces(one.namespace, selected.namespaces)
    found = [selected.by(space, term.selector) for space in sorted(spaces)]
    return found[0] if len(found) == 1 else frozenset().union(*found)
