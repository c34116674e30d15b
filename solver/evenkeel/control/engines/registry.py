"""The engines that a pipeline may be given by the name of their method."""

from collections.abc import Mapping
from dataclasses import fields

from evenkeel.control.engines.engine import Engine
from evenkeel.methods.options import Options
from evenkeel.methods.registry import METHODS, imported
from evenkeel.model.errors import FaultList

ENGINES = {
    "balance": "evenkeel.control.engines.balance:BalanceEngine",
    "helix_waged": "evenkeel.control.engines.waged:WagedEngine",
}
"""Where the engine of a method is, ``"module:name"``."""


def engine_of(
    method: str | Engine, options: Options | Mapping[str, float | None] | None = None
) -> Engine:
    """Return the engine of a method, or the one that is given.

    Examples
    --------
    >>> engine_of("balance", {"level": 0.02})
    BalanceEngine(level=0.02, ...)
    """
    faults = FaultList()
    if callable(method) and not isinstance(method, type):
        if options is not None:
            faults.add("options", options, "belong to an engine that is given by name")
        faults.raise_if_any()
        return method
    if not isinstance(method, str) or method not in ENGINES:
        known = ", ".join(sorted(ENGINES))
        faults.add("method", method, f"unknown method of a pipeline; there are: {known}")
        faults.raise_if_any()
    assert isinstance(method, str)
    kind: type = imported(ENGINES[method])
    if options is None:
        return _made(kind)
    own = METHODS[method].options_class()
    if own is not None and type(options) is not own:
        faults.add("options", options, f"{method} takes evenkeel.options.{own.__name__}")
    elif own is None and not isinstance(options, Mapping):
        faults.add("options", options, f"must be a mapping of the fields of {kind.__name__}")
    elif isinstance(options, Mapping):
        known_fields = [one.name for one in fields(kind)]
        for given in options:
            if given not in known_fields:
                faults.add(
                    "options", given, f"unknown field of {kind.__name__}; known: {known_fields}"
                )
    faults.raise_if_any()
    return _made(kind, **options) if isinstance(options, Mapping) else _made(kind, options)


def _made(kind: type, *given: object, **named: object) -> Engine:
    """Make an engine of a kind."""
    engine: Engine = kind(*given, **named)
    return engine
