"""Read the builder of a ring: a pickle, of which nothing is loaded and nothing is called."""

import pickletools
from typing import Any

MARK = object()
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
SIZES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
NUMBERS = "array array"
"""What makes an array, whose numbers alone are taken."""


def contents(data: bytes) -> dict[str, Any]:
    """Return what a builder holds; raise ValueError for any other pickle."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for operation, value, _ in pickletools.genops(data):
            _carry_out(operation.name, value, stack, memo)
        (found,) = stack
        return {**found}
    except (IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"is no builder: {error}") from None


def _carry_out(name: str, value: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    """Carry out an operation on the stack."""
    if name in CONSTANTS or name.startswith("EMPTY_"):
        new: Any = {"EMPTY_DICT": {}, "EMPTY_LIST": []}.get(name)
        stack.append(CONSTANTS.get(name) if new is None else new)
    elif name == "MARK":
        stack.append(MARK)
    elif name.endswith("PUT"):
        memo[value] = stack[-1]
    elif name.endswith("GET"):
        stack.append(memo[value])
    elif name in SIZES:
        stack[-SIZES[name] :] = [tuple(stack[-SIZES[name] :])]
    elif name in ("TUPLE", "APPENDS", "SETITEMS"):
        at = len(stack) - 1 - stack[::-1].index(MARK)
        given = stack[at + 1 :]
        del stack[at:]
        if name == "TUPLE":
            stack.append(tuple(given))
        elif name == "APPENDS":
            stack[-1].extend(given)
        else:
            stack[-1].update(zip(given[::2], given[1::2], strict=True))
    elif name == "APPEND":
        stack[-2].append(stack.pop())
    elif name == "SETITEM":
        value, key = stack.pop(), stack.pop()
        stack[-1][key] = value
    elif name == "REDUCE":
        given = stack.pop()
        stack[-1] = given[1] if stack[-1] == NUMBERS else None
    elif name in ("PROTO", "STOP"):
        pass
    elif value is not None:
        stack.append(value)
    else:
        raise ValueError(f"is no builder: has the operation {name}")
