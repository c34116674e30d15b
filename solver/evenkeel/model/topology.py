"""Topology: named tiers, widest first, and the domain of every node on each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import entries_of, items_of, read_only
from evenkeel.model.reading.quantities import check_text, is_missing, is_whole

NODE_TIER = "node"  # name of the tier that is the node itself


@dataclass(frozen=True, eq=False)
class Topology:
    """Layers of the cluster. L tiers, N nodes; every array is read-only.

    Tiers have an explicit order, widest first. A tier normally nests in the one before it, so
    rack ``r1`` of zone ``a`` and rack ``r1`` of zone ``b`` are different domains; a *crossing*
    tier (such as a power feed) does not, and its domain is its bare label.

    Parameters
    ----------
    tiers : tuple of str
        L names.
    label : ndarray of int32, shape (L, N)
        Bare value: a code into ``label_names[l]``; -1 for a missing tier.
    domain : ndarray of int32, shape (L, N)
        Path-qualified value, counted from 0 on each tier; -1 for a missing tier.
    label_names : tuple of tuple of str
        What the codes of each tier mean.
    crossing : frozenset of str
        Tiers that do not nest.
    tier_capacity : mapping of str to ndarray of float64, shape (domains, D)
        Capacity that the nodes of a domain share (several disks of one host).
    tier_distance : ndarray of float64, shape (L + 1,), or (N, N)
        Distance between two nodes by the widest tier on which they differ (last entry: they differ
        on none), or for each pair of nodes.

    Examples
    --------
    >>> found = FaultList()
    >>> t = Topology.read(found, {"zone": ["a", "a", "b"], "rack": ["r1", "r2", "r1"]}, 3)
    >>> t.domain.tolist()
    [[0, 0, 1], [0, 1, 2]]
    >>> t.domain_name(1, 2)
    'b/r1'
    """

    tiers: tuple[str, ...]
    label: NDArray[np.int32]
    domain: NDArray[np.int32]
    label_names: tuple[tuple[str, ...], ...]
    crossing: frozenset[str]
    tier_capacity: Mapping[str, NDArray[np.float64]]
    tier_distance: NDArray[np.float64]

    @classmethod
    def read(
        cls,
        faults: FaultList,
        domains: Mapping[str, ArrayLike] | None,
        nodes: int,
        crossing: Sequence[str] = (),
    ) -> "Topology":
        """Build the topology from one label per node and tier.

        Parameters
        ----------
        faults : FaultList
            Where faults are noted.
        domains : mapping of str to array_like, shape (N,)
            Tier name to labels, widest tier first: strings or integers; None, "" or a negative
            integer where a node has no such tier.
        nodes : int
            N.
        crossing : sequence of str, optional
            Tiers that do not nest in the ones before them.

        Returns
        -------
        Topology
            Without tier capacities and with every distance 0 inside a domain, 1 across.
        """
        given_labels = {} if domains is None else entries_of(faults, "domains", domains)
        tiers = tuple(given_labels)
        crosses = items_of(faults, "crossing", crossing)
        for tier in crosses:
            check_text(faults, "crossing", tier)
        crosses = [tier for tier in crosses if isinstance(tier, str)]
        label = np.full((len(tiers), nodes), -1, np.int32)
        domain = np.full((len(tiers), nodes), -1, np.int32)
        label_names = []
        parent = np.zeros(nodes, np.int64)
        for i, (tier, given) in enumerate(given_labels.items()):
            if tier == NODE_TIER:
                faults.add(
                    f"domains[{tier!r}]",
                    tier,
                    "needs another name: this is what the nodes themselves are called",
                )
            elif not tier or "=" in tier:  # rules write tier=domain
                faults.add(f"domains[{tier!r}]", tier, "needs a name without '='")
            codes, meaning = read_labels(faults, f"domains[{tier!r}]", given, nodes)
            label[i] = codes
            label_names.append(meaning)
            if tier in crosses:
                domain[i] = codes
                continue
            has = codes >= 0
            path = parent * (len(meaning) + 1) + codes
            distinct, inverse = np.unique(path[has], return_inverse=True)
            domain[i, has] = inverse
            parent = np.where(has, domain[i].astype(np.int64), parent + len(distinct))
        for tier in crosses:
            if tier not in tiers and not faults.about("domains"):
                faults.add("crossing", tier, f"unknown tier; tiers are {list(tiers)}")
        distance = np.ones(len(tiers) + 1)
        distance[-1] = 0.0
        return cls(
            tiers, read_only(label), read_only(domain), tuple(label_names),
            frozenset(tier for tier in tiers if tier in crosses), {}, read_only(distance),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.tiers)

    @cached_property
    def domain_count(self) -> NDArray[np.int64]:
        """Domains per tier, (L + 1,) int64; the last entry is the number of nodes."""
        counts = [int(row.max(initial=-1)) + 1 for row in self.domain]
        return np.array([*counts, self.domain.shape[1]], np.int64)

    @cached_property
    def domain_with_nodes(self) -> NDArray[np.int32]:
        """``domain`` with the node tier as its last row, (L + 1, N) int32."""
        node = np.arange(self.domain.shape[1], dtype=np.int32)
        return read_only(np.vstack([self.domain, node]))

    def tier_index(self, tier: str) -> int:
        """Return the row of a tier; the node itself is row L.

        Parameters
        ----------
        tier : str
            Name of a tier, or "node".

        Returns
        -------
        int
            Its row in ``domain_with_nodes``.

        Raises
        ------
        ValueError
            If there is no such tier.
        """
        if tier == NODE_TIER and tier not in self.tiers:
            return len(self.tiers)
        return self.tiers.index(tier)

    def domain_name(self, tier: int, domain: int) -> str:
        """Return the path of a domain, as ``region/zone/rack``.

        Parameters
        ----------
        tier : int
            Row of the tier.
        domain : int
            Domain on it.

        Returns
        -------
        str
            Labels from the widest nesting tier down, joined by slashes.
        """
        n = int(np.argmax(self.domain[tier] == domain))
        rows = [tier]
        if self.tiers[tier] not in self.crossing:
            rows = [i for i in range(tier + 1) if self.tiers[i] not in self.crossing]
        path = [self.label_names[i][self.label[i, n]] for i in rows if self.label[i, n] >= 0]
        return "/".join(path)


def with_labels(topology: Topology, node: int, name: str) -> str:
    """Return the name of a node with its labels: ``n7 (zone a, rack r1)``."""
    labels = zip(topology.tiers, topology.label[:, node], topology.label_names, strict=True)
    own = [f"{tier} {names[code]}" for tier, code, names in labels if code >= 0]
    own = [one for one in own if not one.endswith(f" {name}")]  # a host of its own
    return f"{name} ({', '.join(own)})" if own else name


def read_labels(
    faults: FaultList, path: str, given: ArrayLike, nodes: int
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Turn one label per node into codes and their meaning, in sorted order."""
    nothing = np.full(nodes, -1, np.int32), ()
    try:
        values = _labels(given)
    except (ValueError, TypeError, OverflowError) as error:
        faults.add(path, type(given).__name__, f"is not an array: {error}")
        return nothing
    if values.shape != (nodes,):
        faults.add(path, values.shape, f"needs shape ({nodes},)")
        return nothing
    if nodes == 0:
        return nothing
    if values.dtype.kind in "iu":
        distinct, inverse = np.unique(values, return_inverse=True)
        missing = int(np.count_nonzero(distinct < 0))
        codes = np.maximum(inverse - missing, -1).astype(np.int32)
        return codes, tuple(str(v) for v in distinct[missing:].tolist())
    listed = values.tolist()
    if values.dtype.kind not in "UO" or any(
        v is not None and not isinstance(v, str) for v in listed
    ):
        faults.add(path, str(values.dtype), "needs strings or integers")
        return nothing
    texts = [v or "" for v in listed]
    meaning = tuple(sorted(set(texts) - {""}))
    code_of = {text: i for i, text in enumerate(meaning)} | {"": -1}
    return np.array([code_of[text] for text in texts], np.int32), meaning


def _labels(given: ArrayLike) -> NDArray[Any]:
    """Return labels as an array in which what pandas writes for what is missing is None or -1."""
    if isinstance(given, np.ndarray):
        values = given
    else:
        values = np.asarray(given)
        if values.dtype.kind in "UO":
            # next to strings numpy would write a NaN as the string "nan"
            values = np.array(given, object)
    if values.dtype.kind == "O" and values.ndim == 1:
        values = values.copy()
        for i, one in enumerate(values.tolist()):
            if is_missing(one):
                values[i] = None
        kept = [one for one in values.tolist() if one is not None]
        if kept and all(is_whole(one) for one in kept):
            values = np.array([-1 if one is None else one for one in values.tolist()])
    elif values.dtype.kind == "f":
        missing = np.isnan(values)
        whole = np.where(missing, -1.0, values)
        if (np.abs(whole) < 2.0**53).all() and (whole == np.floor(whole)).all():
            values = whole.astype(np.int64)
    return values
