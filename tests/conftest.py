"""How the suite runs: the effort of the property tests, and the leg without the compiler.

Property tests draw the same examples every time, so that who comes next sees a failure, too;
``HYPOTHESIS_PROFILE=explore`` draws fresh ones, and more of them.
"""

import contextlib
import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

TESTS = Path(__file__).parent

# The suite spreads over the cores by itself: what it starts compiles without help.
os.environ.setdefault("EVENKEEL_COMPILE_PROCESSES", "1")

# A method that promises to worsen nothing stops the test that sees it break its promise.
os.environ["EVENKEEL_ASSERTIONS"] = "1"

# A shell that starts a job in its background, and nohup, have it ignore these signals.
# What tests start would inherit that, and a shell among it could trap them no more.
for ending in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(ending) is signal.SIG_IGN:
        interrupts = ending == signal.SIGINT
        signal.signal(ending, signal.default_int_handler if interrupts else signal.SIG_DFL)

# Most garbage has no circles, and each file ends with a look for those.
gc.set_threshold(20_000, 20, 20)

# A first call compiles, so that neither a deadline nor "too slow" would say anything.
settings.register_profile(
    "same",
    max_examples=25,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", settings.get_profile("same"), derandomize=False, max_examples=250
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# Hypothesis draws constants of whatever modules a process has loaded: which these are depends on
# the files of tests that it ran before.
providers.is_local_module_file = lambda path: False


def pytest_configure(config: pytest.Config) -> None:
    """Let kernels that run as Python wrap around and divide by zero as they do when compiled."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        for quiet in ("overflow encountered", "divide by zero", "invalid value"):
            config.addinivalue_line("filterwarnings", f"ignore:{quiet}:RuntimeWarning")


LONGEST = (
    "corpus/test_corpus.py",
    "house/test_docstrings.py",
    "planning/test_few_states.py",
    "systems/folders",  # which wait for each other's processes, while kernels are compiled
    "face/test_solve.py",
    "systems/test_broken_dumps.py",
    "face/test_cli.py",
    "build/test_warmup.py",
    "judge/test_verdict.py",
    "core/test_units.py",
    "public/test_cockroach.py",
    "simulate/test_scenarios.py",
    "studies/growth/test_sizing.py",
    "studies/growth/test_shrinking.py",
    "systems/helix/test_even_deal.py",
    "control/test_engine_balance.py",
    "control/test_pipeline_soak.py",
    "levelling/test_worth.py",
    "levelling/test_budgets.py",
    "levelling/test_group_goals.py",
    "view/test_plots.py",
    "studies/test_sweep.py",
    "planning/test_campaigns.py",
    "planning/replay",
    "exact",
    "studies/test_dask.py",
    "planning/test_roles.py",
    "planning/test_plan.py",
    "systems/longhorn/test_cluster_scope.py",
    "systems/ceph/test_golden.py",
    "site/test_pages.py",
    "control/test_pipeline.py",
    "simulate/test_play.py",
    "house/test_typing.py",
    "build/test_shipped.py",
)
"""Files and folders of tests that take longest, from nothing."""

KINDS = {"small": ("mark.small",), "long": ("mark.long", "mostly_long")}
"""Words of which a file with tests of a kind has one."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test of the kind that is asked for: to import all takes 20 s."""
    kind = re.fullmatch(r"(\w+)( and not \w+)*", config.option.markexpr)
    if kind is None or kind[1] not in KINDS or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    return None if any(word in text for word in KINDS[kind[1]]) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest where several processes share the files, and end together."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: place_of(item.path))


@cache
def place_of(file: Path) -> int:
    """Return where a file is among those that take longest, or behind them."""
    name = file.relative_to(TESTS).as_posix()
    return next((i for i, one in enumerate(LONGEST) if name.startswith(one)), len(LONGEST))


def is_whole(config: pytest.Config) -> bool:
    """Whether all files of tests are looked at."""
    return [Path(one).resolve() for one in config.args] == [TESTS]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have a process of its own compile kernels: of two that need one, the second has to wait."""
    config = session.config
    shares_out = getattr(config.option, "numprocesses", None)
    if shares_out and is_whole(config) and config.option.markexpr != "small":
        helper = subprocess.Popen(
            [sys.executable, "-m", "evenkeel_kernels.build.compile_ahead"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        config.add_cleanup(helper.communicate)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each of several processes begin with other files, and find the rest compiled.

    Each of them imports all files; pytest takes ten seconds to compile these with their assertions.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    if worker == 0 or not is_whole(session.config):
        return
    files = sorted(TESTS.rglob("test_*.py"))
    files = [file for file in files if not pytest_ignore_collect(file, session.config)]
    first = len(files) * worker // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for file in files[first:] + files[:first]:
        name = ".".join(file.relative_to(TESTS.parent).with_suffix("").parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):  # reported as it is collected
            import_module(name)


@pytest.fixture(scope="module", autouse=True)
def _what_stays_is_looked_through_once() -> Iterator[None]:
    """Spare the garbage collector what a file leaves behind, of which numba keeps a great deal.

    A collection took a second or two in a process that had compiled most kernels.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, which processes that share the suite end by."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)
