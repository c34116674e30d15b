"""Convert a user's selection of nodes and partitions to indices.

One rule everywhere: a string is a name, or else an expression; a number is an index; and booleans,
one for each, are a mask.
"""

import re
from collections.abc import Container, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Partitions
from evenkeel.model.reading.arrays import items_of
from evenkeel.model.reading.keywords import meant_name
from evenkeel.model.reading.quantities import is_whole
from evenkeel.model.rules import mask_of, parse_expression
from evenkeel.model.topology import Topology

# what may be chosen by: a name, an expression, a number, a mask, or a list of them
Which = str | int | ArrayLike | Sequence[str | int]

OF_GROUP = "group="  # what stands before the name of a group to choose all its partitions
OF_GROUPS = (  # the same, and as systems call a group
    OF_GROUP, "topic=", "index=", "pool=", "table=", "resource=", "vhost=", "namespace=",
)  # fmt: skip

# what a pattern has that stands for several names; it has to match the whole of a name
GLOB = ("*", "?")


def find_nodes(
    faults: FaultList, path: str, nodes: Nodes, topology: Topology, given: Any
) -> NDArray[np.int32]:
    """Turn nodes by name, number, mask or expression into numbers, ascending, each once."""
    chosen = np.zeros(len(nodes), bool)
    for at, one in _entries(faults, path, given, len(nodes), "node"):
        if isinstance(one, str) and one in nodes.names:
            chosen[nodes.names.index(one)] = True
        elif isinstance(one, str) and ("=" in one or one[:1] in ("+", "-")):
            tests = parse_expression(faults, at, one)
            chosen |= bool(tests) & mask_of(tests, nodes, topology, faults, at)
        elif like := matching(nodes.names, one):
            chosen[like] = True
        elif not is_whole(one):
            hint = _apart(one, (nodes.names,)) or meant_expression(nodes, topology, one)
            hint = hint or meant_name(faults, one, nodes.names)
            faults.add(at, one, f"is neither a node nor an expression such as 'rack=r7'{hint}")
        elif not 0 <= one < len(nodes):
            faults.add(at, one, f"must be a node, 0 to {len(nodes) - 1}")
        else:
            chosen[one] = True
    return np.flatnonzero(chosen).astype(np.int32)


def _apart(words: object, known: Sequence[Container[object]]) -> str:
    """Say that each of several names in one word is given by itself."""
    several = re.split(r"[,;\s]+", words) if isinstance(words, str) else []
    found = len(several) > 1 and any(one in names for one in several for names in known)
    return "; several are given one by one" if found else ""


def meant_expression(nodes: Nodes, topology: Topology, word: object) -> str:
    """Return a question after the expression that a domain, an attribute or a tag is meant by."""
    labels = dict(zip(topology.tiers, topology.label_names, strict=True))
    labels |= {key: meaning for key, (_, meaning) in nodes.attributes.items()}
    found = [f"{key}={word}" for key, meaning in labels.items() if word in meaning]
    found += [f"+{tag}" for tag in nodes.tags if tag == word]
    return f"; did you mean {found[0]!r}?" if found else ""


def find_partitions(
    faults: FaultList, path: str, partitions: Partitions, given: Any
) -> NDArray[np.int64]:
    """Turn partitions by name, number, mask or group into numbers, in the order given."""
    found: list[int] = []
    for at, one in _entries(faults, path, given, len(partitions), "partition"):
        if isinstance(one, str) and one in partitions.names:
            found.append(partitions.names.index(one))
        elif isinstance(one, str) and one.startswith(OF_GROUPS):
            found += read_groups(faults, at, partitions, one, one)
        elif like := matching(partitions.names, one):
            found += like
        elif not is_whole(one):
            if isinstance(one, str) and one in partitions.group_names:
                message = f"is a group, whose partitions are meant by '{OF_GROUP}{one}'"
            else:
                message = "is neither a partition nor a group such as 'group=orders'"
                groups = [f"{OF_GROUP}{name}" for name in partitions.group_names]
                message += (
                    _apart(one, (partitions.names, groups))
                    or meant_name(faults, one, partitions.names)
                    or meant_name(faults, one, groups)
                )
            faults.add(at, one, message)
        elif not 0 <= one < len(partitions):
            faults.add(at, one, f"must be a partition, 0 to {len(partitions) - 1}")
        else:
            found.append(int(one))
    return np.array(found, np.int64)


def read_groups(
    faults: FaultList, path: str, partitions: Partitions, group: Any, stated: Any
) -> list[int]:
    """Return the partitions of a group, by name, ``topic=NAME``, or number."""
    # validation errors quote ``stated``
    names = partitions.group_names
    if isinstance(group, str) and group not in names and group.startswith(OF_GROUPS):
        group = group.partition("=")[2]
    if group not in names and (like := matching(names, group)):
        return np.flatnonzero(np.isin(partitions.group, like)).tolist()
    number = names.index(group) if isinstance(group, str) and group in names else group
    if not is_whole(number) or not 0 <= number < len(names):
        faults.add(path, stated, f"names no group{meant_name(faults, group, names)}")
        return []
    members: list[int] = np.flatnonzero(partitions.group == number).tolist()
    return members


def matching(names: Names, pattern: Any) -> list[int]:
    """Return the numbers of names that a pattern such as ``logs-*`` matches as a whole.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[1.0]] * 3, load=[], node_names=["a1", "a12", "b1"])
    >>> matching(c.nodes.names, "a?"), matching(c.nodes.names, "a1")
    ([0], [])
    """
    if not (isinstance(pattern, str) and any(sign in pattern for sign in GLOB)):
        return []
    return [i for i, name in enumerate(names) if fnmatchcase(str(name), pattern)]


def _entries(
    faults: FaultList, path: str, given: Any, count: int, what: str
) -> Iterator[tuple[str, Any]]:
    """Yield chosen items one by one, with their paths; a mask yields the numbers it stands for."""
    if _is_mask(given):
        mask = np.asarray(given)
        if mask.shape == (count,):
            yield from ((path, int(one)) for one in np.flatnonzero(mask))
        else:
            faults.add(path, mask.shape, f"a mask needs an entry for each {what}, ({count},)")
        return
    for i, one in enumerate(items_of(faults, path, given)):
        yield f"{path}[{i}]", one


def _is_mask(given: Any) -> bool:
    if isinstance(given, np.ndarray):
        return given.dtype == np.bool_ and given.ndim == 1
    listed = isinstance(given, list | tuple) and len(given) > 0
    return listed and all(isinstance(one, bool | np.bool_) for one in given)


def partition_index(names: Names, which: str | int) -> int:
    """Find the one partition that a caller names or numbers; ``InvalidInput`` if there is none."""
    if isinstance(which, str):
        if which not in names:
            message = f"unknown partition{meant_name(FaultList(), which, names)}"
            raise InvalidInput([Fault("partition", which, message)])
        which = names.index(which)
    if not is_whole(which):
        raise InvalidInput([Fault("partition", which, "must be a name or a number")])
    if not 0 <= which < len(names):
        raise InvalidInput([Fault("partition", which, f"must be 0 to {len(names) - 1}")])
    return int(which)
