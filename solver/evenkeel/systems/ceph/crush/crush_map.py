"""CRUSH maps: buckets, rules and tunables, validated once and laid out for the kernels.

Weights are whole numbers in 16.16 fixed point throughout, as in Ceph: 65536 is 1.0. A bucket
chooses among its items by the weights that it stores for them. Such a weight may differ from the
sum of the item's own weights, and is never recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.errors import FaultList
from evenkeel_kernels.ceph import crush as crush_ceph
from evenkeel_kernels.ceph.crush import Tunables, map_inputs
from evenkeel_kernels.ceph.straw2 import NONE, Tree, straws

IN = 0x10000  # the reweight of a device that takes its full share; 0 is out
NO_OSD = NONE  # what stands in a slot that has no device


@dataclass(frozen=True, slots=True)
class Bucket:
    """A node of the hierarchy that is not a device.

    Parameters
    ----------
    id : int
        Below 0.
    name : str
        A shadow bucket of a device class is called ``name~class``.
    type : str
        Name of its type.
    items : sequence of (int, int)
        Child ids, each with its weight in 16.16 fixed point.
    alg : str
        How it chooses; only ``straw2`` is supported, which all maps made since 2015 use.
    hash : str
        What it hashes with; only ``rjenkins1`` exists.

    Examples
    --------
    >>> host = Bucket(-2, "host0", "host", [(0, 0x10000), (1, 0x20000)])
    >>> sum(weight for _, weight in host.items) / 0x10000
    3.0
    """

    id: int
    name: str
    type: str
    items: Sequence[tuple[int, int]]
    alg: str = "straw2"
    hash: str = "rjenkins1"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a rule.

    Parameters
    ----------
    operation : str
        One of ``OPERATIONS``.
    number : int
        The id to take; the number to choose (0 or less: that many below the size); the value to
        set.
    type : str
        What a choosing step chooses, by the name of its type.

    Examples
    --------
    >>> Step("chooseleaf_firstn", 0, "host").type
    'host'
    """

    operation: str
    number: int = 0
    type: str = ""


@dataclass(frozen=True, slots=True)
class CrushRule:
    """A placement rule of a CRUSH map.

    Parameters
    ----------
    id : int
        Its number.
    name : str
        Its name.
    steps : sequence of Step
        What it does, in order.

    Examples
    --------
    >>> steps = [Step("take", -1), Step("chooseleaf_firstn", 0, "host"), Step("emit")]
    >>> rule = CrushRule(0, "by_host", steps)
    >>> [step.operation for step in rule.steps]
    ['take', 'chooseleaf_firstn', 'emit']
    """

    id: int
    name: str
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class ChooseArg:
    """What one bucket uses instead of its own weights and ids.

    Parameters
    ----------
    bucket : int
        The bucket's id.
    weights : sequence of sequences of int
        For each output position (the last row serves all later ones) the items' weights; empty for
        the bucket's own.
    ids : sequence of int
        What is hashed for each item; empty for the items' own ids.

    Examples
    --------
    >>> ChooseArg(-2, weights=[[0x10000, 0x8000]]).weights
    [[65536, 32768]]
    """

    bucket: int
    weights: Sequence[Sequence[int]] = ()
    ids: Sequence[int] = ()


class Mapped(NamedTuple):
    """Answers of a rule.

    Attributes
    ----------
    osd : ndarray of int32, shape (n, size)
        Devices by slot; ``NO_OSD`` beyond the length and in holes.
    length : ndarray of int32, shape (n,)
        Slots of each answer; below ``size`` where a ``firstn`` rule found too few devices.

    Examples
    --------
    >>> host = Bucket(-1, "host", "host", [(0, 65536), (1, 65536)])
    >>> steps = [Step("take", -1), Step("choose_firstn", 0, "osd"), Step("emit")]
    >>> crush = CrushMap(2, {"osd": 0, "host": 1}, [host], [CrushRule(0, "any", steps)])
    >>> answers = crush.map(0, [0, 1], size=2)
    >>> answers.osd.tolist(), answers.length.tolist()
    ([[0, 1], [0, 1]], [2, 2])
    """

    osd: NDArray[np.int32]
    length: NDArray[np.int32]


@dataclass(frozen=True)
class CrushMap:
    """A checked CRUSH map.

    Parameters
    ----------
    devices : int
        Device ids lie below it.
    types : mapping of str to int
        Types by name; devices are type 0.
    buckets : sequence of Bucket
        The hierarchies, shadow trees of device classes included: those have ids of their own, which
        are what is hashed, so that they cannot be derived from the tree they shadow.
    rules : sequence of CrushRule
        Placement rules.
    tunables : mapping of str to int
        By Ceph's names; those left out have their present defaults.
    choose_args : mapping of str to sequence of ChooseArg
        Sets of substitute weights and ids, by name.

    Raises
    ------
    InvalidInput
        With everything found wrong: ids used twice or unknown, a bucket in two places of one tree
        or within itself, unknown types, operations and tunables, a bucket algorithm other than
        straw2, weights that are not 32-bit numbers, a bucket whose items all weigh nothing, a rule
        that takes what does not exist.

    References
    ----------
    Ceph, ``crush/crush.h``, and ``CrushWrapper`` for what a monitor refuses.

    Examples
    --------
    >>> host = Bucket(-1, "host", "host", [(0, 65536), (1, 65536)])
    >>> steps = [Step("take", -1), Step("choose_firstn", 0, "osd"), Step("emit")]
    >>> crush = CrushMap(2, {"osd": 0, "host": 1}, [host], [CrushRule(0, "any", steps)])
    >>> crush.map(0, range(4), size=2).osd.tolist()
    [[0, 1], [0, 1], [1, 0], [0, 1]]
    """

    devices: int
    types: Mapping[str, int]
    buckets: Sequence[Bucket]
    rules: Sequence[CrushRule]
    tunables: Mapping[str, int] = field(default_factory=dict)
    choose_args: Mapping[str, Sequence[ChooseArg]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_map(self)

    def rule(self, id: int) -> CrushRule:
        """Find a rule by its number.

        Parameters
        ----------
        id : int
            The number.

        Returns
        -------
        CrushRule
            The rule.

        Raises
        ------
        InvalidInput
            If there is no such rule.
        """
        for rule in self.rules:
            if rule.id == id:
                return rule
        faults = FaultList()
        faults.add("rule", id, "no rule of this map has this number")
        faults.raise_if_any()
        raise AssertionError

    def steps(self, rule: int) -> NDArray[np.int32]:
        """Lay out a rule for the kernel.

        Parameters
        ----------
        rule : int
            Its number.

        Returns
        -------
        ndarray of int32, shape (S, 3)
            Operation, number and type of each step.
        """
        rows = [
            (OPERATIONS[step.operation], step.number, self.types.get(step.type, 0))
            for step in self.rule(rule).steps
        ]
        return np.array(rows, np.int32).reshape(-1, 3)

    def tree(self, choose_args: str | None = None) -> Tree:
        """Lay out the hierarchy for the kernel.

        Parameters
        ----------
        choose_args : str, optional
            The set of substitutes that is in force.

        Returns
        -------
        Tree
            The arrays.
        """
        if choose_args is None:
            return self._plain_tree
        return _tree(self, {arg.bucket: arg for arg in self.choose_args[choose_args]})

    @cached_property
    def _plain_tree(self) -> Tree:
        return _tree(self, {})

    @cached_property
    def by_id(self) -> dict[int, Bucket]:
        """The buckets by their ids."""
        return {bucket.id: bucket for bucket in self.buckets}

    def map(
        self,
        rule: int,
        x: ArrayLike,
        size: int,
        reweight: ArrayLike | None = None,
        choose_args: str | None = None,
    ) -> Mapped:
        """Run a rule for many inputs.

        Parameters
        ----------
        rule : int
            Number of the rule.
        x : array_like of int, shape (n,)
            Inputs, taken modulo 2**32.
        size : int
            Replicas wanted.
        reweight : array_like of int, shape (devices,), optional
            Reweights in 16.16 fixed point; without them every device is in.
        choose_args : str, optional
            The set of substitutes that is in force.

        Returns
        -------
        Mapped
            The answers.

        Raises
        ------
        InvalidInput
            If the rule or the set is unknown, ``size`` is below 1, or ``reweight`` is not a 32-bit
            number for each device.
        """
        faults = FaultList()
        if size < 1:
            faults.add("size", size, "must be at least 1")
        if choose_args is not None and choose_args not in self.choose_args:
            faults.add("choose_args", choose_args, f"must be one of {sorted(self.choose_args)}")
        weights = np.full(self.devices, IN) if reweight is None else np.asarray(reweight)
        if weights.shape != (self.devices,):
            faults.add("reweight", weights.shape, f"must have shape ({self.devices},)")
        elif weights.size and not 0 <= weights.min() <= weights.max() < 1 << 32:
            faults.add("reweight", reweight, "must lie in 0 to 2**32 - 1")
        faults.raise_if_any()
        inputs = np.atleast_1d(np.asarray(x)).astype(np.int64, copy=False).astype(np.uint32)
        return Mapped(
            *map_inputs(
                self.tree(choose_args),
                self.steps(rule),
                self._trials,
                weights.astype(np.uint32),
                inputs,
                size,
            )
        )

    @cached_property
    def _trials(self) -> Tunables:
        known = {
            name: int(self.tunables[name]) for name in Tunables._fields if name in self.tunables
        }
        return Tunables(**known)


def _tree(crush: CrushMap, substitutes: Mapping[int, ChooseArg]) -> Tree:
    """Lay out the buckets by id, with the substitutes put in."""
    count = max((-bucket.id for bucket in crush.buckets), default=0)
    rows = max((len(arg.weights) for arg in substitutes.values()), default=1) or 1
    kind = np.full(count, -1, np.int32)
    first = np.zeros(count + 1, np.int64)
    items: list[int] = []
    hashed: list[int] = []
    weights: list[NDArray[np.float64]] = []
    for b in range(count):
        bucket = crush.by_id.get(-1 - b)
        if bucket is not None:
            arg = substitutes.get(bucket.id, ChooseArg(bucket.id))
            ids = [item for item, _ in bucket.items]
            own = [[weight for _, weight in bucket.items]]
            stored = np.array(arg.weights or own, np.float64)
            kind[b] = crush.types[bucket.type]
            items += ids
            hashed += arg.ids or ids
            weights.append(stored[np.minimum(np.arange(rows), len(stored) - 1)])
        first[b + 1] = len(items)
    return Tree(
        first=first,
        item=np.array(items, np.int32),
        hashed=np.array(hashed, np.int64).astype(np.uint32),
        weight=np.ascontiguousarray(np.concatenate([*weights, np.empty((rows, 0))], axis=1)),
        kind=kind,
        straw=straws(),
    )


OPERATIONS = {
    "take": crush_ceph.TAKE,
    "emit": crush_ceph.EMIT,
    "choose_firstn": crush_ceph.CHOOSE_FIRSTN,
    "choose_indep": crush_ceph.CHOOSE_INDEP,
    "chooseleaf_firstn": crush_ceph.CHOOSELEAF_FIRSTN,
    "chooseleaf_indep": crush_ceph.CHOOSELEAF_INDEP,
    "set_choose_tries": crush_ceph.SET_CHOOSE_TRIES,
    "set_chooseleaf_tries": crush_ceph.SET_CHOOSELEAF_TRIES,
    "set_choose_local_tries": crush_ceph.SET_CHOOSE_LOCAL_TRIES,
    "set_chooseleaf_vary_r": crush_ceph.SET_CHOOSELEAF_VARY_R,
    "set_chooseleaf_stable": crush_ceph.SET_CHOOSELEAF_STABLE,
}
CHOOSING = {name: code for name, code in OPERATIONS.items() if name.startswith("choose")}

# tunables that bear on no rule and no bucket of ours; where a value stands, only that one
WITHOUT_EFFECT = {
    "choose_local_fallback_tries": 0,
    "straw_calc_version": None,
    "allowed_bucket_algs": None,
    "minimum_required_version": None,
    "profile": None,
    "optimal_tunables": None,
    "legacy_tunables": None,
    "has_v2_rules": None,
    "has_v3_rules": None,
    "has_v4_buckets": None,
    "has_v5_rules": None,
    "require_feature_tunables": None,
    "require_feature_tunables2": None,
    "require_feature_tunables3": None,
    "require_feature_tunables5": None,
    "msr_descents": None,
    "msr_collision_tries": None,
}


def check_map(crush: CrushMap) -> None:
    """Raise ``InvalidInput`` with everything that is wrong with a map."""
    faults = FaultList()
    _check_buckets(crush, faults)
    _check_tree(crush, faults)
    _check_rules(crush, faults)
    _check_tunables(crush, faults)
    _check_choose_args(crush, faults)
    faults.raise_if_any()


def _check_buckets(crush: CrushMap, faults: FaultList) -> None:
    seen: dict[int, str] = {}
    for bucket in crush.buckets:
        where = f"buckets[{bucket.name}]"
        if bucket.id >= 0:
            faults.add(f"{where}.id", bucket.id, "must be below 0")
        if bucket.id in seen:
            faults.add(f"{where}.id", bucket.id, f"is also the id of {seen[bucket.id]}")
        seen[bucket.id] = bucket.name
        if crush.types.get(bucket.type, 0) <= 0:
            faults.add(f"{where}.type", bucket.type, "is not a type of buckets in this map")
        if bucket.alg != "straw2":
            faults.add(f"{where}.alg", bucket.alg, "is not supported; only straw2 is")
        if bucket.hash != "rjenkins1":
            faults.add(f"{where}.hash", bucket.hash, "is not supported; only rjenkins1 is")
        for item, weight in bucket.items:
            if not 0 <= weight < 1 << 32:
                faults.add(f"{where}.items[{item}]", weight, "must be a 16.16 weight of 32 bits")
        if bucket.items and not any(weight for _, weight in bucket.items):
            faults.add(where, 0, "all of its items weigh nothing, so that the first would get all")


def _check_tree(crush: CrushMap, faults: FaultList) -> None:
    ids = {bucket.id for bucket in crush.buckets}
    for bucket in crush.buckets:
        for item, _ in bucket.items:
            if item >= crush.devices:
                faults.add(
                    f"buckets[{bucket.name}].items", item, f"device ids lie below {crush.devices}"
                )
            elif item < 0 and item not in ids:
                faults.add(f"buckets[{bucket.name}].items", item, "no bucket has this id")
    below = {b.id: [item for item, _ in b.items if item < 0] for b in crush.buckets}
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        names = {bucket.id: bucket.name for bucket in crush.buckets}
        path = " < ".join(names[each] for each in error.args[1])
        faults.add("buckets", path, "a bucket may not be within itself")


def _check_rules(crush: CrushMap, faults: FaultList) -> None:
    ids = {bucket.id for bucket in crush.buckets}
    seen: set[int] = set()
    for rule in crush.rules:
        if rule.id in seen:
            faults.add(f"rules[{rule.name}].id", rule.id, "two rules have this number")
        seen.add(rule.id)
        for k, step in enumerate(rule.steps):
            where = f"rules[{rule.name}].steps[{k}]"
            if step.operation not in OPERATIONS:
                known = ", ".join(OPERATIONS)
                faults.add(where, step.operation, f"is not an operation; those are {known}")
            elif step.operation == "take":
                if not (step.number in ids or 0 <= step.number < crush.devices):
                    faults.add(where, step.number, "takes a bucket or device that does not exist")
            elif step.type not in crush.types and step.operation in CHOOSING:
                faults.add(where, step.type, "chooses a type that the map does not have")


def _check_tunables(crush: CrushMap, faults: FaultList) -> None:
    for name, value in crush.tunables.items():
        if name in WITHOUT_EFFECT:
            needed = WITHOUT_EFFECT[name]
            if needed is not None and value != needed:
                faults.add(f"tunables[{name}]", value, f"only {needed} is supported")
        elif name not in Tunables._fields:
            faults.add(f"tunables[{name}]", value, "is not a tunable")
        elif not 0 <= value < 1 << 31:
            faults.add(f"tunables[{name}]", value, "must be a whole number from 0")


def is_known(tunable: str) -> bool:
    """Whether a tunable is one of those that the map or its tools have."""
    return tunable in WITHOUT_EFFECT or tunable in Tunables._fields


def _check_choose_args(crush: CrushMap, faults: FaultList) -> None:
    sizes = {bucket.id: len(bucket.items) for bucket in crush.buckets}
    for name, args in crush.choose_args.items():
        for arg in args:
            where = f"choose_args[{name}][{arg.bucket}]"
            if arg.bucket not in sizes:
                faults.add(where, arg.bucket, "no bucket has this id")
                continue
            size = sizes[arg.bucket]
            for row in arg.weights:
                if len(row) != size:
                    faults.add(f"{where}.weights", len(row), f"must be {size} weights")
                elif any(not 0 <= weight < 1 << 32 for weight in row):
                    faults.add(f"{where}.weights", row, "must be 16.16 weights of 32 bits")
            if arg.ids and len(arg.ids) != size:
                faults.add(f"{where}.ids", len(arg.ids), f"must be {size} ids")
