"""Other processes compile along what the record names, and end when nobody waits any more."""

import io
import os
import sys
import threading

import pytest

from evenkeel.methods.registry import METHODS
from evenkeel_kernels.build import compile_ahead, signatures
from evenkeel_kernels.build.inventory import inventory
from evenkeel_kernels.build.jit import backend
from tests.build.recorded_kernels import loaded, text_of
from tests.support import places
from tests.support.processes import fresh

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1" or not backend.SHARED,
    reason="nothing is compiled, or processes share no locks",
)

HELPED = """
import threading
from evenkeel_kernels.build import compile_ahead, signatures
from evenkeel_kernels.build.jit import backend
record = signatures.recorded()
known = ["core.problem.index", "core.problem.load_of"]
spelt = {name: record.signatures[name] for name in known}
spelt["core.problem.leads_now"] = [["i8", "f8:7"]]
signatures.recorded = lambda: signatures.Record(
    record.tuples, spelt, {"toy": ["core.gone.index", "core.problem.leads_now", *known]}
)
stopped = threading.Event()
%s
compile_ahead.compile_recorded("toy", stopped)
kept = [name for name in known if backend.is_kept(signatures.called(name))]
print(len(kept))
"""


def kept_after(folder, line=""):
    """Count what a process with nothing compiled keeps of two kernels in a record with errors."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    run = fresh.run(HELPED % line, places.ROOT, [places.ROOT / "kernels"], environment)
    return int(run.stdout)


def test_what_is_recorded_is_compiled_and_what_is_not_so_any_more_is_left(tmp_path):
    assert kept_after(tmp_path) == 2


def test_nothing_is_begun_once_nobody_waits(tmp_path):
    assert kept_after(tmp_path, "stopped.set()") == 0


def test_what_another_process_compiles_is_left_to_it(tmp_path):
    claim = "backend.claimed = lambda kernel: False"
    assert kept_after(tmp_path, claim) == 0


@pytest.mark.parametrize("asked", [["any"], []])
def test_a_helper_ends_when_its_pipe_is_closed(monkeypatch, asked):
    seen = []

    def compile_until_stopped(work: str, stopped: threading.Event) -> None:
        seen.append((work, stopped.wait(60.0)))

    monkeypatch.setattr(compile_ahead, "compile_recorded", compile_until_stopped)
    monkeypatch.setattr(sys, "argv", ["compile_ahead", *asked])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    compile_ahead.main()
    assert seen == [(work, True) for work in asked or signatures.recorded().work]


class Helper:
    """Stands for a process that was started."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def communicate(self) -> None:
        self.ended.set()


def test_others_help_from_the_third_kernel_on_and_once(monkeypatch):
    told, helpers, asked = [], [], []

    class Listening:
        def __init__(self, begun):
            told.append(begun)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    def started(work):
        asked.append(work)
        helpers.append(Helper())
        return helpers

    monkeypatch.setattr(compile_ahead, "on_compile", Listening)
    monkeypatch.setattr(compile_ahead, "_started", started)
    with compile_ahead.compiled_ahead("any"):
        for kernel in ("one", "two"):
            told[0](kernel)
        assert not asked
        for kernel in ("three", "four"):
            told[0](kernel)
        assert asked == ["any"]
        assert not helpers[0].ended.is_set()
    assert helpers[0].ended.wait(60.0)


@pytest.mark.parametrize(("variable", "helpers"), [("1", 0), ("3", 2), ("0", 0)])
def test_as_many_processes_as_asked_for(monkeypatch, variable, helpers):
    monkeypatch.setenv(compile_ahead.PROCESSES, variable)
    monkeypatch.setattr(compile_ahead.subprocess, "Popen", lambda *_, **__: Helper())
    assert len(list(compile_ahead._started("any"))) == helpers
    assert not list(compile_ahead._started("no such work"))


def test_every_method_has_its_work_in_the_record():
    assert {each.warmup for each in METHODS.values()} - {""} == set(signatures.recorded().work)


def test_recorded_signatures_fit_the_kernels():
    """`python -m tests.build.recorded_kernels` brings the record up to date."""
    record = signatures.recorded()
    for name, fields in record.tuples.items():
        assert len(fields) == len(signatures.called(name)._fields), name
    for name, forms in record.signatures.items():
        arguments = signatures.called(name).py_func.__code__.co_argcount
        assert {len(form) for form in forms} == {arguments}, name
        for form in forms:
            types = [signatures.type_of(each, record.tuples) for each in form]
            assert [text_of(each, {}) for each in types] == form
    for names in record.work.values():
        assert set(names) <= set(record.signatures)


@pytest.mark.long
def test_what_a_first_solve_loads_is_recorded():
    missing = set(loaded("any", "first")) - set(signatures.recorded().work["any"])
    assert not missing
    assert inventory().kernels >= len(signatures.recorded().signatures)
