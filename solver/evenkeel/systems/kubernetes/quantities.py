"""Quantities, what a pod asks for in all, and what shares of a number are."""

import re
from collections.abc import Iterable
from functools import lru_cache

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import SHOWN, quoted
from evenkeel.systems.kubernetes.resources import Container, Pod, PodSpec, Quantity, Requests

QUANTITY = re.compile(
    r"([0-9]{1,24}(?:\.[0-9]{0,24})?|\.[0-9]{1,24})([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]{1,2})"
)
BINARY, DECIMAL = "KMGTPE", {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12,
                             "P": 15, "E": 18}  # fmt: skip
MOST = 2.0**63
PODS = "pods"
"""The resource that counts pods."""

HOST_PORT = "host port "
"""How the resources begin of which each node has one: its ports."""


def quantity(faults: FaultList, at: str, given: Quantity) -> float:
    """Return a quantity such as ``250m``, ``1Gi`` or ``1e3`` in its unit."""
    value = _value(given if isinstance(given, str) else f"{given}")
    if not 0.0 <= value < MOST:
        faults.add(at, quoted(given), "must be a quantity such as 250m, 1Gi or 2")
        return 0.0
    return value


@lru_cache(4096)
def _value(given: str) -> float:
    """Return a quantity; a greater one than any may be where it is none."""
    found = QUANTITY.fullmatch(given)
    value = MOST
    if found:
        number, unit = float(found[1]), found[2]
        if unit in DECIMAL:
            power = DECIMAL[unit]
            value = number * 10.0**power if power >= 0 else number / 10.0**-power
        elif unit.endswith("i"):
            value = number * 2.0 ** (10 * (BINARY.index(unit[0]) + 1))
        else:
            value = number * 10.0 ** int(unit[1:])
    return value


def amounts(faults: FaultList, at: str, given: Requests | None) -> dict[str, float]:
    """Return quantities by resource."""
    return {
        name: quantity(faults, f"{at}.{name[:SHOWN]}", value)
        for name, value in (given or {}).items()
        if value is not None and value != ""
    }


def _requests(one: Container | PodSpec) -> Requests | None:
    return one.resources.requests if one.resources else None


def requested(faults: FaultList, at: str, pod: Pod) -> dict[str, float]:
    """Return what a pod asks for: its containers, or the largest that runs before; and overhead.

    What the pod asks for as a whole, resource by resource, stands for what its containers do.
    """
    spec = pod.spec
    place = f"{at}: spec"
    beside: dict[str, float] = {}
    most: dict[str, float] = {}
    for i, one in enumerate(spec.initContainers or ()):
        own = amounts(faults, f"{place}.initContainers[{i}].resources.requests", _requests(one))
        if one.restartPolicy == "Always":
            beside = _sum((beside, own))
            most = _greatest(most, beside)
        else:
            most = _greatest(most, _sum((beside, own)))
    total = _sum(
        [
            beside,
            *(
                amounts(faults, f"{place}.containers[{i}].resources.requests", _requests(one))
                for i, one in enumerate(spec.containers)
            ),
        ]
    )
    whole = amounts(faults, f"{place}.resources.requests", _requests(spec))
    overhead = amounts(faults, f"{place}.overhead", spec.overhead)
    ports = {
        f"{HOST_PORT}{port.hostPort}/{port.protocol} {port.hostIP}".strip(): 1.0
        for one in spec.containers
        for port in one.ports or ()
        if port.hostPort > 0
    }
    return _sum((_greatest(most, total) | whole, overhead, {PODS: 1.0}, ports))


def _sum(parts: Iterable[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


def _greatest(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {
        name: max(one.get(name, 0.0), other.get(name, 0.0))
        for name in dict.fromkeys([*one, *other])
    }


def share_of(faults: FaultList, at: str, given: int | str, count: int) -> int:
    """Return a number, or a share of another, rounded up."""
    if isinstance(given, int):
        return given
    found = re.fullmatch(r"([0-9]{1,3})%|([0-9]{1,9})", given)
    if not found:
        faults.add(at, quoted(given), "must be a number, or a share such as 50%")
        return 0
    return -(-int(found[1]) * count // 100) if found[1] else int(found[2])
