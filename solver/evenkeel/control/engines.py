"""The engines that a pipeline may be given by name."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from evenkeel.control.engine import Engine
from evenkeel.model.errors import FaultList

ENGINES = {
    "helix_waged": "evenkeel.control.engine_waged:WagedEngine",
    "balance": "evenkeel.control.engine_balance:BalanceEngine",
}


def engine_of(method: str | Engine, options: Any) -> Engine:
    """Return an engine.

    Parameters
    ----------
    method : str or Engine
        The name of one, or one that the caller made.
    options : object
        What the engine of that name takes: ``options.Waged``, or a mapping of the fields of
        ``BalanceEngine``. None for its defaults.

    Returns
    -------
    Engine
        Ready to be called.

    Raises
    ------
    InvalidInput
        If there is none of that name, if it does not take the options, or if options come with an
        engine that is made already.

    Examples
    --------
    >>> engine_of("balance", {"level": 0.02})
    BalanceEngine(level=0.02, ...)
    """
    faults = FaultList()
    if callable(method):
        if options is not None:
            faults.add("options", options, "belong to an engine that is given by name")
        faults.raise_if_any()
        return method
    if method not in ENGINES:
        known = ", ".join(sorted(ENGINES))
        faults.add("method", method, f"is no method of a pipeline; there are: {known}")
    faults.raise_if_any()
    module, _, name = ENGINES[method].partition(":")
    kind = getattr(import_module(module), name)
    try:
        if isinstance(options, Mapping):
            engine: Engine = kind(**options)
        else:
            engine = kind() if options is None else kind(options)
    except TypeError as error:
        faults.add("options", options, f"are none of {name}: {error}")
        faults.raise_if_any()
        raise
    return engine
