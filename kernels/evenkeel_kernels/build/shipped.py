"""Read and write the compiled kernels that a wheel contains.

There is one file for a version of Python, one of numba and a kind of processor. It begins with a
table of keys; a key is made of the kernel, all that it depends on, and the types of its arguments,
so that an edited kernel is not found.
"""

import functools
import hashlib
import json
import logging
import lzma
import os
import struct
import sys
import threading
from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numba

# the kind of processor that kernels are compiled for: those made since about 2015
PROCESSOR = "x86-64-v3"

TRIPLE = "x86_64-unknown-linux-gnu"

# features that such a processor has
NEEDED = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "xsave")

COMPILING = "EVENKEEL_COMPILING"  # the variable that forbids to compile a kernel if it is ``never``

FOLDER = Path(__file__).parent.parent / "shipped"
PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
NAME = f"{PYTHON}-numba{numba.__version__}-{PROCESSOR}.kernels"
SIZE = struct.Struct("<Q")

logger = logging.getLogger("evenkeel.kernels")


class KernelNotCompiled(RuntimeError):
    """A kernel would have to be compiled, which the environment forbids."""


def half_key(of: object) -> str:
    """Digest one half of a key: the kernel with its stamp, or the types of its arguments."""
    return hashlib.sha256(repr(of).encode()).hexdigest()[:32]


class Entry(NamedTuple):
    """A form of a kernel: both halves of its key in hexadecimal, its folder, and its code."""

    kernel: str
    form: str
    folder: str
    code: bytes


def write(place: Path, entries: Iterable[Entry]) -> None:
    """Write a file of kernels: a table as JSON after its length, and the code of each folder."""
    # kernels of a folder share parts and are compressed together, to less than half
    table: dict[str, dict[str, tuple[str, int, int]]] = {}
    folders: dict[str, bytes] = {}
    for kernel, form, folder, code in sorted(entries):
        before = folders.get(folder, b"")
        table.setdefault(kernel, {})[form] = folder, len(before), len(code)
        folders[folder] = before + code
    packed = {folder: lzma.compress(code) for folder, code in folders.items()}
    sizes = {folder: len(code) for folder, code in packed.items()}
    head = json.dumps([table, sizes]).encode()
    place.write_bytes(SIZE.pack(len(head)) + head + b"".join(packed.values()))


@functools.cache
def _file() -> tuple[Mapping[str, Mapping[str, tuple[str, int, int]]], Mapping[str, bytes]]:
    """Read where each kernel lies, and the folders as they are packed; nothing if none serve."""
    if reason():
        return {}, {}
    try:
        data = (FOLDER / NAME).read_bytes()
        end = SIZE.size + SIZE.unpack_from(data)[0]
        table, sizes = json.loads(data[SIZE.size : end])
        ends = list(accumulate(sizes.values(), initial=end))
        return table, {
            folder: data[slice(*at)] for folder, at in zip(sizes, pairwise(ends), strict=True)
        }
    except (OSError, ValueError, struct.error):  # a file that is damaged is as none
        return {}, {}


@functools.cache
def _unpacked(folder: str) -> bytes:
    return lzma.decompress(_file()[1][folder])


def holds(kernel: str) -> bool:
    """Whether any form of a kernel is shipped and serves here."""
    return kernel in _file()[0]


def read(kernel: str, form: str) -> bytes | None:
    """Return a packed kernel; None where none is shipped that serves here."""
    found = _file()[0].get(kernel, {}).get(form)
    if found is None:
        return None
    folder, begin, length = found
    return _unpacked(folder)[begin : begin + length]


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


def before_compiling(kernel: str, takes: str) -> None:
    """Log, once in a process, why kernels are compiled; raise where that is forbidden."""
    because = why_compiled()
    if os.environ.get(COMPILING) == "never":
        raise KernelNotCompiled(
            f"{kernel} would have to be compiled, for {because}, and {COMPILING}=never forbids it"
        )
    _log(kernel, because, takes)


_logged = threading.Event()


def _log(kernel: str, because: str, takes: str) -> None:
    if not _logged.is_set():
        _logged.set()
        logger.log(
            logging.WARNING if any(FOLDER.glob("*.kernels")) else logging.INFO,
            "compiling: %s; a first solve takes %s, later ones load what is kept", because, takes,
            extra={"evenkeel": {"event": "compiling", "reason": because, "kernel": kernel}},
        )  # fmt: skip
