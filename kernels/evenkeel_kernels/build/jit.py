"""The one decorator that every kernel wears, and the cache that keeps what it compiled."""

import contextlib
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from evenkeel_kernels.build.cache_key import imports_digest
from evenkeel_kernels.build.inline_compiler import PieceCompiler

F = TypeVar("F", bound=Callable[..., object])

_njit: Any = partial(numba.njit, nogil=True, no_cfunc_wrapper=True)  # C never calls a kernel


class KernelCacheWarning(RuntimeWarning):
    """Compiled kernels cannot be kept, so that every process compiles them again."""


def jit(function: F) -> F:
    """Compile ``function`` at its first call, without the GIL, and keep the result on disk.

    The compiled kernel is kept where numba keeps its own (``NUMBA_CACHE_DIR``, else beside the
    source, else the user's cache folder). Later processes use it again until its module, or a
    module of the same package that it imports, changes. Where no folder can be written, kernels
    compile in every process and one `KernelCacheWarning` says so.

    Parameters
    ----------
    function : callable
        A function of arrays and scalars, in what numba compiles without the interpreter. Neither
        fast arithmetic nor threads are switched on: the same input gives the same bits.

    Returns
    -------
    callable
        The kernel, with the signature of ``function``. With ``NUMBA_DISABLE_JIT=1`` it is
        ``function`` itself.

    Examples
    --------
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


def lean(function: F) -> F:
    """Compile like `jit` a kernel that creates no array, and so need count no references.

    Counting them costs an atomic operation for every array of a tuple that is taken apart: booking
    75,000 replicas through the tuples of `evenkeel_kernels.core.state` took 78 ms that way, and
    1.5 ms without. Creating an array in a lean kernel is an error as it compiles: scratch arrays
    are passed in.

    Parameters
    ----------
    function : callable
        As for `jit`; it may create no array.

    Returns
    -------
    callable
        The kernel, with the signature of ``function``.

    Examples
    --------
    >>> @lean
    ... def first(load):
    ...     return load[0]
    >>> import numpy as np
    >>> first(np.array([0.5, 2.0]))
    0.5
    """
    return _kept(function, _njit(_nrt=False, error_model="numpy")(function))


def inlined(function: F) -> F:
    """Compile a small function like `lean`, and always inline it into the kernels that call it.

    The compiler vectorises no loop with a call in it, and leaves by itself some small functions as
    calls.

    Parameters
    ----------
    function : callable
        A few lines of arithmetic on scalars.

    Returns
    -------
    callable
        The kernel, with the signature of ``function``.

    Examples
    --------
    >>> @inlined
    ... def squared(x):
    ...     return x * x
    >>> squared(3)
    9
    """
    return _kept(
        function,
        _njit(forceinline=True, _nrt=False, error_model="numpy")(function),
    )


def piece(function: F) -> F:
    """Compile like `inlined` a part of kernels that Python itself never calls.

    What lets Python call it would take longer to compile than the part itself, where it takes
    tuples of many arrays. Call a piece at as few places as can be: each is another copy to compile.

    Parameters
    ----------
    function : callable
        Part of a kernel; it may create no array.

    Returns
    -------
    callable
        The piece, with the signature of ``function``; calling it from Python is a TypeError.

    Examples
    --------
    >>> @piece
    ... def half(x):
    ...     return x / 2
    >>> @lean
    ... def quarter(x):
    ...     return half(half(x))
    >>> quarter(2.0)
    0.5
    """
    return _within_kernels(function, forceinline=True)


def shared(function: F) -> F:
    """Compile like `piece` a part that several kernels call, as a call and not as a copy of it.

    Parameters
    ----------
    function : callable
        Part of a kernel; it may create no array.

    Returns
    -------
    callable
        The part, with the signature of ``function``; calling it from Python is a TypeError.
    """
    return _within_kernels(function, forceinline=False)


def _within_kernels(function: F, forceinline: bool) -> F:
    """Compile without the ways into a function that only a call from outside would need."""
    compiled = _njit(
        forceinline=forceinline,
        _nrt=False,
        error_model="numpy",
        no_cpython_wrapper=True,
        pipeline_class=PieceCompiler,
    )(function)
    if compiled is not function:
        _keep_from_python(compiled)
    return _kept(function, compiled)


def _keep_from_python(compiled: Any) -> None:
    """Let no compiled form of a piece be found by a call from Python, which has no way into it."""

    def refuse(*arguments: object, **named: object) -> None:
        raise TypeError(f"{compiled.py_func.__name__} is a piece of kernels: call it from a kernel")

    def add_overload(result: Any) -> None:
        compiled.overloads[tuple(result.signature.args)] = result

    compiled.add_overload = add_overload
    compiled._compile_for_args = refuse


def _kept(function: F, compiled: Any) -> F:
    """Give a compiled function its place on disk; with JIT off there is nothing to keep."""
    if compiled is function:
        return function
    try:
        compiled._cache = KernelCache(function)
    except RuntimeError:
        if Path(function.__code__.co_filename).exists():  # else it was typed at a prompt
            _warn_once()
    kernel: F = compiled
    return kernel


class KernelCache(FunctionCache):
    """numba's own cache, stamped with all that the kernel depends on.

    Parameters
    ----------
    function : callable
        The function before it is compiled.

    Raises
    ------
    RuntimeError
        Where no cache folder can be written.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        settings: Any = numba.config
        # A cached kernel names its module, and one that was compiled while its file was run as a
        # script names another. Bounds checks change the code and are not part of numba's key.
        stamp = (
            self._impl.locator.get_source_stamp(),
            imports_digest(function.__module__),
            function.__module__,
            settings.BOUNDSCHECK,
        )
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled kernel; one that cannot be loaded, for whatever reason, is as none."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel; a full or vanished disk does not stop the caller."""
        try:
            super().save_overload(sig, data)
        except OSError:
            _warn_once()


@cache
def _warn_once() -> None:
    warnings.warn(
        "no folder can be written that would keep compiled kernels, so that every process compiles "
        "them again; NUMBA_CACHE_DIR names a folder to use",
        KernelCacheWarning,
        stacklevel=4,
    )
