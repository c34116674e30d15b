"""Make a platform wheel of one that works everywhere and of files of compiled kernels.

``platform_wheel.py WHEEL TAG KERNELS... FOLDER`` writes into FOLDER the same bytes whenever it is
given the same. TAG is such as ``cp311-cp311-manylinux_2_27_x86_64``.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

pure, tag, *kernels, folder = sys.argv[1:]
with zipfile.ZipFile(pure) as wheel:
    files = {name: wheel.read(name) for name in wheel.namelist()}
(record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
about = record.replace("RECORD", "WHEEL")
said = files[about].decode().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
files[about] = re.sub("(?m)^Tag: .*$", f"Tag: {tag}", said).encode()
for path in map(Path, kernels):
    files[f"evenkeel_kernels/shipped/{path.name}"] = path.read_bytes()
lines = []
for name, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    lines.append(f"{name},,\n" if name == record else f"{name},sha256={digest},{len(content)}\n")
files[record] = "".join(lines).encode()
made = Path(folder, Path(pure).name.replace("py3-none-any", tag))
with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
    for name, content in files.items():
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
        wheel.writestr(entry, content)
print(f"{made}: {made.stat().st_size:,} bytes")
