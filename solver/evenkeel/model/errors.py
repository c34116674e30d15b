"""Collect validation errors, each with its path and value, and raise them together."""

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from evenkeel.model.runtime.printable import printable

SHOWN_FAULTS = 20  # faults spelled out for a person; all of them are in ``InvalidInput.faults``
SHOWN_VALUE = 200  # characters of a value that are written; ``Fault.value`` has all of it


@dataclass(frozen=True)
class Fault:
    """One thing wrong with the input.

    Parameters
    ----------
    path : str
        Where it is, as the caller wrote it: ``load[17, 2]``, ``rules[0].require``, ``a.json:31``.
    value : object
        What stands there.
    message : str
        The problem with it.

    Examples
    --------
    >>> str(Fault("load[3, 0]", float("nan"), "must be finite"))
    'load[3, 0]: must be finite (got nan)'
    """

    path: str
    value: object
    message: str

    def __str__(self) -> str:
        return f"{printable(self.path)}: {printable(self.message)} (got {_shown(self.value)})"


class InvalidInput(ValueError):
    """The input cannot be used as it is; ``faults`` lists everything found wrong with it.

    Parameters
    ----------
    faults : list of Fault
        All of them, in the order they were found.

    Examples
    --------
    >>> raise InvalidInput([Fault("replicas", -1, "must not be negative")])
    Traceback (most recent call last):
    evenkeel.model.errors.InvalidInput: replicas: must not be negative (got -1)
    """

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = tuple(faults)
        lines = fault_lines(faults)
        if len(faults) > 1:
            lines.insert(0, f"{len(faults):,} problems with the input:")
        super().__init__("\n  ".join(lines))

    def __reduce__(self) -> tuple[type["InvalidInput"], tuple[list[Fault]]]:
        """Pickle by the faults; a value that cannot be pickled is replaced by its ``repr``."""
        return type(self), ([_portable(fault) for fault in self.faults],)


def fault_lines(faults: Sequence[Fault]) -> list[str]:
    """Return lines for validation errors: the first of each message and the number of others.

    >>> none = [Fault(f"names[{i}]", i, "must be a string") for i in range(1500)]
    >>> fault_lines(none)[-2:]
    ['names[19]: must be a string (got 19)', '... and 1,480 more: must be a string']
    """
    # messages take turns, so that none hides the others
    count: Counter[str] = Counter()
    turns = []
    for i, fault in enumerate(faults):
        turns.append((count[fault.message], i))
        count[fault.message] += 1
    shown = sorted(i for _, i in sorted(turns)[:SHOWN_FAULTS])
    last = {faults[i].message: i for i in shown}
    lines = []
    for i in shown:
        message = faults[i].message
        lines.append(str(faults[i]))
        left = count[message] - turns[i][0] - 1
        if i == last[message] and left:
            lines.append(f"... and {left:,} more: {printable(message)}")
    if unseen := sum(n for message, n in count.items() if message not in last):
        lines.append(f"... and {unseen:,} more")
    return lines


def _shown(value: object) -> str:
    """Write a value, in one line of so many characters at most."""
    text = repr(value)
    if not isinstance(value, str) and "\n" in text:
        text = " ".join(text.split())
    left = len(text) - SHOWN_VALUE
    return text if left <= 0 else f"{text[:SHOWN_VALUE]}... and {left:,} characters more"


def _portable(fault: Fault) -> Fault:
    try:
        pickle.dumps(fault.value)
    except Exception:  # whatever an object of the caller's raises when it is pickled
        return Fault(fault.path, repr(fault.value), fault.message)
    return fault


@dataclass
class FaultList:
    """Collects faults while the input is read, and raises them together.

    Parameters
    ----------
    faults : list of Fault, optional
        Those noted so far.

    Examples
    --------
    >>> found = FaultList()
    >>> found.add("seed", "x", "must be an integer")
    >>> bool(found)
    True
    """

    faults: list[Fault] = field(default_factory=list)

    def add(self, path: str, value: object, message: str) -> None:
        """Note one fault.

        Parameters
        ----------
        path : str
            Where it is.
        value : object
            What stands there.
        message : str
            The problem with it.
        """
        self.faults.append(Fault(path, value, message))

    def take(self, others: "FaultList | InvalidInput", before: str) -> None:
        """Note the faults of others, with a text before their paths."""
        self.faults += [Fault(f"{before}{one.path}", one.value, one.message)
                        for one in others.faults]  # fmt: skip

    def about(self, *names: str) -> bool:
        """Return whether anything was noted of an argument, or of an entry of it.

        What depends on an argument that is wrong cannot be judged.

        Parameters
        ----------
        *names : str
            Names of arguments.

        Returns
        -------
        bool
            True if one of them has a fault.

        Examples
        --------
        >>> found = FaultList([Fault("load[3, 0]", -1.0, "must not be negative")])
        >>> found.about("load"), found.about("lo", "capacity")
        (True, False)
        """
        entries = tuple(f"{name}{mark}" for name in names for mark in "[.")
        return any(one.path in names or one.path.startswith(entries) for one in self.faults)

    def __bool__(self) -> bool:
        return bool(self.faults)

    def raise_if_any(self) -> None:
        """Raise everything noted so far as one error.

        Raises
        ------
        InvalidInput
            If at least one fault was noted.
        """
        if self.faults:
            raise InvalidInput(self.faults)
