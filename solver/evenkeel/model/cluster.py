"""The cluster: one validated snapshot, the input of every method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.changes import Changeable, parts_of
from evenkeel.model.disks import Disks
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.arguments import Arguments, Group, Labels, Node
from evenkeel.model.intake.consistency import check_consistent, vouch_for
from evenkeel.model.intake.parts import read_changes, read_parts
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Partitions
from evenkeel.model.placement import Placement
from evenkeel.model.reading.frames import Frame
from evenkeel.model.reading.keywords import check_keywords, known_arguments
from evenkeel.model.reading.quantities import require
from evenkeel.model.rules import Amount, Rule
from evenkeel.model.runtime.shown import Shown
from evenkeel.model.topology import Topology


@dataclass(frozen=True, eq=False)
class Cluster(Changeable, Shown):
    """A snapshot: nodes, topology, partitions, rules, and where everything is now.

    Build one with ``Cluster.from_arrays`` or ``evenkeel.read``; both validate once and report every
    problem together. A cluster never changes; ``replace``, ``down``, ``up``, ``drain``, ``pin`` and
    ``add_nodes`` make others, which are validated like new ones and share what has not changed.

    Parameters
    ----------
    nodes : Nodes
        N nodes.
    topology : Topology
        L tiers.
    partitions : Partitions
        P partitions in G groups.
    placement : Placement
        Where replicas are now. A replica on a dead node keeps that node.
    rules : tuple of Rule
        Shared by partitions and groups, which point into it.
    dimensions : tuple of str
        D names.
    transient : ndarray of bool, shape (D,)
        Dimensions in which a moved replica counts on both ends until all moves are done.
    bytes_dimension : int
        The dimension that is moved when a replica moves; -1 for none.
    forbidden : ndarray of int32, shape (F, 2)
        (partition, node) pairs that are disabled, sorted.
    depends : ndarray of int32, shape (E, 3)
        (group, group it needs, row of the tier): every domain that holds a replica of the first
        must hold one of the second.
    native : object
        What only the strategy and the format of one system read (a CRUSH map, latencies).
    native_format : str
        Name of that system.
    disks : Disks, optional
        Disks of the nodes, on which a placement says where each replica lies.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[10.0], [10.0]], load=[[1.0]] * 3, replicas=1)
    >>> c
    <Cluster: 2 nodes, 3 partitions, 3 replicas wanted, 1 dimension>
    """

    nodes: Nodes
    topology: Topology
    partitions: Partitions
    placement: Placement
    rules: tuple[Rule, ...]
    dimensions: tuple[str, ...]
    transient: NDArray[np.bool_]
    bytes_dimension: int
    forbidden: NDArray[np.int32]
    depends: NDArray[np.int32]
    native: Any = field(default=None, repr=False)
    native_format: str = ""
    disks: Disks | None = None

    @staticmethod
    @known_arguments
    def from_arrays(
        *,
        capacity: ArrayLike,
        load: ArrayLike,
        leader_load: ArrayLike | None = None,
        non_voter_load: ArrayLike | None = None,
        dimensions: Sequence[str] | None = None,
        transient: Sequence[str] | None = None,
        bytes: str | None = None,
        domains: Mapping[str, Labels] | None = None,
        crossing: Sequence[str] | None = None,
        tier_capacity: Mapping[str, ArrayLike] | None = None,
        tier_distance: ArrayLike | None = None,
        watermark: ArrayLike | None = None,
        alive: ArrayLike | None = None,
        accepts: ArrayLike | None = None,
        keeps: ArrayLike | None = None,
        leads: ArrayLike | None = None,
        gone: ArrayLike | None = None,
        since: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        lead_weight: ArrayLike | None = None,
        max_replicas: ArrayLike | None = None,
        stands_for: ArrayLike | None = None,
        tags: Mapping[str, ArrayLike] | None = None,
        attributes: Mapping[str, Labels] | None = None,
        node_names: Sequence[str] | None = None,
        partition_names: Sequence[str] | None = None,
        replicas: ArrayLike | None = None,
        voters: ArrayLike | None = None,
        min_active: ArrayLike | None = None,
        group: ArrayLike | Sequence[str] | None = None,
        group_names: Sequence[str] | None = None,
        move_cost: ArrayLike | None = None,
        attached: ArrayLike | None = None,
        forbidden: ArrayLike | None = None,
        depends: Sequence[tuple[Group, Group, str]] | None = None,
        placement: Placement | ArrayLike | Sequence[Sequence[Node]] | None = None,
        first: ArrayLike | None = None,
        leader: ArrayLike | None = None,
        role: ArrayLike | None = None,
        flags: ArrayLike | None = None,
        disk: ArrayLike | None = None,
        disks: Disks | None = None,
        spread: Mapping[str, Amount] | None = None,
        rules: Sequence[Rule] | None = None,
        rule: ArrayLike | None = None,
        group_rule: ArrayLike | Mapping[str, int] | None = None,
        native: object = None,
        native_format: str = "",
    ) -> Cluster:
        """Build a cluster from arrays, and report everything wrong with them at once.

        An array whose dtype and layout fit is used without a copy and never written to. N nodes, P
        partitions, K replicas, G groups, D dimensions.

        Parameters
        ----------
        capacity : array_like of float64, shape (N, D)
            Hard limit per node; 0 allowed, ``inf`` for none. Of frames of pandas, polars or pyarrow
            the columns name the dimensions, and those of loads may be in another order.
        load : array_like of float64, shape (P, D)
            Load of one replica.
        leader_load, non_voter_load : array_like of float64, shape (P, D), optional
            Whole load of a replica in that role, where it differs from ``load``.
        dimensions : sequence of str, optional
            D names; ``d0``, ``d1``, ... by default.
        transient : sequence of str, optional
            Dimensions in which a moved replica counts on both ends.
        bytes : str, optional
            The dimension that is moved when a replica moves.
        domains : mapping of str to array_like, shape (N,), optional
            Label of each node per tier, widest tier first.
        crossing : sequence of str, optional
            Tiers that do not nest in the ones before them.
        tier_capacity : mapping of str to array_like of float64, shape (domains, D), optional
            Capacity that the nodes of a domain share.
        tier_distance : array_like of float64, shape (L + 1,) or (N, N), optional
            Distance by the widest tier that differs, or between each pair of nodes.
        watermark : array_like of float64, shape (N, D), optional
            Load above it costs; ``inf`` by default.
        alive, accepts, keeps, leads, gone : array_like of bool, shape (N,), optional
            State of the nodes. All alive by default; the next three follow ``alive``; none gone.
        since : array_like of float64, shape (N,), optional
            Time of each node's last change of state, in seconds; NaN where it is not known.
        weight, lead_weight : array_like of float64, shape (N,), optional
            Share of replicas and leaders; 1 by default.
        max_replicas, stands_for : array_like of int32, shape (N,), optional
            -1 for none.
        tags : mapping of str to array_like of bool, shape (N,), optional
            Nodes that carry each tag.
        attributes : mapping of str to array_like, shape (N,), optional
            Further labels of the nodes, under names that no tier has.
        node_names, partition_names : sequence of str, optional
            Counted up by default.
        replicas, voters, min_active : array_like of int32, shape () or (P,), optional
            Wanted numbers; of replicas needed without a placement. By default as many as it has
            slots, all voters, 0.
        group : array_like of int32 or of str, shape (P,), optional
            Group of each partition, by number or by name; all in one by default. Numbers are below
            P or 1,000 unless there are ``group_names``.
        group_names : sequence of str, optional
            Names of groups in the order of their numbers. By default those of ``group``, sorted;
            where ``group`` has numbers, numbered names.
        move_cost : array_like of float64, shape () or (P,), optional
            Cost of moving one replica; 1 by default.
        attached : array_like of int32, shape (P,), optional
            Node that uses the partition; -1 for none.
        forbidden : array_like of int32, shape (F, 2), optional
            (partition, node) pairs that are disabled.
        depends : sequence of (int or str, int or str, str), optional
            (group, group it needs, tier).
        placement : Placement, array_like of int32 or str, (P, R), or (K,) with ``first``, optional
            Node of each replica by slot: a number, -1, NaN or None for none, or a name. Rows may
            differ in length. Slot 0 leads unless ``leader`` is given. A ``Placement`` brings its
            leaders, roles and flags.
        first : array_like of int64, shape (P + 1,), optional
            Where each partition's replicas start in a flat placement.
        leader : array_like of int16, shape (P,), optional
            Slot that leads; -1 for none.
        role, flags : array_like, same shape as placement, optional
            ``Role`` and ``Flag`` of each replica.
        disk : array_like of int32, same shape as placement, optional
            Number of each replica's disk; -1 where it is not known.
        disks : Disks, optional
            Disks of the nodes. In the dimension that moves, a node then holds no more than its
            usable disks hold in all.
        spread : mapping of str to Amount, optional
            Short for one rule of all partitions, ``rules=[Rule(spread=...)]``.
        rules : sequence of Rule, optional
            Rules. With one, no ``rule`` and no group bound by it, it binds every partition.
        rule : array_like of int32, shape (P,), optional
            Rule of each partition, -1 for none.
        group_rule : array_like of int32, shape (G,), or mapping of str to int, optional
            Rule of each group as a whole, -1 for none.
        native : object, optional
            A system's own payload.
        native_format : str, optional
            Name of that system.

        Returns
        -------
        Cluster
            Validated.

        Raises
        ------
        InvalidInput
            Naming every problem, with its path and value, and for a word that is unknown the
            closest one. A broken placement (two replicas on one node, replicas on dead nodes, too
            few or too many of them) is no validation error: a solve repairs it.

        Examples
        --------
        >>> c = Cluster.from_arrays(
        ...     capacity=[[9.0]] * 3, load=[[1.0]] * 4, domains={"zone": ["a", "b", "c"]},
        ...     replicas=2, spread={"zone": 1})
        >>> c.placement.nodes.shape
        (4, 2)
        """
        given = locals()
        faults = FaultList()
        parts = read_parts(faults, given)
        faults.raise_if_any()
        vouch_for(parts)
        return Cluster(**parts)

    def __post_init__(self) -> None:
        check_consistent(parts_of(self))

    def replace(self, **changes: Unpack[Arguments]) -> Self:
        """Return a cluster with some arguments of ``from_arrays`` changed.

        It is validated like a new one. Sizes stay as they are: see ``add_nodes``. A new
        ``placement`` comes with its leaders, roles and flags, or with those by default; what is
        wanted of each partition stays. New ``rules`` bind the partitions that the old ones
        in their places bound, unless ``rule`` is given; where no old rule bound any partition, they
        are new. ``spread`` binds all partitions.

        Parameters
        ----------
        **changes : Arguments
            As ``from_arrays`` takes them; None for the default.

        Returns
        -------
        Cluster
            Sharing all that does not change with this one.

        Raises
        ------
        InvalidInput
            Naming every problem, with its path and value.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=2)
        >>> c.replace(capacity=[[9.0], [9.0], [20.0]]).nodes.capacity[2].tolist()
        [20.0]
        """
        given: dict[str, Any] = dict(changes)
        faults = FaultList()
        check_keywords(faults, given, Arguments.__annotations__)
        given = {name: one for name, one in given.items() if name in Arguments.__annotations__}
        parts = read_changes(faults, given, parts_of(self))
        faults.raise_if_any()
        vouch_for(parts)
        return replace(self, **parts)

    @staticmethod
    @known_arguments
    def from_frames(
        nodes: Frame,
        replicas: Frame,
        *,
        rules: Rule | Mapping[str, Rule] | None = None,
        group_rules: Rule | Mapping[str, Rule] | None = None,
        tiers: Sequence[str] | None = None,
        bytes: str | None = None,
        transient: Sequence[str] | None = None,
    ) -> Cluster:
        """Describe a cluster by two frames of pandas, polars or pyarrow.

        The columns are those of the format ``tables``. What has no value is null or NaN: a
        capacity is no limit then, and a load 0.

        Parameters
        ----------
        nodes : frame
            A row for each node: ``node``, ``cap_NAME`` for each dimension, and any of
            ``watermark_NAME``, ``state`` (up, cordoned, draining or down), ``tags`` (divided by
            blanks), ``weight`` and ``max_replicas``; every other column is a tier, the widest
            first.
        replicas : frame
            A row for each replica: ``partition``, or ``group`` and ``index``, or all of them;
            ``node``; and any of ``role`` (leader, voter, non_voter or learner; without it the first
            replica leads, but no single one), ``pinned``, ``flags``, and, the same in each row of a
            partition, ``load_NAME``, ``leader_load_NAME``, ``non_voter_load_NAME``, ``replicas``,
            ``voters``, ``min_active`` and ``rule``.
        rules : Rule, or mapping of str to Rule, optional
            A rule for all partitions; or by group; or by what stands in the column ``rule``.
        group_rules : Rule, or mapping of str to Rule, optional
            A rule that counts all replicas of a group together, for all groups or by group.
        tiers : sequence of str, optional
            The columns that are tiers, widest first; any other column is then an error.
        bytes : str, optional
            The dimension that moves.
        transient : sequence of str, optional
            Dimensions that a moving replica takes at both ends.

        Returns
        -------
        Cluster
            Validated. Numbers that the frames hold as float64 are read without a copy of their own.

        Raises
        ------
        InvalidInput
            Naming every problem, with frame, column, row and value; or that narwhals is missing,
            which reads frames: ``pip install 'evenkeel[frames]'``.

        Examples
        --------
        >>> import pandas as pd
        >>> import evenkeel as ek
        >>> nodes = pd.DataFrame({"node": ["a", "b"], "zone": ["x", "y"], "cap_cpu": [9.0, 9.0]})
        >>> replicas = pd.DataFrame({"partition": ["p", "q"], "node": ["a", "a"], "load_cpu": 1.0})
        >>> ek.Cluster.from_frames(nodes, replicas, rules=ek.Rule(spread={"zone": 1}))
        <Cluster: 2 nodes, 2 partitions, 2 replicas wanted, 1 dimension>
        """
        made: Cluster = frame_reader()(
            nodes, replicas, rules=rules, group_rules=group_rules, tiers=tiers, bytes=bytes,
            transient=transient,
        )  # fmt: skip
        return made

    def with_placement(self, placement: Placement) -> Cluster:
        """Return the same cluster with its replicas somewhere else.

        Parameters
        ----------
        placement : Placement
            Where they are; ``replace`` takes lists.

        Returns
        -------
        Cluster
            Sharing everything else with this one.

        Raises
        ------
        InvalidInput
            If it is none, or one of other partitions or nodes.
        """
        return replace(self, placement=placement)

    def __repr__(self) -> str:
        wanted = int(self.partitions.replicas.sum(dtype=np.int64))
        counts = (
            (len(self.nodes), "node", ""), (len(self.partitions), "partition", ""),
            (wanted, "replica", " wanted"), (len(self.dimensions), "dimension", ""),
        )  # fmt: skip
        stated = (f"{count} {word}{'s' * (count != 1)}{rest}" for count, word, rest in counts)
        return f"<Cluster: {', '.join(stated)}>"


def require_cluster(given: object) -> None:
    """Raise ``InvalidInput`` for anything but a cluster."""
    require("cluster", given, Cluster)


_readers: list[Callable[..., Any]] = []


def read_frames_by(reader: Callable[..., Any]) -> None:
    """Register the function that reads frames."""
    _readers[:] = [reader]


def frame_reader() -> Callable[..., Any]:
    """Return the function that reads frames."""
    return _readers[0]
