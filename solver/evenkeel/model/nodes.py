"""Nodes: capacities, permissions and tags."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.names import Names


@dataclass(frozen=True, eq=False)
class Nodes:
    """The things that hold replicas. N nodes, D dimensions; every array is read-only.

    A node's state is spelled by its flags: *up* (all of alive, accepts, keeps, leads) · *cordoned*
    or *suspect* (alive, keeps, no accepts) · *draining* (keeps, leads nothing) · *evacuating*
    (alive, keeps nothing) · *down in its delay window* (not alive, keeps) · *dead* (neither).

    Parameters
    ----------
    names : Names
        N names.
    capacity : ndarray of float64, shape (N, D)
        Hard limit in each dimension's unit; 0 is allowed, ``inf`` for none.
    watermark : ndarray of float64, shape (N, D)
        Soft limit: load above it costs; ``inf`` for none.
    alive : ndarray of bool, shape (N,)
        Serves now.
    accepts : ndarray of bool, shape (N,)
        May be given replicas.
    keeps : ndarray of bool, shape (N,)
        May keep the replicas it has.
    leads : ndarray of bool, shape (N,)
        May hold leaders.
    gone : ndarray of bool, shape (N,)
        Will not come back.
    since : ndarray of float64, shape (N,)
        Time of the last change of state, in seconds; NaN if unknown.
    weight, lead_weight : ndarray of float64, shape (N,)
        Share of replicas and of leaders that it should carry; a node with a weight of 0 may not
        receive, one with a lead weight of 0 may not lead.
    max_replicas : ndarray of int32, shape (N,)
        Most replicas; -1 for no limit.
    stands_for : ndarray of int32, shape (N,)
        The node whose place this one takes (swap in place); -1 for none.
    tags : mapping of str to ndarray of bool, shape (N,)
        Nodes that carry each tag.
    attributes : mapping of str to tuple of (ndarray of int32, shape (N,), tuple of str)
        Further key=value labels: a code per node (-1 none), and what the codes mean.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> nodes = c.down("n1").nodes
    >>> nodes.names[1], nodes.alive.tolist(), nodes.may_receive.tolist(), nodes.capacity.shape
    ('n1', [True, False], [True, False], (2, 1))
    """

    names: Names
    capacity: NDArray[np.float64]
    watermark: NDArray[np.float64]
    alive: NDArray[np.bool_]
    accepts: NDArray[np.bool_]
    keeps: NDArray[np.bool_]
    leads: NDArray[np.bool_]
    gone: NDArray[np.bool_]
    since: NDArray[np.float64]
    weight: NDArray[np.float64]
    lead_weight: NDArray[np.float64]
    max_replicas: NDArray[np.int32]
    stands_for: NDArray[np.int32]
    tags: Mapping[str, NDArray[np.bool_]]
    attributes: Mapping[str, tuple[NDArray[np.int32], tuple[str, ...]]]

    def __len__(self) -> int:
        return len(self.capacity)

    @property
    def may_receive(self) -> NDArray[np.bool_]:
        """Nodes a replica may be moved to: alive, accepting, keeping, with a weight. (N,) bool."""
        return self.alive & self.accepts & self.keeps & (self.weight > 0.0) & ~self.gone

    @property
    def may_hold(self) -> NDArray[np.bool_]:
        """Nodes a replica may stay on: those that keep, dead ones included while they do. (N,)."""
        return self.keeps & ~self.gone

    @property
    def serves(self) -> NDArray[np.bool_]:
        """Nodes whose replicas live: alive and not gone. (N,) bool."""
        return self.alive & ~self.gone

    @property
    def carries(self) -> NDArray[np.bool_]:
        """Nodes whose capacity binds: alive, or keeping what they have, and not gone. (N,) bool."""
        return (self.alive | self.keeps) & ~self.gone

    @property
    def may_lead(self) -> NDArray[np.bool_]:
        """Nodes a leader may be on: alive, leading, with a lead weight. (N,) bool."""
        return self.alive & self.leads & (self.lead_weight > 0.0) & ~self.gone
