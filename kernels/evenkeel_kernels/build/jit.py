"""Decorators that compile kernels with numba and cache the machine code."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event

from evenkeel_kernels.build.shipped import before_compiling
from evenkeel_kernels.build.warning import KernelCacheWarning, warn_once

try:
    from evenkeel_kernels.build import numba_internals as backend
except (ImportError, AttributeError):  # a version that is not known, or one that lacks a name
    from evenkeel_kernels.build import numba_public as backend  # type: ignore[no-redef]

__all__ = [
    "KernelCacheWarning",
    "backend",
    "by_reference",
    "device_function",
    "inline_only",
    "inlined",
    "jit",
    "no_alloc",
]

F = TypeVar("F", bound=Callable[..., object])
K = TypeVar("K", bound=type[tuple[Any, ...]])

_njit: Any = partial(numba.njit, nogil=True, **backend.NO_C_WRAPPER)
_lean: dict[str, Any] = {"error_model": "numpy", **backend.NO_COUNTING}


def jit(function: F) -> F:
    """Compile ``function`` at its first call, without the GIL, and keep the result on disk.

    The compiled kernel is kept where numba keeps its own (``NUMBA_CACHE_DIR``, else beside the
    source, else the user's cache folder). Later processes use it again until its module, or a
    module of the same package that it imports, changes. Where no folder can be written, kernels
    compile in every process and one `KernelCacheWarning` says so.

    ``function``: a function of arrays and scalars, in what numba compiles without the interpreter.
    Neither fast arithmetic nor threads are switched on: the same input gives the same bits. Returns
    the kernel, with the signature of ``function``. With ``NUMBA_DISABLE_JIT=1`` it is ``function``
    itself.

    >>> @jit
    ... def highest(load):
    ...     most = 0.0
    ...     for value in load:
    ...         most = max(most, value)
    ...     return most
    >>> import numpy as np
    >>> highest(np.array([0.5, 2.0]))
    2.0
    """
    return _kept(function, _njit()(function))


def no_alloc(function: F) -> F:
    """Compile like `jit` a kernel that creates no array, and so need count no references.

    Counting them costs an atomic operation for every array of a tuple that is taken apart: booking
    75,000 replicas through the tuples of `evenkeel_kernels.core.state` took 78 ms that way, and 1.5
    ms without. Creating an array in a lean kernel is an error as it compiles: scratch arrays are
    passed in.

    ``function``: as for `jit`; it may create no array. Returns the kernel, with the signature of
    ``function``.

    >>> @no_alloc
    ... def first(load):
    ...     return load[0]
    >>> import numpy as np
    >>> first(np.array([0.5, 2.0]))
    0.5
    """
    return _kept(function, _njit(**_lean)(function))


def inlined(function: F) -> F:
    """Compile a small function like `no_alloc`, and always inline it into the kernels that call it.

    The compiler vectorises no loop with a call in it, and leaves by itself some small functions as
    calls.

    ``function``: a few lines of arithmetic on scalars. Returns the kernel, with the signature of
    ``function``.

    >>> @inlined
    ... def squared(x):
    ...     return x * x
    >>> squared(3)
    9
    """
    return _kept(function, _njit(**backend.INLINED, **_lean)(function))


def inline_only(function: F) -> F:
    """Compile like `inlined` a part of kernels that Python itself never calls.

    What lets Python call it would take longer to compile than the part itself, where it takes
    tuples of many arrays. Call a piece at as few places as can be: each is another copy to compile.

    ``function``: part of a kernel; it may create no array. Returns the piece, with the signature of
    ``function``; calling it from Python is a TypeError.

    >>> @inline_only
    ... def half(x):
    ...     return x / 2
    >>> @no_alloc
    ... def quarter(x):
    ...     return half(half(x))
    >>> quarter(2.0)
    0.5
    """
    return _within_kernels(function, backend.INLINED)


def device_function(function: F) -> F:
    """Compile like `inline_only` a part of several kernels, as a call and not as a copy of it.

    ``function``: part of a kernel; it may create no array. Returns the part, with the signature of
    ``function``; calling it from Python is a TypeError.
    """
    return _within_kernels(function, {})


def by_reference(kind: K) -> K:
    """Have kernels take a class of named tuples as a pointer and not as all that it is made of.

    Compiling takes about half the time where many arrays are passed on, and running no more. Only
    Python can create such a tuple; what a kernel creates itself stays as it is.

    ``kind``: a `typing.NamedTuple`. Returns the same; to Python nothing changes.

    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> @by_reference
    ... class Pair(NamedTuple):
    ...     load: np.ndarray
    ...     limit: float
    >>> @no_alloc
    ... def fits(pair):
    ...     return pair.load[0] <= pair.limit
    >>> fits(Pair(np.array([0.5, 2.0]), 1.0))
    True
    """
    pointed: K = backend.by_reference(kind)
    return pointed


def _within_kernels(function: F, inlined: Mapping[str, Any]) -> F:
    options = {"nogil": True, **inlined, **backend.NO_C_WRAPPER, **_lean}
    return _kept(function, backend.within_kernels(function, **options))


def _kept(function: F, compiled: Any) -> F:
    """Give a compiled function its place on disk; with JIT off there is nothing to keep."""
    if compiled is function:
        return function
    compiled.of_kernels = True
    try:
        backend.keep(compiled, function)
    except RuntimeError:
        if Path(function.__code__.co_filename).exists():  # else it was typed at a prompt
            warn_once()
    kernel: F = compiled
    return kernel


class _Watching(event.Listener):
    """Has the reason logged before a kernel is compiled, or an error raised."""

    def on_start(self, happened: Any) -> None:
        compiled = happened.data["dispatcher"]
        if hasattr(compiled, "of_kernels"):
            function = compiled.py_func
            named = f"{function.__module__}.{function.__name__}"
            before_compiling(named, backend.FIRST_SOLVE)

    def on_end(self, happened: Any) -> None:
        """Nothing to do."""


event.register("numba:compile", _Watching())
