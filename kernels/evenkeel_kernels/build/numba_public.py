"""Compile and cache kernels through numba's documented options alone.

This serves versions of numba that are not known. The kernels give the same answers, take longer to
compile, and count references where they need not. numba's own cache sees a change in a kernel's own
file only: each state of the sources has a folder.
"""

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from evenkeel_kernels.build.cache_key import imports_digest
from evenkeel_kernels.build.warning import warn_once

F = TypeVar("F", bound=Callable[..., object])
K = TypeVar("K", bound=type)

NO_C_WRAPPER: dict[str, Any] = {}
NO_COUNTING: dict[str, Any] = {}
INLINED: dict[str, Any] = {}  # what numba documents has no such options

LOADING = "evenkeel:load"  # an event that never comes here: numba alone loads its kernels


FIRST_SOLVE = "some minutes"  # how long the kernels of a first solve take to compile

SHARED = False  # processes do not know of each other: each would compile all


def claimed(compiled: Any) -> bool:
    """Tell that nothing can be claimed."""
    return False


def give_back(compiled: Any) -> None:
    """Nothing was claimed."""


def by_reference(kind: K) -> K:
    """Leave a class of tuples as it is: numba documents no pointers to them."""
    return kind


def within_kernels(function: F, **options: Any) -> Any:
    """Compile a part of kernels as any kernel."""
    njit: Any = numba.njit
    return njit(**options)(function)


def keep(compiled: Any, function: Callable[..., object]) -> None:
    """Give a compiled function its place on disk; RuntimeError where no folder can be written."""
    settings: Any = numba.config
    usual = settings.CACHE_DIR
    state = imports_digest(function.__module__).hex()[:16]
    checked = "-checked" if settings.BOUNDSCHECK else ""
    try:
        settings.CACHE_DIR = os.fspath((Path(usual) if usual else _of_user()) / f"{state}{checked}")
        compiled.enable_caching()
    finally:
        settings.CACHE_DIR = usual
    _forgive(compiled)


def _forgive(compiled: Any) -> None:
    """Let a kernel that cannot be loaded be compiled, and one that cannot be saved be used."""
    # numba raises in both cases, and documents nothing that would stop it. What it lacks of these
    # names stays as it is.
    kept = getattr(compiled, "_cache", None)
    load, save = getattr(kept, "load_overload", None), getattr(kept, "save_overload", None)
    if kept is None or load is None or save is None:
        return

    def load_or_none(*key: Any) -> Any:
        try:
            return load(*key)
        except Exception:
            return None

    def save_or_warn(*entry: Any) -> None:
        try:
            save(*entry)
        except OSError as error:  # the disk is full, or the folder was taken away
            warn_once(str(error))

    kept.load_overload, kept.save_overload = load_or_none, save_or_warn


def is_kept(compiled: Any) -> bool:
    """Whether a kernel is on disk for the sources as they are, whatever the processor."""
    place = folder(compiled)
    name = f"{compiled.py_func.__module__.rpartition('.')[2]}.{compiled.py_func.__name__}-"
    return bool(place) and any(Path(place).glob(f"{name}*.nbi"))


def folder(compiled: Any) -> str:
    """Return where a kernel is kept; empty where it is not."""
    return compiled.stats.cache_path or ""


def processor() -> str:
    """Name the processor that kernels are compiled for, as far as it is known."""
    settings: Any = numba.config
    return settings.CPU_NAME or platform.processor() or platform.machine()


def _of_user() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenkeel"
