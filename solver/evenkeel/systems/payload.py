"""Check what was read beside a cluster before files of its system are written."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.runtime.memoize import memoize


def payload_of(cluster: Cluster, kind: Any, strange: str) -> Any:
    """Return what was read beside a cluster; raise, with ``strange``, where it is of no such kind.

    >>> payload_of(Cluster.from_arrays(capacity=[[1.0]], load=[]), dict, "was not read")
    Traceback (most recent call last):
    evenkeel.model.errors.InvalidInput: cluster.native: was not read (got 'NoneType')
    """
    native = cluster.native

    def checked() -> Any:
        try:
            msgspec.convert(native, kind)
        except msgspec.ValidationError as error:
            place = str(error).partition(" - at `$")[2].removesuffix("`")
            why = f"{strange} ({error})" if place else strange
            value = type(native).__name__
            raise InvalidInput([Fault(f"cluster.native{place}", value, why)]) from None
        return native

    return memoize(cluster.partitions, "payload", checked, native, kind)


def check_names(
    cluster: Cluster,
    *,
    partitions: Iterable[str] | None = None,
    groups: Iterable[str] | None = None,
    nodes: Iterable[str] | None = None,
) -> None:
    """Raise for names that are not among those that were read; those in a list keep its order."""
    faults = FaultList()
    for path, names, read in (
        ("partition_names", cluster.partitions.names, partitions),
        ("group_names", cluster.partitions.group_names, groups),
        ("node_names", cluster.nodes.names, nodes),
    ):
        if read is None:
            continue
        known = {*read}
        strange = [(i, name) for i, name in enumerate(names) if name not in known]
        for i, name in strange:
            faults.add(f"{path}[{i}]", name, "is not what was read: add what is new, read again")
        if isinstance(read, Sequence) and not strange and [*names] != [*read]:
            faults.add(path, len(names), f"must be the {len(read)} that were read, in their order")
    faults.raise_if_any()
