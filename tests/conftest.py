"""How the suite runs: the effort of the property tests, and the leg without the compiler.

Property tests draw the same examples every time, so that who comes next sees a failure, too;
``HYPOTHESIS_PROFILE=explore`` draws fresh ones, and more of them.
"""

import contextlib
import gc
import os
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The suite spreads over the cores by itself: what it starts compiles without help.
os.environ.setdefault("EVENKEEL_COMPILE_PROCESSES", "1")

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


def pytest_configure(config: pytest.Config) -> None:
    """Let kernels that run as Python wrap around and divide by zero as they do when compiled."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        for quiet in ("overflow encountered", "divide by zero", "invalid value"):
            config.addinivalue_line("filterwarnings", f"ignore:{quiet}:RuntimeWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each of several processes begin with other files, and find the rest compiled.

    Each of them imports all files; pytest takes ten seconds to compile these with their assertions.
    """
    tests = Path(__file__).parent
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    if worker == 0 or [Path(one).resolve() for one in session.config.args] != [tests]:
        return
    files = sorted(tests.rglob("test_*.py"))
    first = len(files) * worker // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for file in files[first:] + files[:first]:
        name = ".".join(file.relative_to(tests.parent).with_suffix("").parts)
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
    """Let Ctrl-C raise KeyboardInterrupt, as it does not where a shell ran us in its background."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)
