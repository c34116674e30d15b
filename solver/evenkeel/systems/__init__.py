"""The systems: each folder reads, decides as, writes and carries out plans of one of them."""

from evenkeel.methods.registry import register
from evenkeel.systems import ceph, cockroach, helix, longhorn


def register_methods() -> None:
    """Enter the methods of all systems into the table of methods."""
    for system in (helix, ceph, cockroach, longhorn):
        register(system.METHODS)
