"""The engines that a pipeline may be given by name."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from evenkeel.control.engines.engine import Engine
from evenkeel.model.errors import FaultList
from evenkeel.strategies.options import Waged


class _Listed(NamedTuple):
    """Where an engine is, and what its options are."""

    module: str
    name: str
    options: type
    said: str


ENGINES = {
    "helix_waged": _Listed(
        "evenkeel.control.engines.waged", "WagedEngine", Waged, "evenkeel.options.Waged"
    ),
    "balance": _Listed(
        "evenkeel.control.engines.balance", "BalanceEngine", Mapping,
        "a mapping of the fields of BalanceEngine",
    ),
}  # fmt: skip


def engine_of(method: str | Engine, options: Any) -> Engine:
    """Return an engine.

    Examples
    --------
    >>> engine_of("balance", {"level": 0.02})
    BalanceEngine(level=0.02, ...)
    """
    faults = FaultList()
    listed = ENGINES.get(method) if isinstance(method, str) else None
    if listed is None:
        if callable(method) and not isinstance(method, type):
            if options is not None:
                faults.add("options", options, "belong to an engine that is given by name")
            faults.raise_if_any()
            return method
        known = ", ".join(sorted(ENGINES))
        faults.add("method", method, f"is no method of a pipeline; there are: {known}")
        faults.raise_if_any()
    assert listed is not None
    if options is not None and not isinstance(options, listed.options):
        faults.add("options", options, f"must be {listed.said}")
        faults.raise_if_any()
    kind = getattr(import_module(listed.module), listed.name)
    try:
        if isinstance(options, Mapping):
            engine: Engine = kind(**options)
        else:
            engine = kind() if options is None else kind(options)
    except TypeError as error:
        faults.add("options", options, f"are none of {listed.name}: {error}")
        faults.raise_if_any()
        raise
    return engine
