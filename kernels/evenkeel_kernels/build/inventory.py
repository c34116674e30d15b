"""Count the kernels of this installation, and report those that are being compiled."""

import importlib
import os
import pkgutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import numba
from numba.core import event

import evenkeel_kernels
from evenkeel_kernels.build import shipped
from evenkeel_kernels.build.jit import backend


class Inventory(NamedTuple):
    """The kernels of this installation."""

    # ``kept`` of all ``kernels`` are compiled and on disk below ``folder`` for this ``processor``
    # and the sources as they are, or shipped; ``folder`` is empty where nothing can be kept, or
    # with JIT off, and names each folder where kernels are in several, as beside one that is
    # read-only. ``shipped`` names the file of compiled kernels that serves here, or says why none
    # does.

    kernels: int
    kept: int
    folder: str
    shipped: str
    processor: str
    jit: bool


class Compiled(NamedTuple):
    """A kernel that was compiled: its name, and the seconds that it alone took."""

    kernel: str
    seconds: float


def inventory() -> Inventory:
    """Count the kernels and those that are kept; this imports every kernel module.

    >>> found = inventory()
    >>> found.kept <= found.kernels
    True
    """
    kernels = _kernels()
    settings: Any = numba.config
    return Inventory(
        kernels=len(kernels),
        kept=sum(map(backend.is_kept, kernels)),
        folder=_above({*map(backend.folder, kernels)} - {""}),
        shipped=shipped.reason() or shipped.NAME,
        processor=backend.processor(),
        jit=not settings.DISABLE_JIT,
    )


@contextmanager
def on_compile(
    begun: Callable[[str], object] | None = None, done: Callable[[Compiled], object] | None = None
) -> Iterator[None]:
    """Report, within the context, every kernel that is compiled because none was kept.

    ``begun``: called with the name of a kernel before it is compiled; ``done``: called with what it
    was and how long it took; kernels that it calls, and that were compiled on the way, are reported
    by themselves and not counted in. Yields nothing; the report ends with the context.

    >>> names = []
    >>> with on_compile(begun=names.append):
    ...     pass
    >>> names
    []
    """
    with event.install_listener("numba:compile", _Listener(begun, done)):
        yield


@contextmanager
def report_preparing(spent: Callable[[float], object]) -> Iterator[None]:
    """Report, within the context, the seconds in which this thread compiles or loads kernels.

    Threads count, too, that run in a copy of this thread's context (``contextvars``); what several
    prepare at the same time counts once.

    ``spent``: called with the seconds each time that a kernel, with all that it calls, is ready to
    run. Yields nothing; the report ends with the context.

    >>> seconds = []
    >>> with report_preparing(seconds.append):
    ...     pass
    >>> seconds
    []
    """
    listener = _Outermost(spent)
    before = _OUTERMOST.set((*_OUTERMOST.get(), listener))
    try:
        with (
            event.install_listener("numba:compile", listener),
            event.install_listener(backend.LOADING, listener),
        ):
            yield
    finally:
        _OUTERMOST.reset(before)


class _Outermost(event.Listener):
    """Takes the time in which anything is prepared in its context, nested parts not apart."""

    def __init__(self, spent: Callable[[float], object]) -> None:
        self._spent = spent
        self._lock = threading.Lock()
        self._depth, self._began = 0, 0.0

    def on_start(self, happened: Any) -> None:
        if self not in _OUTERMOST.get():
            return
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._began = time.perf_counter()

    def on_end(self, happened: Any) -> None:
        if self not in _OUTERMOST.get():
            return
        with self._lock:
            self._depth = max(0, self._depth - 1)
            if self._depth == 0:
                self._spent(time.perf_counter() - self._began)


# what receives the times of this context
_OUTERMOST: ContextVar[tuple[_Outermost, ...]] = ContextVar("outermost", default=())


class _Listener(event.Listener):
    """Takes the time of nested compilations apart, thread by thread."""

    def __init__(
        self, begun: Callable[[str], object] | None, done: Callable[[Compiled], object] | None
    ) -> None:
        self._begun = begun
        self._done = done
        self._open = threading.local()

    def on_start(self, happened: Any) -> None:
        self._stack().append([time.perf_counter(), 0.0])
        name = _name(happened)
        if name and self._begun is not None:
            self._begun(name)

    def on_end(self, happened: Any) -> None:
        if not self._stack():
            return  # it began before anything listened
        started, inner = self._stack().pop()
        whole = time.perf_counter() - started
        name = _name(happened)
        if self._stack():
            # what is no kernel of ours belongs to the one that needed it
            self._stack()[-1][1] += whole if name else inner
        if name and self._done is not None:
            self._done(Compiled(name, whole - inner))

    def _stack(self) -> list[list[float]]:
        if not hasattr(self._open, "stack"):
            self._open.stack = []
        stack: list[list[float]] = self._open.stack
        return stack


def _name(happened: Any) -> str:
    """Name the kernel of an event, without the package; "" for numba's own functions."""
    function = happened.data["dispatcher"].py_func
    if not function.__module__.startswith(f"{evenkeel_kernels.__name__}."):
        return ""
    return f"{function.__module__}.{function.__name__}".removeprefix(
        f"{evenkeel_kernels.__name__}."
    )


def _above(folders: set[str]) -> str:
    """Return the folder that all folders are in, of each place where numba keeps kernels."""
    settings: Any = numba.config
    roots = [settings.CACHE_DIR, *evenkeel_kernels.__path__]
    places: dict[str, list[str]] = {}
    for one in sorted(folders):
        root = next((root for root in roots if root and Path(one).is_relative_to(root)), "")
        places.setdefault(root, []).append(os.path.dirname(one))  # noqa: PTH120
    return ", ".join(map(os.path.commonpath, places.values()))


def _kernels() -> list[Any]:
    """Every kernel of every module, once; none with JIT off, for then they are plain functions."""
    found: dict[int, Any] = {}
    for module in pkgutil.walk_packages(evenkeel_kernels.__path__, f"{evenkeel_kernels.__name__}."):
        if module.name.startswith(__package__):
            continue
        loaded = importlib.import_module(module.name)
        for value in vars(loaded).values():
            if hasattr(value, "py_func") and value.py_func.__module__ == module.name:
                found[id(value)] = value
    return list(found.values())
