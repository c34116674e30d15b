"""Helix's hashes, and its placements by CRUSH, MultiRoundCRUSH and CRUSH-ed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conformance.protocol import MISSING, Case, Document, Replay, compared

NAME = "helix crush"

PATTERN = "<0..numPartitions-1>"
HASHES = {"hash1": 1, "hash2": 2, "hash3": 3}
WORD = 0xFFFFFFFF

Lists = list[list[int]]


def recognises(path: Path, document: Document) -> bool:
    """Vectors of Jenkins' hash, or resources with strategies to place them by."""
    return isinstance(document, dict) and (_is_hashes(document) or _is_placement(document))


def replay(path: Path, document: Any) -> Replay:
    """Hash every vector, or place every resource by every strategy."""
    cases = list(_hashes(document) if _is_hashes(document) else _placements(document))
    return Replay(cases, document)


def _is_hashes(document: dict[str, Any]) -> bool:
    return "hash1" in document and "names" in document


def _is_placement(document: dict[str, Any]) -> bool:
    given = document.get("input")
    return isinstance(given, dict) and {"strategies", "resources", "allNodes"} <= given.keys()


def _hashes(document: dict[str, Any]) -> Iterator[Case]:
    import numpy as np

    from evenkeel.systems.helix.crush.tree import HashedNames
    from evenkeel_kernels.core import jenkins_hash as hashing

    for name, count in HASHES.items():
        function = getattr(hashing, name)
        for i, row in enumerate(document[name]):
            computed = int(function(*(np.uint32(word & WORD) for word in row[:count])))
            yield compared(f"{name}[{i}]", _expected(row, count), computed)
            row[count:] = [computed]
    rows = document["names"]
    names = HashedNames.of([row[0] for row in rows])
    computed_rows = zip(names.hash.tolist(), names.id.tolist(), strict=True)
    for i, (row, (java, sha)) in enumerate(zip(rows, computed_rows, strict=True)):
        yield compared(f"names[{i}]", [_expected(row, 1), _expected(row, 2)], [java, sha])
        row[1:] = [java, sha]


def _expected(row: list[Any], place: int) -> object:
    return row[place] if len(row) > place and row[place] is not None else MISSING


def _placements(document: dict[str, Any]) -> Iterator[Case]:
    from evenkeel.systems.helix.crush.tree import HelixError

    given = document["input"]
    expected = document.get("output") or {}
    document["output"] = {}
    place = _placer(given)
    for strategy in given["strategies"]:
        answers = document["output"].setdefault(strategy, {})
        for resource in given["resources"]:
            name = resource["name"]
            wanted = expected.get(strategy, {}).get(name, MISSING)
            try:
                computed: Lists | str = place(strategy, resource)
            except HelixError as error:
                computed = f"EXCEPTION {type(error).__name__}: {error}"
            answers[name] = computed
            yield _judged(f"{strategy} {name}", wanted, computed)


def _judged(name: str, expected: object, computed: Lists | str) -> Case:
    """Of what the original throws, only that it throws is compared."""
    if isinstance(expected, str) and isinstance(computed, str):
        return Case(name, True)
    return compared(name, expected, computed)


def _placer(given: dict[str, Any]) -> Callable[[str, dict[str, Any]], Lists]:
    """Build the tree, and return what places a resource on it."""
    from evenkeel.systems.helix.crush import method as crushed
    from evenkeel.systems.helix.crush.tree import HashedNames, Tree, crush, multiround
    from tests.support.helix_topology import by_path, flat

    number = {node["name"]: i for i, node in enumerate(given["nodes"])}
    order = [number[name] for name in given["allNodes"]]
    nodes = [given["nodes"][i] for i in order]
    live = set(given["liveNodes"])
    instances = [node["name"] for node in nodes]
    if given["topologyAware"]:
        enabled = [name in live for name in instances]
        paths = [node.get("domain") for node in nodes]
        zone = given.get("faultZoneType")
        places = by_path(instances, paths, enabled, given["topology"], zone)
    else:
        places = flat(instances)
    tree = Tree.of(
        places.names,
        places.zones,
        [nodes[i].get("weight", -1) for i in places.kept],
        [instances[i] in live for i in places.kept],
    )
    to_input = [order[i] for i in places.kept]

    def place(strategy: str, resource: dict[str, Any]) -> Lists:
        partitions = HashedNames.of(_partitions(resource))
        states = [count for _, count in resource["states"]]
        if strategy == "crushed":
            placed = crushed.crushed(partitions, tree, states, resource["name"]).placed
        else:
            by_name = {"crush": crush, "multiround": multiround}
            placed = by_name[strategy](partitions, tree, states)
        return [[to_input[node] for node in row if node >= 0] for row in placed.tolist()]

    return place


def _partitions(resource: dict[str, Any]) -> list[str]:
    if "partitions" in resource:
        return list(resource["partitions"])
    pattern = resource["partitionNamePattern"]
    return [pattern.replace(PATTERN, str(i)) for i in range(resource["numPartitions"])]
