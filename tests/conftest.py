"""How the suite runs: the effort of the property tests, and the leg without the compiler."""

import os

import pytest
from hypothesis import HealthCheck, settings

# A first call compiles, so that neither a deadline nor "too slow" would say anything.
settings.register_profile(
    "dev", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("thorough", settings.get_profile("dev"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """Let kernels that run as Python wrap around and divide by zero as they do when compiled."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        for quiet in ("overflow encountered", "divide by zero", "invalid value"):
            config.addinivalue_line("filterwarnings", f"ignore:{quiet}:RuntimeWarning")
