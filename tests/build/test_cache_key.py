"""The kernel cache: what is loaded again, what is compiled anew, and what happens without one."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numba.core.errors import TypingError

from evenkeel_kernels.build import numba_internals
from evenkeel_kernels.build.jit import no_alloc
from tests.support import places
from tests.support.processes import fresh

KERNELS = places.ROOT / "kernels"

PACKAGE = {
    "__init__": "SCALE = 1\n",
    "inner": """
        from evenkeel_kernels.build.jit import jit
        @jit
        def inner(x):
            return x + 10
        """,
    "middle": """
        from evenkeel_kernels.build.jit import jit
        from . import (
            inner as deepest,  # under another name
        )
        add = deepest.inner
        @jit
        def middle(x):
            return 2 * add(x)
        """,
    "constants": "STEP = 3\n",
    "outer": """
        from evenkeel_kernels.build.jit import jit
        from toys.constants import STEP
        from toys.middle import middle
        @jit
        def outer(x):
            return middle(x) + STEP
        """,
    "apart": """
        from evenkeel_kernels.build.jit import jit
        @jit
        def apart(x):
            return 5 * x
        """,
}
CALL = """
import warnings
warnings.simplefilter("always")
from toys.outer import outer
from toys.apart import apart
print(outer(1), apart(1))
for kernel in (outer, apart):
    hits = getattr(kernel, "stats", None)
    print("compiled" if hits is None or not hits.cache_hits else "loaded")
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A package of kernels that call each other across files, called once."""
    folder = tmp_path_factory.mktemp("warm") / "toys"
    folder.mkdir()
    for name, source in PACKAGE.items():
        lines = [line.removeprefix(" " * 8) for line in source.splitlines()]
        (folder / f"{name}.py").write_text("\n".join(lines) + "\n")
    assert call(folder) == ["25", "5", "compiled", "compiled"]
    return folder


@pytest.fixture
def toys(warm, tmp_path):
    """A copy of that package with its cache."""
    return shutil.copytree(warm, tmp_path / "toys")


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh process that sees the packages beside ``folder``."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    clean |= {"PYTHONDONTWRITEBYTECODE": "1"} | environment
    return fresh.run(code, folder.parent, [KERNELS], clean)


def call(folder: Path, **environment: str) -> list[str]:
    """Answers of the toy kernels, then how ``outer`` and ``apart`` came to be."""
    return run(CALL, folder, **environment).stdout.split()


def edit(folder: Path, module: str, old: str, new: str) -> None:
    """Replace text in a toy module."""
    file = folder / f"{module}.py"
    source = file.read_text()
    assert old in source
    file.write_text(source.replace(old, new))


def test_a_kernel_is_loaded_by_the_next_process(warm):
    assert call(warm) == ["25", "5", "loaded", "loaded"]


def test_time_stamps_and_place_do_not_matter(toys):
    for file in toys.glob("*.py"):
        os.utime(file, (1, 1))
    assert call(toys) == ["25", "5", "loaded", "loaded"]


@pytest.mark.parametrize(
    ("module", "old", "new", "answer"),
    [
        ("outer", "+ STEP", "- STEP", "19"),
        ("middle", "2 *", "3 *", "36"),
        ("inner", "+ 10", "+ 1000", "2005"),
        ("constants", "3", "4", "26"),
    ],
)
def test_a_kernel_is_rebuilt_when_what_it_is_made_of_changes(toys, module, old, new, answer):
    edit(toys, module, old, new)
    assert call(toys) == [answer, "5", "compiled", "loaded"]
    assert call(toys) == [answer, "5", "loaded", "loaded"]


UNPACKED = """
from evenkeel_kernels.build import numba_internals
sizes, parse = [], numba_internals.ll.parse_bitcode

def counted(code):
    sizes.append(len(code))
    return parse(code)

numba_internals.ll.parse_bitcode = counted
from toys.outer import outer
print(outer(1), sum(size > len(numba_internals._nothing()) for size in sizes))
"""


def test_what_others_copy_of_a_loaded_kernel_is_unpacked_for_who_is_compiled(toys):
    assert run(UNPACKED, toys).stdout.split() == ["25", "0"]
    edit(toys, "outer", "+ STEP", "- STEP")
    assert run(UNPACKED, toys).stdout.split() == ["19", "1"]


def test_numba_alone_would_answer_with_the_old_helper(toys):
    # Should this ever fail, numba has learnt it and cache_stamp can go.
    for file in toys.glob("*.py"):
        source = file.read_text().replace("@jit", "@numba.njit(cache=True)")
        file.write_text(
            source.replace("from evenkeel_kernels.build.jit import jit", "import numba")
        )
    call(toys)
    edit(toys, "inner", "+ 10", "+ 1000")
    assert call(toys)[0] == "25"


def test_bounds_checks_are_kept_apart(toys):
    (toys / "reads.py").write_text(
        "from evenkeel_kernels.build.jit import jit\n\n@jit\ndef third(a):\n    return a[2]\n"
    )
    code = "import numpy as np; from toys.reads import third\n"
    run(code + "third(np.zeros(3))", toys)
    with pytest.raises(subprocess.CalledProcessError) as failure:
        run(code + "third(np.zeros(2))", toys, NUMBA_BOUNDSCHECK="1")
    assert "IndexError" in failure.value.stderr


def test_without_jit_the_function_is_left_alone(toys):
    code = "from toys.outer import outer; print(outer(1), type(outer).__name__)"
    assert run(code, toys, NUMBA_DISABLE_JIT="1").stdout.split() == ["25", "function"]


def test_a_damaged_cache_is_compiled_anew(toys):
    for file in (toys / "__pycache__").glob("*.nb?"):
        file.write_bytes(file.read_bytes()[:20])
    assert call(toys) == ["25", "5", "compiled", "compiled"]
    assert call(toys) == ["25", "5", "loaded", "loaded"]


def test_without_a_writable_folder_one_warning_is_given(toys):
    # A file in the place of each folder: read-only folders do not stop the superuser.
    shutil.rmtree(toys / "__pycache__")
    (toys / "__pycache__").write_text("")
    nowhere = {"HOME": str(toys / "__init__.py"), "XDG_CACHE_HOME": str(toys / "__init__.py")}
    done = run(CALL, toys, **nowhere)
    assert done.stdout.split() == ["25", "5", "compiled", "compiled"]
    assert done.stderr.count("KernelCacheWarning") == 1
    assert "NUMBA_CACHE_DIR names a folder" in done.stderr


READ_ONLY = """
import os
import numba.core.caching as caching

def refuse(path):
    if str(path).startswith(FOLDER):
        raise PermissionError(13, "read-only", str(path))

made, opened, tried = os.makedirs, caching.IndexDataCacheFile._open_for_write, caching.tempfile
class Tempfile:
    def TemporaryFile(dir):
        refuse(dir)
        return tried.TemporaryFile(dir=dir)
caching.tempfile = Tempfile
caching.os.makedirs = lambda path, **more: refuse(path) or made(path, **more)
caching.IndexDataCacheFile._open_for_write = lambda self, path: refuse(path) or opened(self, path)
"""


@pytest.mark.parametrize("place", ["named", "beside the sources"])
def test_a_folder_that_can_be_read_only_is_used(toys, tmp_path, place):
    """What it lacks is compiled, and kept where there is another folder."""
    here, home = toys / "__pycache__", tmp_path / "home"
    named = {} if place == "beside the sources" else {"NUMBA_CACHE_DIR": str(tmp_path / "named")}
    nowhere = {"HOME": str(home), "XDG_CACHE_HOME": str(home)} | named
    if named:
        shutil.rmtree(here)
        here.write_text("")
        assert call(toys, **nowhere) == ["25", "5", "compiled", "compiled"]
    read_only = f"FOLDER = {named.get('NUMBA_CACHE_DIR', str(here))!r}" + READ_ONLY + CALL
    assert run(read_only, toys, **nowhere).stdout.split() == ["25", "5", "loaded", "loaded"]
    edit(toys, "outer", "+ STEP", "- STEP")
    done = run(read_only, toys, **nowhere)
    assert done.stdout.split() == ["19", "5", "compiled", "loaded"]
    assert "KernelCacheWarning" not in done.stderr
    assert run(read_only, toys, **nowhere).stdout.split() == ["19", "5", "loaded", "loaded"]


def test_what_a_read_only_folder_lacks_is_compiled_in_each_process(toys):
    here = toys / "__pycache__"
    read_only = f"FOLDER = {str(here)!r}" + READ_ONLY + CALL
    nowhere = {"HOME": str(toys / "__init__.py"), "XDG_CACHE_HOME": str(toys / "__init__.py")}
    edit(toys, "outer", "+ STEP", "- STEP")
    for _ in range(2):
        done = run(read_only, toys, **nowhere)
        assert done.stdout.split() == ["19", "5", "compiled", "loaded"]
        assert done.stderr.count("KernelCacheWarning") == 1


def test_a_folder_that_vanishes_does_not_stop_the_caller(toys, tmp_path):
    cache = tmp_path / "cache"
    code = (
        "import shutil, warnings; warnings.simplefilter('always')\n"
        "from toys.outer import outer; from toys.apart import apart\n"
        f"shutil.rmtree({str(cache)!r}); open({str(cache)!r}, 'w').close()\n"
        "print(outer(1), apart(1))"
    )
    done = run(code, toys, NUMBA_CACHE_DIR=str(cache))
    assert done.stdout.split() == ["25", "5"]
    assert done.stderr.count("KernelCacheWarning") == 1


FULL = """
import resource
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, hard))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit to the size of a file")
@pytest.mark.parametrize("most", [0, 1000], ids=["nothing", "an index without its kernel"])
def test_a_disk_that_is_full_is_named_once_and_used_once_there_is_room(toys, most):
    shutil.rmtree(toys / "__pycache__")
    done = run(FULL.format(most=most) + CALL, toys)
    assert done.stdout.split() == ["25", "5", "compiled", "compiled"]
    assert done.stderr.count("KernelCacheWarning") == 1
    assert "cannot be kept ([Errno 27] File too large)" in done.stderr
    assert not list((toys / "__pycache__").glob("*.nbc*"))
    assert call(toys) == ["25", "5", "compiled", "compiled"]
    assert call(toys) == ["25", "5", "loaded", "loaded"]


def test_a_module_run_as_a_script_leaves_its_kernels_usable(toys):
    # The cached kernel holds a reference to the module it was compiled in.
    run("import sys; sys.path.insert(0, 'toys'); import apart; apart.apart(1)", toys)
    assert call(toys)[:2] == ["25", "5"]


def test_a_lean_kernel_creates_no_array():
    @no_alloc
    def total(count):
        return np.zeros(count).sum()

    with pytest.raises(TypingError):
        total(3)


def test_kernels_of_a_module_share_a_digest_until_it_is_loaded_anew(monkeypatch):
    asked = []
    monkeypatch.setattr(numba_internals, "imports_digest", lambda module: bytes([len(asked)]))
    loaded = ModuleType("toys")
    monkeypatch.setitem(sys.modules, "toys", loaded)
    for expected in (0, 1):
        loaded.__spec__ = ModuleSpec("toys", None)
        assert numba_internals._imported("toys") == bytes([expected])
        asked.append("toys")
        assert numba_internals._imported("toys") == bytes([expected])
    assert numba_internals._imported("nowhere") == numba_internals._imported("nowhere")
