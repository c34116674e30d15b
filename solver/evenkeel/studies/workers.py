"""Workers: who is behind an executor, and how what all tasks read reaches each of them once.

Threads share it. A pool of processes reads it from a file, once in each process. The workers of a
Dask cluster are sent it before the first task, and keep it; whatever its client offers is asked
of the client that came with the executor, so nothing of Dask is imported here. Any other executor
gets it with every batch.

Dask sends every array within what it is given as a message of its own, which takes it longer than
to play a scenario. So batches and their answers are sealed on their way to its workers and back.
"""

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

Common = TypeVar("Common")
Given = TypeVar("Given", covariant=True)
Answer = TypeVar("Answer")

TRIES = 3
"""How often a batch is handed out where workers that are gone are replaced."""

PATIENCE = 0.5
"""Seconds between two looks at whether workers still hold what was sent to them."""


class Sharing(Protocol[Given]):
    """What hands a task the value that all tasks read."""

    @property
    def value(self) -> Given:
        """That value."""


class Shared(Generic[Common]):
    """Something large that every task reads: threads share it, and each process unpacks it once."""

    def __init__(self, value: Common) -> None:
        self.value = value
        self._packed: tuple[str, bytes] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        from hashlib import blake2b  # not needed to import evenkeel, and slow to load

        if self._packed is None:
            data = pickle.dumps(self.value, pickle.HIGHEST_PROTOCOL)
            self._packed = blake2b(data).hexdigest(), data
        return _unpacked, self._packed


class _Filed(Generic[Common]):
    """The same on its way to a process of this machine: a file, read when a task asks for it."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def value(self) -> Common:
        """What was put into the file."""
        if self.path not in _received:
            _received.clear()
            with Path(self.path).open("rb") as file:
                _received[self.path] = Shared(pickle.load(file))
        shared: Shared[Common] = _received[self.path]
        return shared.value


class _Sealed(Generic[Common]):
    """Many small things, one string of bytes per task."""

    def __init__(self, value: Common) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _unsealed, (pickle.dumps(self.value, pickle.HIGHEST_PROTOCOL),)


def _unsealed(data: bytes) -> _Sealed[Any]:
    return _Sealed(pickle.loads(data))


def _sealing(
    task: Callable[[Any, Any, Any, Any], Answer], job: Any, shared: Any, batch: Any, halt: Any
) -> _Sealed[Answer]:
    """Do in a worker what was submitted, both ways sealed."""
    return _Sealed(task(job, shared, batch.value, halt))


_received: dict[str, Shared[Any]] = {}
"""The last thing that was sent to this process, by the digest or the file that it came by."""


def _unpacked(digest: str, data: bytes) -> Shared[Any]:
    if digest not in _received:
        _received.clear()
        _received[digest] = Shared(pickle.loads(data))
    return _received[digest]


class Workers:
    """Who is behind an executor.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        As the caller gave it.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        client = getattr(executor, "_client", None)
        known = all(hasattr(client, name) for name in ("scatter", "nthreads"))
        # a client of an event loop answers nothing to who does not await it
        self._client = client if known and not getattr(client, "asynchronous", False) else None

    @property
    def tries(self) -> int:
        """How often a batch that was lost with its worker may be handed out."""
        return 1 if self._client is None else TRIES

    @property
    def count(self) -> int:
        """Tasks that run at a time, as far as is known; at least 1."""
        if self._client is not None:
            return max(1, int(sum(self._client.nthreads().values())))
        return int(getattr(self.executor, "_max_workers", 0) or os.cpu_count() or 1)

    @property
    def patience(self) -> float | None:
        """Seconds to wait for batches before asking whether what they read is ``lost``."""
        return None if self._client is None else PATIENCE

    def lost(self, shared: Any) -> bool:
        """Whether every worker that held what was shared is gone."""
        return self._client is not None and shared.status in ("cancelled", "lost")

    @contextmanager
    def sharing(self, common: Common) -> Iterator[Any]:
        """Hand out what stands for ``Shared(common)`` among the arguments of ``submit``."""
        if self._client is not None:
            # a hash would be of the whole of it, and equal values would share a fate
            yield self._client.scatter(Shared(common), broadcast=True, hash=False)
        elif _is_pool_of_processes(self.executor):
            with tempfile.TemporaryDirectory(prefix="evenkeel-") as folder:
                path = Path(folder) / "shared"
                with path.open("wb") as file:
                    pickle.dump(common, file, pickle.HIGHEST_PROTOCOL)
                yield _Filed(str(path))
        else:
            yield Shared(common)

    def submit(
        self,
        task: Callable[[Any, Any, Any, Any], Answer],
        job: Any,
        shared: Any,
        batch: Any,
        halt: Any,
    ) -> Future[Any]:
        """Hand a task to the executor; ``answer`` says what it came to."""
        if self._client is None:
            return self.executor.submit(task, job, shared, batch, halt)
        submit: Callable[..., Future[Any]] = self.executor.submit
        # else Dask would hash the arguments, and answer equal calls out of its memory
        return submit(_sealing, task, job, shared, _Sealed(batch), halt, pure=False)

    def answer(self, future: Future[Any]) -> Any:
        """Return what a task that ``submit`` handed out has returned."""
        found = future.result()
        return found.value if isinstance(found, _Sealed) else found


def _is_pool_of_processes(executor: Executor) -> bool:
    if isinstance(executor, ThreadPoolExecutor):
        return False
    from concurrent.futures import ProcessPoolExecutor  # loads all of multiprocessing

    return isinstance(executor, ProcessPoolExecutor)
