"""Windows: spans of time in which copies may run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.reading.keywords import known_fields
from evenkeel.model.reading.quantities import is_real


@known_fields
@dataclass(frozen=True, init=False)
class Windows:
    """Spans of time in which copies run; outside of them they pause, and nothing begins.

    Parameters
    ----------
    spans : sequence of (float, float)
        Beginning and end of each span, in seconds from the beginning of the plan, ascending.
    every : float, optional
        Seconds after which the spans come again, such as 86,400. Without it the last one must not
        end.

    Raises
    ------
    InvalidInput
        If there is no span, one is empty or begins before the last has ended, or they end.

    Examples
    --------
    >>> Windows([(0, 10)], every=60).closing(np.array([10.0, 15.0])).tolist()
    [10.0, 65.0]
    """

    spans: tuple[tuple[float, float], ...]
    every: float | None

    def __init__(self, spans: Sequence[tuple[float, float]], every: float | None = None) -> None:
        found, faults = _read_spans(spans)
        if every is not None and not is_real(every):
            faults.append(Fault("windows.every", every, "must be a number of seconds"))
        if faults:
            raise InvalidInput(faults)
        if not found:
            faults.append(Fault("windows.spans", spans, "would never let anything move"))
        last = 0.0
        for i, (begin, end) in enumerate(found):
            if not last <= begin < end:
                wanted = "must begin where the last has ended or later, and end later"
                faults.append(Fault(f"windows.spans[{i}]", (begin, end), wanted))
            last = end
        if every is None and found and np.isfinite(last):
            faults.append(Fault("windows.spans", last, "must not end, or come again: give every"))
        if every is not None and not last <= every < np.inf:
            faults.append(Fault("windows.every", every, f"must be finite and at least {last:g}"))
        if faults:
            raise InvalidInput(faults)
        object.__setattr__(self, "spans", found)
        object.__setattr__(self, "every", every)

    def opening(self, ran: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return when what begins after so many seconds of running does so."""
        return self._clock(ran, "right")

    def closing(self, ran: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return when what ends after so many seconds of running does so."""
        return self._clock(ran, "left")

    def is_open(self, time: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return whether each time is within a span, its ends included."""
        if self.every is not None:
            turn = np.floor(time / self.every)
            inside = self._within(time - turn * self.every)
            # the end of a span may be the end of the turn
            inside |= self._within(np.full_like(time, self.every)) & (time % self.every == 0.0)
            return inside
        return self._within(time)

    def _within(self, time: NDArray[np.float64]) -> NDArray[np.bool_]:
        slack = 1e-9 * np.maximum(np.abs(time), 1.0)
        inside = np.zeros(time.shape, bool)
        for begin, end in self.spans:
            inside |= (time >= begin - slack) & (time <= end + slack)
        return inside

    def _clock(self, ran: NDArray[np.float64], side: "str") -> NDArray[np.float64]:
        begin = np.array([one for one, _ in self.spans])
        length = np.array([end - one for one, end in self.spans])
        before = np.append(0.0, np.cumsum(length)[:-1])
        whole, turn = float(length.sum()), np.zeros(len(ran))
        if self.every is not None:
            turn = np.floor(ran / whole)
            if side == "left":
                turn = np.where((ran == turn * whole) & (turn > 0.0), turn - 1.0, turn)
            ran = ran - turn * whole
        at = np.searchsorted(before, ran, side="right" if side == "right" else "left") - 1
        at = np.maximum(at, 0)
        shift = 0.0 if self.every is None else turn * self.every
        return np.asarray(begin[at] + (ran - before[at]) + shift)


def _read_spans(spans: object) -> tuple[tuple[tuple[float, float], ...], list[Fault]]:
    """Read pairs of numbers, and note what are none."""
    if not isinstance(spans, Sequence) or isinstance(spans, str):
        return (), [Fault("windows.spans", spans, "must be pairs of seconds, such as [(0, 3600)]")]
    found, faults = [], []
    for i, span in enumerate(spans):
        pair = tuple(span) if isinstance(span, Sequence) and not isinstance(span, str) else ()
        if len(pair) == 2 and all(is_real(one) for one in pair):
            found.append((float(pair[0]), float(pair[1])))
        else:
            faults.append(Fault(f"windows.spans[{i}]", span, "must be a pair of seconds"))
    return tuple(found), faults
