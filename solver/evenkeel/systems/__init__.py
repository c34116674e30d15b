"""Support for systems: read their clusters, emulate their allocators, write and run plans."""

from evenkeel.methods.registry import register
from evenkeel.systems import ceph, cockroach, helix, longhorn


def register_methods() -> None:
    """Enter the methods of all systems into the table of methods."""
    for system in (helix, ceph, cockroach, longhorn):
        register(system.METHODS)
