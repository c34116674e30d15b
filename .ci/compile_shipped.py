"""Compile all kernels for a wheel, in an environment where the wheel without them is installed.

``compile_shipped.py [FOLDER]`` writes them into FOLDER, or else into the installation itself, with
the processor named in the environment as `.ci/wheels` does. One kernel is compiled after the other
in the order of the record, so that two builds give the same bytes: numba numbers functions as it
compiles them, and the numbers are in the code.
"""

import sys
import threading
from pathlib import Path

from evenkeel_kernels.build import shipped, signatures
from evenkeel_kernels.build.compile_ahead import compile_recorded
from evenkeel_kernels.build.inventory import _kernels
from evenkeel_kernels.build.jit import backend

if backend._target() != (shipped.TRIPLE, shipped.PROCESSOR, "+avx2"):
    sys.exit(f"NUMBA_CPU_NAME={shipped.PROCESSOR} NUMBA_CPU_FEATURES=+avx2 are to be given")
for work in signatures.recorded().work:
    compile_recorded(work, threading.Event())
entries = [entry for kernel in _kernels() for entry in kernel._cache.packed()]
for *_, code in entries:
    # numba names an array expression by an address of this process
    if b"__numba_array_expr" in code:
        sys.exit("an array expression is in a kernel: no two builds would give the same bytes")
    # such as that of a file of numba's whose errors a kernel may raise
    if sys.prefix.encode() in code or b"site-packages" in code:
        sys.exit(
            f"a path is in a kernel: {code[max(0, code.find(b'site-packages') - 300) :][:400]!r}"
        )
folder = Path(sys.argv[1]) if sys.argv[1:] else shipped.FOLDER
folder.mkdir(exist_ok=True)
place = folder / shipped.NAME
shipped.write(place, entries)
print(f"{place}: {len(entries)} forms of kernels, {place.stat().st_size:,} bytes")
