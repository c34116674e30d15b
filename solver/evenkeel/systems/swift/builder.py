"""Read the builder of a ring: a pickle, of which nothing is loaded and nothing is called."""

import pickletools
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from evenkeel.systems.json_text import Int64

CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
SIZES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
NUMBERS = "array array"  # what makes an array, whose numbers alone are taken
Place = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Builder(msgspec.Struct):
    """What a builder holds; removed devices are None."""

    part_power: Annotated[int, Meta(ge=1, le=32)]
    devs: list[dict[str, Any] | None]
    version: Int64
    rows: Annotated[list[list[Place]], Meta(max_length=999)] | None = msgspec.field(
        name="_replica2part2dev"
    )
    none_dev_id: Place = 65535
    overload: Annotated[float, Meta(ge=0.0, le=1e12)] | None = None
    replicas: Annotated[float, Meta(ge=1.0, le=100.0)] | None = None

    def lengths(self) -> list[int]:
        """Return how many partitions each row has after the next rebalance."""
        if self.replicas is None:
            return [len(row) for row in self.rows or ()]
        parts = 1 << self.part_power
        rest = int(self.replicas % 1.0 * parts)
        return [parts] * int(self.replicas) + [rest] * (rest > 0)

    def devices(self) -> list[dict[str, Any] | None]:
        """Return the devices as a ring has them: flat, and without numbers of parts."""
        return [
            one and {key: one[key] for key in one if _is_kept(key, one[key])} for one in self.devs
        ]


def _is_kept(key: str, value: object) -> bool:
    is_flat = value is None or isinstance(value, str | int | float)
    return is_flat and key not in ("parts", "parts_wanted")


def contents(data: bytes) -> Builder:
    """Return what a builder holds; raise ValueError for any other pickle."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    try:
        for operation, value, _ in pickletools.genops(data):
            _carry_out(operation.name, value, stack, marks, memo)
        (found,) = stack
        return msgspec.convert(found, Builder)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    except (IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"is no builder: {error}") from None


def _carry_out(
    name: str, value: Any, stack: list[Any], marks: list[int], memo: dict[int, Any]
) -> None:
    """Carry out an operation on the stack."""
    if name in CONSTANTS or name.startswith("EMPTY_"):
        new: Any = {"EMPTY_DICT": {}, "EMPTY_LIST": []}.get(name)
        stack.append(CONSTANTS.get(name) if new is None else new)
    elif name == "MARK":
        marks.append(len(stack))
    elif name.endswith("PUT"):
        memo[value] = stack[-1]
    elif name.endswith("GET"):
        stack.append(memo[value])
    elif name in SIZES:
        stack[-SIZES[name] :] = [tuple(stack[-SIZES[name] :])]
    elif name in ("TUPLE", "APPENDS", "SETITEMS"):
        at = marks.pop()
        given = stack[at:]
        del stack[at:]
        if name == "TUPLE":
            stack.append(tuple(given))
        elif name == "APPENDS":
            stack[-1].extend(given)
        else:
            pairs = zip(given[::2], given[1::2], strict=True)
            # tuples, which nothing read here has as keys, take exponential time where they nest
            stack[-1].update((key, one) for key, one in pairs if isinstance(key, str | int))
    elif name == "APPEND":
        stack[-2].append(stack.pop())
    elif name == "SETITEM":
        value, key = stack.pop(), stack.pop()
        if isinstance(key, str | int):
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
