"""Read lists and mappings; anything else is one validation error."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from evenkeel.model.errors import FaultList


def items_of(faults: FaultList, path: str, given: Any) -> list[Any]:
    """Return the items of a list."""
    lone = isinstance(given, np.ndarray) and given.ndim == 0
    if lone or not isinstance(given, Collection) or isinstance(given, str | bytes | Mapping):
        faults.add(path, given, "must be a list")
        return []
    return list(given)


def entries_of(faults: FaultList, path: str, given: Any) -> dict[str, Any]:
    """Return the entries of a mapping by name.

    >>> entries_of(FaultList(), "spread", {"zone": 1})
    {'zone': 1}
    """
    if not isinstance(given, Mapping):
        faults.add(path, given, "must be a mapping")
        return {}
    for key in given:
        if not isinstance(key, str):
            faults.add(f"{path}[{key!r}]", key, "must be a string")
    return {key: value for key, value in given.items() if isinstance(key, str)}
