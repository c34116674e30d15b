"""The fixture that opens a public case."""

from collections.abc import Callable

import pytest

from tests.public.case import Case


@pytest.fixture
def public(tmp_path, capsys) -> Callable[[str], Case]:
    """Open a case by its path below ``tests/data/public``, such as ``"kafka/one-lost"``."""
    return lambda name: Case(name, tmp_path, capsys)
