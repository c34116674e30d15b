"""Scratch that decisions about the replicas of one range write to, made once for many of them."""

from typing import NamedTuple

import numpy as np

from evenkeel_kernels.build.jit import by_reference
from evenkeel_kernels.cockroach.constraints import Analysis
from evenkeel_kernels.cockroach.equivalence_classes import ClassRoom, room_for_classes
from evenkeel_kernels.cockroach.replicas.remove import RemoveRoom, room_to_remove
from evenkeel_kernels.cockroach.tables import Flags, Floats, Localities, Longs, Members


@by_reference
class RebalanceRoom(NamedTuple):
    """Scratch for one decision: R replicas of a kind."""

    target: Longs  # (R, S) stores that are better than each replica
    kept: Longs  # (R,) how many these are
    best: Longs  # (S,) those of them that tie at the top
    # (R,) the store of each class to which load goes, where load is levelled; -1 for none
    lightest: Longs
    io_limit: Floats  # (R,) from which a disk's bandwidth counts as overloaded in each class
    barred: Flags  # (S,) stores that are left out, since the cluster's own rules refused them


def room_to_rebalance(stores: int, width: int) -> RebalanceRoom:
    """Make room for decisions about so many stores and ranges of so many replicas."""
    return RebalanceRoom(
        np.zeros((width, stores), np.int64),
        np.zeros(width, np.int64),
        np.zeros(stores, np.int64),
        np.zeros(width, np.int64),
        np.zeros(width),
        np.zeros(stores, np.bool_),
    )


@by_reference
class Rooms(NamedTuple):
    """All that decisions about one range write to besides ``Members``."""

    analysis: Analysis
    classes: ClassRoom
    remove: RemoveRoom
    rebalance: RebalanceRoom


def make_rooms(localities: Localities, analysis: Analysis, width: int) -> Rooms:
    """Make room for decisions about ranges of so many replicas, spare ones included."""
    stores = len(localities.host)
    return Rooms(
        analysis,
        room_for_classes(localities, width),
        room_to_remove(width),
        room_to_rebalance(stores, width),
    )


def make_members(width: int) -> Members:
    """Make room for the replicas of one range."""
    return Members(
        np.zeros(width, np.int64),
        np.zeros(width, np.int64),
        np.zeros(width, np.bool_),
        np.zeros(3, np.int64),
    )
