"""Compiled kernels that are shipped in a wheel, and what happens where none serves.

There is one file for a version of Python, one of numba and a kind of processor. It begins with a
table of keys; a key is made of the kernel, all that it depends on, and the types of its arguments,
so that an edited kernel is not found.
"""

import functools
import hashlib
import logging
import os
import struct
import sys
import threading
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numba

PROCESSOR = "x86-64-v3"
"""The kind of processor that kernels are compiled for: those made since about 2015."""

TRIPLE = "x86_64-unknown-linux-gnu"

NEEDED = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "xsave")
"""Features that such a processor has."""

COMPILING = "EVENKEEL_COMPILING"
"""The variable that forbids to compile a kernel if it is ``never``."""

FOLDER = Path(__file__).parent.parent / "shipped"
PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
NAME = f"{PYTHON}-numba{numba.__version__}-{PROCESSOR}.kernels"
ENTRY = struct.Struct("<16s16sQQ")

logger = logging.getLogger("evenkeel.kernels")


class KernelNotCompiled(RuntimeError):
    """A kernel would have to be compiled, which the environment forbids."""


def half_key(of: object) -> bytes:
    """Digest one half of a key: the kernel with its stamp, or the types of its arguments."""
    return hashlib.sha256(repr(of).encode()).digest()[:16]


def write(place: Path, entries: Iterable[tuple[bytes, bytes, bytes]]) -> None:
    """Write a file of kernels: the halves of each key, and the packed kernel."""
    found = [(*key, zlib.compress(code, 9)) for *key, code in sorted(entries)]
    table, begin = b"", 8 + ENTRY.size * len(found)
    for kernel, form, code in found:
        table += ENTRY.pack(kernel, form, begin, len(code))
        begin += len(code)
    codes = b"".join(code for *_, code in found)
    place.write_bytes(struct.pack("<Q", len(found)) + table + codes)


@functools.cache
def _table() -> Mapping[bytes, Mapping[bytes, tuple[int, int]]]:
    """Read where in the file each kernel lies; nothing where the file does not serve."""
    table: dict[bytes, dict[bytes, tuple[int, int]]] = {}
    if not reason():
        with (FOLDER / NAME).open("rb") as file:
            (number,) = struct.unpack("<Q", file.read(8))
            for kernel, form, begin, length in ENTRY.iter_unpack(file.read(number * ENTRY.size)):
                table.setdefault(kernel, {})[form] = begin, length
    return table


def holds(kernel: bytes) -> bool:
    """Whether any form of a kernel is shipped and serves here."""
    return kernel in _table()


def read(kernel: bytes, form: bytes) -> bytes | None:
    """Return a packed kernel; None where none is shipped that serves here."""
    found = _table().get(kernel, {}).get(form)
    if found is None:
        return None
    with (FOLDER / NAME).open("rb") as file:
        file.seek(found[0])
        return zlib.decompress(file.read(found[1]))


@functools.cache
def reason() -> str:
    """Return why no shipped kernel serves here; "" where they do."""
    shipped = sorted(each.name for each in FOLDER.glob("*.kernels"))
    if not shipped:
        return "this installation has no compiled kernels"
    if NAME not in shipped:
        return f"the compiled kernels here are {', '.join(shipped)}, and this is {NAME}"
    settings: Any = numba.config
    if settings.CPU_NAME not in (None, PROCESSOR) or settings.CPU_FEATURES not in (None, "+avx2"):
        return f"the compiled kernels here are for {PROCESSOR}, and NUMBA_CPU_NAME asks for others"
    from numba.core.codegen import ll  # type: ignore[attr-defined]

    features = ll.get_host_cpu_features()
    lacking = [each for each in NEEDED if not features.get(each)]
    if lacking or ll.get_process_triple() != TRIPLE:
        return f"the compiled kernels here are for {PROCESSOR}, which this processor is not"
    return ""


def why_compiled() -> str:
    """Return why a kernel has to be compiled."""
    return reason() or "no compiled kernel here has these sources and types of arguments"


def before_compiling(kernel: str) -> None:
    """Log, once in a process, why kernels are compiled; raise where that is forbidden."""
    because = why_compiled()
    if os.environ.get(COMPILING) == "never":
        raise KernelNotCompiled(
            f"{kernel} would have to be compiled, for {because}, and {COMPILING}=never forbids it"
        )
    _log(kernel, because)


_logged = threading.Event()


def _log(kernel: str, because: str) -> None:
    if not _logged.is_set():
        _logged.set()
        logger.log(
            logging.WARNING if any(FOLDER.glob("*.kernels")) else logging.INFO,
            "compiling: %s; a first solve takes 15 to 60 s, later ones load what is kept", because,
            extra={"evenkeel": {"event": "compiling", "reason": because, "kernel": kernel}},
        )  # fmt: skip
