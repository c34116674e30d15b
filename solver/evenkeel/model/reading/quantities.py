"""Read counts, amounts of data and tolerances, as numbers or as text."""

import re
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from evenkeel.model.errors import Fault, FaultList, InvalidInput

# bytes in each unit: decimal prefixes count in thousands, binary ones (``Ki``) in 1,024s, and a
# prefix may stand alone, as amounts are printed
BYTE_UNITS = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15, "EB": 10**18,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
}  # fmt: skip

_UNIT_OF = {unit.lower(): unit for unit in BYTE_UNITS}

_NUMBER = r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*"
_BYTES = re.compile(r"\s*([0-9.,'\s]*[0-9.])\s*([A-Za-z]+)\s*")
_MILLI_OR_MEGA = re.compile(_NUMBER + r"m\s*")
_PERCENT = re.compile(_NUMBER + r"%\s*")


_PLAIN = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")
_GROUPED = re.compile(r"([1-9][0-9]{0,2}(?:([.,'\s])[0-9]{3})(?:\2[0-9]{3})*)(?:([.,])([0-9]*))?")
_COMMA = re.compile(r"([0-9]+),([0-9]+)")


def decimal_marks(text: str) -> str:
    """Return the marks, "." or ",", that may be the decimal one of a number; "" for no number.

    >>> [decimal_marks(one) for one in ("1.5", "10,5", "1.000", "1.000,5", "1,000,000", "x")]
    ['.', ',', '.,', ',', '.', '']
    """
    # a mark before three digits may stand between thousands; both marks if the number has none
    grouped = _GROUPED.fullmatch(text)
    if grouped is None:
        if _COMMA.fullmatch(text):
            return ","
        return "" if not _PLAIN.fullmatch(text) else "." if "." in text else ".,"
    between, decimal = grouped[2], grouped[3]
    if decimal:
        return "" if decimal == between else decimal
    if between not in ".,":
        return ".,"
    return ".," if grouped[1].count(between) == 1 else ",."[between == ","]


def read_number(text: str, decimal: str = "") -> float | None:
    """Return a number as people write it, such as ``10,5`` or ``1.234,5``; None for other texts.

    >>> [read_number(one) for one in ("10,5", "1.234,5", "1,234", "1.234", "1'000")]
    [10.5, 1234.5, None, 1.234, 1000.0]
    >>> read_number("1.000", ","), read_number("1,234", ",")
    (1000.0, 1.234)
    """
    # ``decimal`` is the mark where it is known; else a number with one comma before three digits is
    # none, and one point before them is a decimal point
    marks = decimal_marks(text)
    if not marks or (decimal and decimal not in marks):
        return None
    if decimal or len(marks) == 1:
        mark = decimal or marks
    elif _COMMA.fullmatch(text):
        return None
    else:
        mark = "."
    if _PLAIN.fullmatch(text) and mark == ".":
        return float(text)
    whole, _, part = text.partition(mark)
    return float(re.sub(r"[.,'\s]", "", whole) + "." + part)


def two_readings(text: str) -> str:
    """Return the message on a number whose only mark may be decimal, or between thousands.

    Examples
    --------
    >>> two_readings("1.500")
    'may be 1.5 or 1500: write one of them'
    """
    small, large = (f"{read_number(text, mark):.12g}" for mark in ".,")
    one, other = sorted((small, large), key=float)
    return f"may be {one} or {other}: write one of them"


EXACT = 2**53  # the largest whole number up to which every one is exact as a float


def is_whole(value: object) -> bool:
    """Return whether a value is an integer; true and false are not."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def is_missing(value: object) -> bool:
    """Return whether a value is one of those that pandas writes where there is none."""
    if isinstance(value, float):
        return value != value
    return type(value).__name__ in ("NAType", "NaTType")


def is_real(value: object) -> bool:
    """Return whether a value is a number other than NaN; true and false are not."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and value == value


def check_number(
    faults: FaultList, path: str, given: Any, least: float = 0.0, greatest: float = np.inf
) -> None:
    """Note a value that is no number or out of range.

    >>> faults = FaultList()
    >>> for value in (2, "2", True, float("nan")):
    ...     check_number(faults, "goals.moves", value)
    >>> [one.value for one in faults.faults]
    ['2', True, nan]
    """
    number = float(given) if isinstance(given, np.floating) else given
    if not is_real(given) or not least <= number <= greatest:
        upper = "or more" if np.isinf(greatest) else f"to {greatest:g}"
        faults.add(path, given, f"must be a number, {least:g} {upper}")


def check_whole(
    faults: FaultList, path: str, given: Any, least: int = 0, greatest: int = EXACT
) -> None:
    """Note a value that is no whole number or out of range."""
    if not is_whole(given) or not least <= given <= greatest:
        upper = "or more" if greatest == EXACT else f"to {greatest}"
        faults.add(path, given, f"must be a whole number, {least} {upper}")


def check_truth(faults: FaultList, path: str, given: Any) -> None:
    """Note a value that is neither true nor false."""
    if not isinstance(given, bool | np.bool_):
        faults.add(path, given, "must be True or False")


def check_text(faults: FaultList, path: str, given: Any) -> None:
    """Note a value that is no text."""
    if not isinstance(given, str):
        faults.add(path, given, "must be a string")


def require(path: str, given: object, kind: type) -> None:
    """Raise ``InvalidInput`` for a value of another class, by the name of its own."""
    if not isinstance(given, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        message = f"must be {article} {kind.__name__}"
        raise InvalidInput([Fault(path, type(given).__name__, message)])


def check_time_limit(faults: FaultList, given: Any) -> None:
    """Note an invalid number of seconds; None is for no limit."""
    if given is not None and (not is_real(given) or given < 0.0):
        faults.add("time_limit", given, "must be a number of seconds, 0 or more")


def read_count(faults: FaultList, path: str, given: Any) -> int | None:
    """Read a whole number from 0 on; None stays None."""
    if given is None:
        return None
    if not is_whole(given) or given < 0:
        faults.add(path, given, "must be a whole number, 0 or more")
        return None
    if given > EXACT:
        faults.add(path, given, "is larger than 2**53: leave it out where nothing is to be limited")
        return None
    return int(given)


def read_bytes(faults: FaultList, path: str, given: Any) -> float | None:
    """Read an amount of data: a number from 0 on, or a text such as ``"3TB"`` or ``"2.5 TiB"``."""
    if given is None:
        return None
    if isinstance(given, str):
        found = _BYTES.fullmatch(given)
        unit = found and _UNIT_OF.get(found[2].lower())
        number = found and read_number(found[1].strip())
        if unit and number is not None:
            return number * BYTE_UNITS[unit]
        if found and unit and decimal_marks(found[1].strip()) == ".,":
            faults.add(path, given, two_readings(found[1].strip()))
            return None
    elif is_real(given) and 0.0 <= given < np.inf:
        return float(given)
    units = ", ".join(BYTE_UNITS)
    faults.add(path, given, f"must be a number, 0 or more, or a text such as '3TB'; units: {units}")
    return None


def milli_or_mega(text: str) -> str:
    """Return the message on a bare ``m`` behind a number that is not of bytes; else "".

    >>> milli_or_mega("500m"), milli_or_mega("500M")
    ('may be 0.5, or 500 million: write 0.5 or 500M', '')
    """
    found = _MILLI_OR_MEGA.fullmatch(text)
    if found is None:
        return ""
    thousandths = f"{float(found[1]) / 1e3:.12g}"
    return f"may be {thousandths}, or {found[1]} million: write {thousandths} or {found[1]}M"


class Percent(float):
    """A share that was given in per cent, so that one above 1 is meant."""


def read_tolerance(
    faults: FaultList, path: str, given: Any, greatest: float = np.inf
) -> float | None:
    """Read a tolerance: a number from 0 to 1, or a text such as ``"5%"``; None stays None.

    >>> read_tolerance(FaultList(), "level", "5%"), read_tolerance(FaultList(), "level", 0.1)
    (0.05, 0.1)
    """
    if given is None:
        return None
    found = _PERCENT.fullmatch(given) if isinstance(given, str) else None
    value = float(found[1]) / 100.0 if found else given
    if is_real(value) and 0.0 <= value <= min(greatest, 1.0):
        return float(value)
    if (found or isinstance(given, Percent)) and 1.0 < value <= greatest:
        return Percent(value)
    percent = "" if not is_real(value) or not 1.0 < value <= greatest else percent_meant(value)
    faults.add(path, given, f"must be a number, 0 to 1, or a text such as '5%'{percent}")
    return None


def percent_meant(value: float) -> str:
    """Return the effect of a tolerance above 1, and the notation probably meant.

    >>> percent_meant(5.0)
    "; 5 is 500%: write '5%' or 0.05, or '500%' if that is meant"
    """
    share, most = f"{value / 100.0:.10g}", f"{100.0 * value:.10g}"
    given = f"{value:.10g}"
    return f"; {given} is {most}%: write '{given}%' or {share}, or '{most}%' if that is meant"


def read_tolerances(
    faults: FaultList, path: str, given: Any, greatest: float = np.inf
) -> float | dict[str, float | None] | None:
    """Read one tolerance for all dimensions, or a mapping of a dimension's name to its own."""
    if not isinstance(given, Mapping):
        return read_tolerance(faults, path, given, greatest)
    return {
        name: read_tolerance(faults, f"{path}[{name!r}]", one, greatest)
        for name, one in given.items()
    }


def read_tier_counts(faults: FaultList, path: str, given: Any) -> dict[str, int]:
    """Read a mapping of a tier's name to a whole number; a tier without one is left out."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        faults.add(path, given, "must be a mapping of a tier to a number, such as {'zone': 20}")
        return {}
    found = {}
    for tier, one in given.items():
        if not isinstance(tier, str):
            faults.add(f"{path}[{tier!r}]", tier, "must be a string")
        count = read_count(faults, f"{path}[{tier!r}]", one)
        if count is not None:
            found[tier] = count
    return found


_PER = re.compile(_NUMBER + r"(%?)\s*(?:/\s*(.+?)\s*)?")
WORTHS = ("all", "move", "byte")  # what a least gain may be asked of


def read_worth(faults: FaultList, path: str, given: Any) -> dict[str, float]:
    """Read the least gain in all, per move and per byte: what is positive of it, by that word.

    >>> faults = FaultList()
    >>> read_worth(faults, "worth", ["2%", "0.5%/move", "1%/TB"])
    {'all': 0.02, 'move': 0.005, 'byte': 1e-14}
    >>> read_worth(faults, "worth", "1%/second"), len(faults.faults)
    ({}, 1)
    """
    found: dict[str, float] = {}
    if isinstance(given, Mapping):
        given = [(word, amount) for word, amount in given.items()]
    for one in given if isinstance(given, list | tuple) else () if given is None else (given,):
        word, amount = one if isinstance(one, tuple) and len(one) == 2 else ("all", one)
        if isinstance(amount, str) and (parts := _PER.fullmatch(amount)):
            amount = float(parts[1]) / (100.0 if parts[2] else 1.0)
            word = parts[3] or word
            size = read_bytes(FaultList(), path, f"{word}" if word[0].isdigit() else f"1{word}")
            if word not in WORTHS and size:
                word, amount = "byte", amount / size
        if word not in WORTHS or not is_real(amount) or not 0.0 <= amount < np.inf:
            form = "must be a share, such as 0.02 or '2%', or '0.01%/move', or '1%/TB'"
            faults.add(path, one, form)
        elif amount:
            found[word] = float(amount)
    return found
