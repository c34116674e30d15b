"""The state of a pipeline between two runs: baseline and best possible assignment, by names."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.assignment import Assignment
from evenkeel.model.names import Names


class Kind(Enum):
    """What is kept.

    Examples
    --------
    >>> [one.name for one in Kind]
    ['BASELINE', 'BEST_POSSIBLE']
    """

    BASELINE = "baseline"
    BEST_POSSIBLE = "best_possible"


class Stale(RuntimeError):
    """The store holds this version or a newer one; another writer uses it."""


@dataclass(frozen=True, eq=False)
class Record:
    """An assignment that means the same on any later cluster. P partitions, N nodes.

    Parameters
    ----------
    version : int
        Counted from 1; never falls.
    assignment : Assignment
        Of P partitions on N nodes.
    nodes : Names
        N names.
    partitions : Names
        P names.
    known : ndarray of bool, shape (P,)
        Partitions that were ever placed. The others are new, and their empty rows have no meaning.
    digests : mapping of str to str
        What the cluster was like for which it was calculated; see ``control.view``.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import control
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> store = control.MemoryStore()
    >>> with control.Pipeline("balance", store=store, workers=control.InlineWorkers()) as pipeline:
    ...     step = pipeline.run(c)
    >>> from evenkeel.control.stores.store import Kind
    >>> record = store.read(Kind.BEST_POSSIBLE)
    >>> record.version, list(record.nodes), len(record.assignment)
    (1, ['n0', 'n1', 'n2'], 4)
    """

    version: int
    assignment: Assignment
    nodes: Names
    partitions: Names
    known: NDArray[np.bool_]
    digests: Mapping[str, str] = field(default_factory=dict)


class Store(ABC):
    """Keeps the newest record of each kind.

    Examples
    --------
    >>> class Shouting(MemoryStore):
    ...     def write(self, kind, record):
    ...         print("kept", kind.value, record.version)
    ...         super().write(kind, record)
    >>> isinstance(Shouting(), Store)
    True
    """

    @abstractmethod
    def read(self, kind: Kind) -> Record | None:
        """Return the newest record, None if there never was one."""

    @abstractmethod
    def write(self, kind: Kind, record: Record) -> None:
        """Keep a record, wholly or not at all; ``Stale`` unless its version is the highest."""


class MemoryStore(Store):
    """Keeps records as long as the process lives.

    Examples
    --------
    >>> MemoryStore().read(Kind.BASELINE) is None
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[Kind, Record] = {}

    def read(self, kind: Kind) -> Record | None:
        """Return the newest record.

        Parameters
        ----------
        kind : Kind
            Which one.

        Returns
        -------
        Record or None
            None if there never was one.
        """
        with self._lock:
            return self._records.get(kind)

    def write(self, kind: Kind, record: Record) -> None:
        """Keep a record.

        Parameters
        ----------
        kind : Kind
            Which one.
        record : Record
            With a version above the last one.

        Raises
        ------
        Stale
            If its version is not above the last one.
        """
        with self._lock:
            kept = self._records.get(kind)
            refuse_stale(kind, record.version, kept.version if kept else 0)
            self._records[kind] = record


def refuse_stale(kind: Kind, version: int, kept: int) -> None:
    """Refuse to go back.

    >>> refuse_stale(Kind.BASELINE, 3, 3)
    Traceback (most recent call last):
    evenkeel.control.stores.store.Stale: baseline 3 is stale: version 3 is there already
    """
    if version <= kept:
        raise Stale(f"{kind.value} {version} is stale: version {kept} is there already")
