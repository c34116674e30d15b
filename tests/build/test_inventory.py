"""The kernels there are, and word of those being compiled."""

import os
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numba
import pytest
from numba.core import event

from evenkeel_kernels.build.inventory import on_compile, report_preparing
from tests.support import places
from tests.support.processes import fresh

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="there is nothing to compile"
)

FIRST = [f"core.jenkins_hash.{name}" for name in ("hash3_lanes", "hash3", "mix")]

CODE = textwrap.dedent(
    """
    import os, time
    import numpy as np
    from evenkeel_kernels.core import jenkins_hash as hashing
    from evenkeel_kernels.build.inventory import inventory, on_compile

    words, hashed = np.arange(2, dtype=np.uint32), np.empty(3, np.uint32)
    begun, done = [], []
    before = inventory()
    with on_compile(begun.append, done.append):
        started = time.perf_counter()
        hashing.hash3_lanes(words, np.uint32(2), np.uint32(3), 2, hashed)
        passed = time.perf_counter() - started
    with on_compile(begun.append, done.append):
        hashing.hash3_lanes(words, np.uint32(3), np.uint32(4), 2, hashed)
    after = inventory()
    print(before.kept, after.kept, begun, [one.kernel for one in done])
    assert sum(one.seconds for one in done) <= passed
    assert after.folder.startswith(os.environ["NUMBA_CACHE_DIR"])
    """
)


BESIDE = textwrap.dedent(
    """
    import os
    from pathlib import Path
    import numba
    import numpy as np
    from evenkeel_kernels.core import jenkins_hash as hashing
    from evenkeel_kernels.build.inventory import backend, inventory

    one = Path(os.environ["NUMBA_CACHE_DIR"])
    places = [one / "core_1", one / "search_2", Path.home() / "kept" / "core_3"]
    backend.folder = lambda kernel: str(places[id(kernel) // 16 % 3])
    print(sorted(inventory().folder.split(", ")))
    """
)


def test_each_place_is_named_where_kernels_are_in_several(tmp_path):
    environment = {
        **os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "HOME": str(tmp_path / "home"),
    }  # fmt: skip
    done = fresh.run(BESIDE, tmp_path, [places.ROOT / "kernels"], environment)
    assert done.stdout == f"{[str(tmp_path / 'cache'), str(tmp_path / 'home' / 'kept')]}\n"


def run(folder):
    """Compile one kernel in a process of its own; return what it said."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = fresh.run(CODE, folder, [places.ROOT / "kernels"], environment)
    return done.stdout.split(" ", 2)


def test_what_is_compiled_is_told_kept_and_not_compiled_again(tmp_path):
    before, after, told = run(tmp_path)
    assert int(before) == 0
    assert int(after) > 0
    # a kernel compiles what it calls on the way, and nothing that is not ours is told of
    assert told == f"{FIRST} {FIRST[::-1]}\n"
    before, again, told = run(tmp_path)
    assert before == again == after
    assert told == "[] []\n"


def test_what_another_thread_has_begun_before_is_not_told_of_and_harms_nothing():
    begun, listening = threading.Event(), threading.Event()

    class Waits(event.Listener):
        def on_start(self, told):
            begun.set()
            listening.wait(30.0)

        def on_end(self, told):
            pass

    with ThreadPoolExecutor(1) as pool, event.install_listener("numba:compile", Waits()):
        one = pool.submit(numba.njit(lambda x: x + 1), 1)
        assert begun.wait(30.0)
        with on_compile(done=print):
            listening.set()
            assert one.result() == 2


def test_threads_that_compile_at_once_are_counted_once_and_strangers_not_at_all():
    together = threading.Barrier(2)

    def compiled() -> None:
        together.wait()
        numba.njit(lambda x: x + 1)(1)

    spent: list[float] = []
    with ThreadPoolExecutor(2) as pool, report_preparing(spent.append):
        for one in [pool.submit(compiled) for _ in range(2)]:
            one.result()
        assert spent == []
        for one in [pool.submit(copy_context().run, compiled) for _ in range(2)]:
            one.result()
    assert spent and min(spent) > 0.0
