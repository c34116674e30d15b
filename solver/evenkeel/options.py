"""Options of the methods: one frozen class for each method.

>>> import evenkeel as ek
>>> ek.options.Crushed(base="multiround", repaired=True).base
'multiround'
"""

from evenkeel.methods.options import Exact, Leaders, Options
from evenkeel.systems.ceph.options import CephCrush, Upmap
from evenkeel.systems.cockroach.allocator.settings import Cockroach
from evenkeel.systems.helix.options import Auto, Crush, Crushed, MultiRound, States, Waged
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn

__all__ = [
    "Auto",
    "CephCrush",
    "Cockroach",
    "Crush",
    "Crushed",
    "Exact",
    "Leaders",
    "Longhorn",
    "MultiRound",
    "Options",
    "States",
    "Upmap",
    "Waged",
]
