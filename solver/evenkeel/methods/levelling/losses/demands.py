"""What a cluster that stands ready has, and what is demanded of it, in the arrays of kernels."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import bounds_of_levels, leader_shares
from evenkeel.measure.bounds.share import ample_room
from evenkeel.measure.node_states import usable
from evenkeel.measure.row_demands import RowDemands
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.wanted import has_leaders, wanted_load
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Role
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.levelling.losses.records import Demanded, Stock


def roles_fit(cluster: Cluster) -> bool:
    """Whether as many replicas of each partition vote as are wanted to."""
    placement, partitions = cluster.placement, cluster.partitions
    votes = (placement.role == Role.VOTER) & (placement.node >= 0)
    if not placement.role.any() and np.array_equal(partitions.voters, partitions.replicas):
        return True
    return np.array_equal(
        np.bincount(placement.owner[votes], minlength=len(partitions)), partitions.voters
    )


def stock_and_demands(
    cluster: Cluster, rows: RowDemands, share: NDArray[np.float64]
) -> tuple[Stock, Demanded]:
    """Count what there is, sizes being by ``share (D,)``, and say what is demanded of it."""
    nodes, partitions, placement = cluster.nodes, cluster.partitions, cluster.placement
    placed = PlacementCounts.of(cluster, placement)
    first, member = by_node(np.array(placement.node), len(nodes))
    banned = cluster.forbidden
    leads = has_leaders(cluster)
    able = usable(cluster)
    even, leading = bounds_of_levels(cluster, Goals(level=None)), leader_shares(cluster)
    roomy = ample_room(placed, able)
    if leads and not np.array_equal(able, able & nodes.may_lead):
        roomy = np.full(len(roomy), np.inf)  # leaders are forced into those that may lead
    stock = Stock(
        first=first,
        member=member,
        share=share,
        leader=np.array(placement.leader),
        load=np.array(placed.loads.T, order="C"),
        wanted=np.array(wanted_load(cluster)),
        unit=np.array(partitions.load.unit),
        alike=np.array(partitions.load.alike),
        even=np.array(even.even.T, order="C"),
        least=np.array(_stays_least(even.even, even.least).T, order="C"),
        roomy=roomy,
        lead_even=leading.level,
        lead_least=_stays_least(leading.level, leading.least),
        leads_alike=bool((roomy < np.inf).all()),
        lead_weight=np.where(nodes.may_lead & able, nodes.lead_weight, 0.0),
        led=int((partitions.replicas > 0).sum()) if leads else 0,
        bytes_dimension=cluster.bytes_dimension,
    )
    return stock, Demanded(
        first=np.array(placement.first),
        role=np.array(placement.role),
        replicas=np.array(partitions.replicas),
        min_active=np.array(partitions.min_active),
        rule=np.array(rows.rule),
        is_open=np.array(rows.is_open),
        limit_first=rows.limit_first,
        limit=rows.limit,
        domain=np.array(cluster.topology.domain_with_nodes, order="C"),
        forbidden_first=_starts(np.bincount(banned[:, 0], minlength=len(partitions))),
        forbidden=np.array(banned[:, 1], order="C"),
        capacity=np.array(nodes.capacity.T, order="C"),
        max_replicas=np.array(nodes.max_replicas),
        replicas_on=np.array(placed.replicas),
        leaders_on=np.array(placed.leaders),
        serves=nodes.serves,
        holds=nodes.may_hold,
        receives=nodes.may_receive,
        leads=nodes.may_lead,
    )


def _stays_least(level: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least in whole units, (N,) or (N, D), that no loss of nodes makes smaller.

    What is rounded up in one part is room for the others, and more so once a node of it is lost.
    """
    apart = level.max(0, initial=0.0) > np.where(level > 0.0, level, np.inf).min(0, initial=np.inf)
    return np.where(apart, 0.0, least)


def _starts(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where rows of these lengths start, and the end."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
