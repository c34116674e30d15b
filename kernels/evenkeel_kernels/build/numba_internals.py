"""Compile and cache kernels through numba's undocumented internals.

numba documents neither how it keeps compiled functions nor the classes that compile them, and
changes both. What is here was run with the versions from `OLDEST` to `NEWEST`. Importing it with an
older version is an `ImportError`, and so is a newer one that lacks a name used here, or with which
a kernel does not compile or answers wrongly; `numba_public` is used then.
"""

import contextlib
import gc
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numba
from numba.core import event
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.codegen import JITCodeLibrary, ll  # type: ignore[attr-defined]
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from evenkeel_kernels.build import shipped
from evenkeel_kernels.build.cache_key import imports_digest
from evenkeel_kernels.build.compile_lock import LOCKING, CompileLock
from evenkeel_kernels.build.tuple_pointers import TuplePointer as TuplePointer
from evenkeel_kernels.build.tuple_pointers import by_reference as by_reference
from evenkeel_kernels.build.tuple_pointers import tuple_type as tuple_type
from evenkeel_kernels.build.warning import warn_once

OLDEST, NEWEST = (0, 62), (0, 68)

F = TypeVar("F", bound=Callable[..., object])

FIRST_SOLVE = "15 to 60 s"  # how long the kernels of a first solve take to compile

SHARED = LOCKING  # whether processes that compile at the same time share the work

LOADING = "evenkeel:load"  # the event of a kernel that is loaded, or looked for, on disk

# what numba has the names of its variables for environments begin with
ENVIRONMENT = "_ZN08NumbaEnv"

NO_C_WRAPPER: dict[str, Any] = {"no_cfunc_wrapper": True}  # C never calls a kernel
NO_COUNTING: dict[str, Any] = {"_nrt": False}
INLINED: dict[str, Any] = {"forceinline": True}  # options that numba takes and does not document


VERSION = tuple(int(part) for part in numba.__version__.split(".")[:2])
if VERSION < OLDEST:
    raise ImportError(f"numba {numba.__version__} is not known")


class PieceLibrary(JITCodeLibrary):
    """The code of a part of kernels: simplified once, for others to copy, and never run."""

    def _optimize_final_module(self) -> None:
        """Run numba's first passes only; the callers get all of them."""
        codegen = self._codegen
        passes, builder = codegen._module_pass_manager(
            loop_vectorize=codegen._loopvect,
            slp_vectorize=False,
            opt=codegen._opt_level,
            cost="cheap",
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        """Keep the code for those who copy it, and have nothing compiled but its variables."""
        self._finalize_dynamic_globals()
        self._finalized = True
        whole = self._get_module_for_linking()
        names = [each.name for each in whole.global_variables if each.name.startswith(ENVIRONMENT)]
        lines = "\n".join(f'@"{name}" = common global i8* null' for name in names)
        self._final_module = ll.parse_assembly(lines)
        self._final_module.name = whole.name
        super()._finalize_final_module()


class PieceCompiler(Compiler):
    """numba's compiler, with a library of its own for the code."""

    def compile_extra(self, function: Any) -> Any:
        """Compile a part of kernels."""
        name = FunctionIdentity.from_function(function).func_qualname
        self.state.library = PieceLibrary(self.state.targetctx.codegen(), name)
        self.state.library.enable_object_caching()
        return super().compile_extra(function)


def within_kernels(function: F, **options: Any) -> Any:
    """Compile without the ways into a function that only a call from outside would need."""
    # numba turns every function into machine code, optimised as far as it goes. A part is copied
    # into its callers, and optimised there together with them; machine code of it alone is never
    # run.
    njit: Any = numba.njit
    compiled = njit(no_cpython_wrapper=True, pipeline_class=PieceCompiler, **options)(function)
    if compiled is function:
        return function

    def refuse(*arguments: object, **named: object) -> None:
        raise TypeError(f"{function.__name__} is a piece of kernels: call it from a kernel")

    def add_overload(result: Any) -> None:
        compiled.overloads[tuple(result.signature.args)] = result

    # A call from Python must find no compiled form, for it has no way into it.
    compiled.add_overload = add_overload
    compiled._compile_for_args = refuse
    return compiled


def _or_readable(kind: Any) -> Any:
    """Return a locator of numba's that takes a folder, too, that can be read only."""
    # numba asks for one that can be written. Here it is enough that it keeps the kernel, compiled
    # from the sources as they are; who lacks it looks further.

    class Locator(kind):  # type: ignore[misc]
        @classmethod
        def from_function(cls, function: Callable[..., object], file: str) -> Any:
            settings: Any = numba.config
            found = super().from_function(function, file)
            if found is None and (kind is not UserProvidedCacheLocator or settings.CACHE_DIR):
                with contextlib.suppress(Exception):  # whatever cannot be read is as none
                    found = cls(function, file)
                    base = f"{Path(file).stem}.{function.__qualname__}"
                    there = Path(found.get_cache_path()).glob(
                        f"{base}-{found.get_disambiguator()}.py{_python()}.nbi"
                    )
                    for index in there:
                        kept = IndexDataCacheFile(
                            str(index.parent), index.stem, _stamp(found, function)
                        )
                        if kept._load_index():
                            return found
                return None
            return found

    return Locator


def _python() -> str:
    """Return the Python that numba names in its files."""
    return f"{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"


def _stamp(locator: Any, function: Callable[..., object]) -> tuple[object, ...]:
    """Return what a kernel that is kept depends on."""
    # A cached kernel names its module, and one that was compiled while its file was run as a script
    # names another. Bounds checks change the code and are not part of numba's key.
    settings: Any = numba.config
    module = function.__module__
    return locator.get_source_stamp(), _imported(module), module, settings.BOUNDSCHECK


class Nowhere(UserProvidedCacheLocator):
    """The place of kernels where no folder can be written: they load what is shipped."""

    PLACE = str(Path(__file__, "none"))  # a folder that cannot be made

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self.PLACE

    @classmethod
    def from_function(cls, function: Callable[..., object], file: str) -> Any:
        """Return the place of a function of a file."""
        return cls(function, file) if Path(file).exists() else None


class KernelCacheImpl(CompileResultCacheImpl):
    """Loads the machine code of a kernel; what only a compilation needs is left packed."""

    _locator_classes: list[type[object]] = [  # noqa: RUF012 (numba declares it so)
        *map(_or_readable, (UserProvidedCacheLocator, InTreeCacheLocator, UserWideCacheLocator)),
        *CompileResultCacheImpl._locator_classes[3:],
        Nowhere,
    ]

    def rebuild(self, target_context: Any, payload: tuple[Any, ...]) -> Any:
        """Load a kernel; the code that others copy is read when the first of them is compiled."""
        # numba reads it at once, and lists all that is defined there to know what can be called:
        # half of the time that loading takes
        (name, kind, (machine_code, bitcode)), fndesc = payload[:2]
        engine = target_context.codegen()._engine
        wrapper = fndesc.llvm_cpython_wrapper_name
        if wrapper.encode() in machine_code:  # a part of kernels has none
            engine._defined_symbols.add(wrapper)
        packed = name, kind, (machine_code, _nothing())
        result = super().rebuild(target_context, (packed, *payload[1:]))
        library = result.library
        library._shared_module, library.packed_code = None, bitcode

        def unpacked() -> Any:
            if library._shared_module is None:
                library._shared_module = ll.parse_bitcode(bitcode)
                engine._load_defined_symbols(library._shared_module)
            return library._shared_module

        library._get_module_for_linking = unpacked
        return result


@cache
def _nothing() -> Any:
    """Return the code of a module that defines nothing."""
    return ll.parse_assembly("").as_bitcode()


class KernelCache(FunctionCache):
    """numba's own cache, stamped with all that the kernel depends on."""

    _impl_class = KernelCacheImpl

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        stamp = _stamp(self._impl.locator, function)
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)
        code = function.__code__
        closed_over = [cell.cell_contents for cell in function.__closure__ or ()]
        self._key = shipped.half_key(
            (function.__qualname__, code.co_firstlineno, code.co_code, closed_over, stamp)
        )
        self.lock = CompileLock(self._cache_path, self._impl.filename_base)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled kernel; where there is none, wait until no other process compiles it."""
        with event.trigger_event(LOADING):
            loaded = self._loaded(sig, target_context)
            if loaded is None:
                self.lock.acquire()
                loaded = self._loaded(sig, target_context)  # another may have kept it since
        return loaded

    def _loaded(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled kernel; one that cannot be loaded, for whatever reason, is as none."""
        try:
            # what numba does first, listing all that it can compile, only compiling needs
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                kept = self._load_overload(sig, target_context)
        except Exception:
            with contextlib.suppress(OSError):
                self.flush()
            kept = None
        # what is shipped lacks the code that a kernel which is being compiled would copy
        if kept is not None or len(_compiling) > 1:
            return kept
        try:
            packed = shipped.read(self._key, shipped.half_key(tuple(sig)))
            found = packed and self._impl.rebuild(target_context, pickle.loads(packed))
            return found if found and tuple(found.signature.args) == tuple(sig) else None
        except Exception:  # a file that is damaged is as none
            return None

    def packed(self) -> Iterator[shipped.Entry]:
        """Return each form as it is shipped."""
        # Neither annotations, which hold paths, nor the code that other kernels copy are in it.
        # Parts of kernels, which are nothing else, are left out.
        for (arguments, target, _), name in self._cache_file._load_index().items():
            (library, kind, (machine_code, _)), *rest = self._cache_file._load_data(name)
            if target == _target() and rest[0].llvm_cpython_wrapper_name.encode() in machine_code:
                rest[5] = ""
                payload = ((library, kind, (machine_code, b"")), *rest)
                form, folder = shipped.half_key(tuple(arguments)), self._py_func.__module__
                yield shipped.Entry(
                    self._key, form, ".".join(folder.split(".")[:2]), dumps(payload)
                )

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel; a full or vanished disk does not stop the caller."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            if self._cache_path == Nowhere.PLACE:
                warn_once()
            else:
                warn_once(str(error))

    def holds(self) -> bool:
        """Whether anything is kept or shipped for this processor from these sources."""
        if shipped.holds(self._key):
            return True
        try:
            return any(key[1] == _target() for key in self._cache_file._load_index())
        except Exception:  # an index that was cut short holds nothing
            return False


def _imported(module: str) -> bytes:
    """Digest what a module imports, once for all kernels of it until it is loaded anew."""
    loaded = getattr(sys.modules.get(module), "__spec__", None)
    spec, digest = _digests.get(module, (None, b""))
    if loaded is None or spec is not loaded:
        digest = imports_digest(module)
        _digests[module] = loaded, digest
    return digest


_digests: dict[str, tuple[object, bytes]] = {}


def keep(compiled: Any, function: Callable[..., object]) -> None:
    """Give a compiled function its place on disk; RuntimeError where no folder will do."""
    kernels = KernelCache(function)
    compile_or_load, add_overload = compiled.compile, compiled.add_overload

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock, _without_collection():
            _compiling.append(compiled)
            try:
                form = tuple(normalize_signature(signature)[0])
                known = compiled.overloads.get(form)
                if len(_compiling) > 1 and known is not None and not _has_code(known.library):
                    # Python goes on calling what was shipped
                    del compiled.overloads[form]
                    compiled.add_overload = lambda made: compiled.overloads.update({form: made})
                return compile_or_load(signature)
            finally:  # other processes that wait for it find it on disk now
                compiled.add_overload = add_overload
                _compiling.pop()
                kernels.lock.release()

    compiled._cache, compiled.compile = kernels, compile_once


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Collect no garbage while a kernel is compiled, which would take a fifth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


# kernels being compiled or loaded, each for the one before it; guarded by numba's lock
_compiling: list[Any] = []


def _has_code(library: Any) -> bool:
    """Whether a kernel has the code that other kernels copy; what is shipped has none."""
    return getattr(library, "packed_code", True) != b""


def is_kept(compiled: Any) -> bool:
    """Whether a kernel is compiled and on disk for this processor and the sources as they are."""
    return isinstance(compiled._cache, KernelCache) and compiled._cache.holds()


def claimed(compiled: Any) -> bool:
    """Whether this process may compile a kernel now and keep it; to be given back."""
    return isinstance(compiled._cache, KernelCache) and compiled._cache.lock.claim()


def give_back(compiled: Any) -> None:
    """Let other processes compile a kernel, or load it."""
    compiled._cache.lock.release()


def folder(compiled: Any) -> str:
    """Return where a kernel is kept; empty where it is not."""
    place = compiled._cache.cache_path if isinstance(compiled._cache, KernelCache) else ""
    return "" if place == Nowhere.PLACE else place


def processor() -> str:
    """Name the processor that kernels are compiled for."""
    return _target()[1]


@cache
def _target() -> tuple[str, ...]:
    target: tuple[str, ...] = cpu_target.target_context.codegen().magic_tuple()
    return target


class _Tried(NamedTuple):
    """What the kernel takes that is tried with a version that is not known."""

    replicas: int
    limit: float


def _part(tried: Any) -> Any:
    return tried.replicas + tried.limit


def _whole(tried: Any) -> Any:
    return 2.0 * _part_within(tried)


if VERSION > NEWEST and not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    try:
        _lean = {"nogil": True, "error_model": "numpy", **NO_C_WRAPPER, **NO_COUNTING}
        by_reference(_Tried)
        _part_within = within_kernels(_part, **_lean)
        _kernel: Any = numba.njit(**_lean)(_whole)
        with contextlib.suppress(RuntimeError):  # no folder can be written
            keep(_kernel, _whole)
        _answer = _kernel(_Tried(1, 0.5))
    except Exception as error:
        raise ImportError(f"numba {numba.__version__} differs") from error
    if _answer != 3.0:
        raise ImportError(f"numba {numba.__version__} gives another answer")
