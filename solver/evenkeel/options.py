"""The options of the methods, a frozen class for each.

>>> from evenkeel.options import Crushed
>>> Crushed(base="multiround", mended=True).base
'multiround'
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from evenkeel.strategies import options as _declared
from evenkeel.strategies.options import Auto as Auto
from evenkeel.strategies.options import CephCrush as CephCrush
from evenkeel.strategies.options import Crush as Crush
from evenkeel.strategies.options import Crushed as Crushed
from evenkeel.strategies.options import Exact as Exact
from evenkeel.strategies.options import Leaders as Leaders
from evenkeel.strategies.options import MultiRound as MultiRound
from evenkeel.strategies.options import Options as Options
from evenkeel.strategies.options import States as States
from evenkeel.strategies.options import Upmap as Upmap
from evenkeel.strategies.options import Waged as Waged

if _TYPE_CHECKING:
    from evenkeel.strategies.cockroach.settings import Cockroach as Cockroach
    from evenkeel.strategies.longhorn.settings import Longhorn as Longhorn

__all__ = [
    "Auto", "CephCrush", "Cockroach", "Crush", "Crushed", "Exact", "Leaders", "Longhorn",
    "MultiRound", "Options", "States", "Upmap", "Waged",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    return getattr(_declared, name)


def __dir__() -> list[str]:
    return list(__all__)
