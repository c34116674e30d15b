"""Methods that return the answer specified by a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.registry import METHODS, Method

_answers: dict[str, Outcome] = {}


def told(request: Request) -> Outcome:
    """Answer what was set."""
    return _answers["told"]


@contextmanager
def answering(node: Any, leader: Any = None, **more: Any) -> Iterator[str]:
    """Have a method ``told`` in the table that returns these nodes (P, R), and leaders (P,)."""
    table = np.asarray(node, np.int32)
    led = np.zeros(len(table), np.int16) if leader is None else np.asarray(leader, np.int16)
    fields = {name: more.pop(name) for name in ("stop_reason", "message") if name in more}
    _answers["told"] = replace(
        Outcome(node=table.ravel(), leader=led, stop_reason="exhausted"), **fields
    )
    known = {"never_worse": True, "goals": ("level", "leaders"), **more}
    METHODS["told"] = Method("told", f"{__name__}:told", "for a test", **known)
    try:
        yield "told"
    finally:
        del METHODS["told"], _answers["told"]
