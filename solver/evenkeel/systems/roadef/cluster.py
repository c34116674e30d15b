"""The cluster that a machine-reassignment instance describes, and what the challenge charges."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Cost, Proportion
from evenkeel.model.rules import Rule
from evenkeel.systems.roadef.reassignment import RoadefModel

NAME = "roadef"
LEVELS = ("neighbourhood", "location")


def native_of(cluster: Cluster) -> RoadefModel:
    """Return the integers that the cluster was read from; ``InvalidInput`` if there are none."""
    if not isinstance(cluster.native, RoadefModel):
        raise InvalidInput(
            [Fault("cluster.native", cluster.native_format, "is not of the format 'roadef'")]
        )
    return cluster.native


def cost_of(cluster: Cluster) -> Cost:
    """Return what the challenge charges for such a cluster, to hand to ``solve`` as goals."""
    model = native_of(cluster)
    names = cluster.dimensions
    return Cost(
        watermark=dict(zip(names, map(float, model.load_weight.tolist()), strict=True)),
        proportion=tuple(
            Proportion(names[a], names[b], float(target), float(weight))
            for a, b, target, weight in model.balance.tolist()
        ),
        moves=float(model.process_weight),
        group_moves=float(model.service_weight),
        distance=float(model.machine_weight),
    )


def cluster_of(model: RoadefModel) -> Cluster:
    """Build the cluster of an instance; locations cross neighbourhoods if they do not nest."""
    place = np.unique(np.stack([model.location, model.neighbourhood]), axis=1)
    nests = len(np.unique(place[0])) == place.shape[1]
    names = tuple(f"r{i}" for i in range(len(model.transient)))
    rules, group_rule = _service_rules(model)
    matrix = model.distance.matrix
    return Cluster.from_arrays(
        capacity=model.capacity.astype(np.float64),
        watermark=model.safety.astype(np.float64),
        load=model.requirement.astype(np.float64),
        dimensions=names,
        transient=[names[i] for i in np.flatnonzero(model.transient).tolist()],
        domains=dict(zip(LEVELS, (model.neighbourhood, model.location), strict=True)),
        crossing=() if nests else (LEVELS[1],),
        tier_distance=np.array(model.distance.by_class if matrix is None else matrix, np.float64),
        placement=model.initial.astype(np.int32)[:, None],
        group=model.service.astype(np.int32),
        group_names=[f"s{i}" for i in range(len(model.spread))],
        rules=rules,
        rule=-1,
        group_rule=group_rule,
        depends=[(a, b, LEVELS[0]) for a, b in model.needs.tolist()],
        move_cost=model.move_cost.astype(np.float64),
        native=model,
        native_format=NAME,
    )


def _service_rules(model: RoadefModel) -> tuple[list[Rule], NDArray[np.int32]]:
    """Return one rule per number of locations asked for; services that nothing binds have none."""
    members = np.bincount(model.service, minlength=len(model.spread))
    spread = np.maximum(model.spread, 1)
    bound = (members > 1) | (spread > 1)
    amounts = np.unique(spread[bound])
    group_rule = np.full(len(spread), -1, np.int32)
    group_rule[bound] = np.searchsorted(amounts, spread[bound])
    rules = [
        Rule(spread={"node": 1}, min_domains={LEVELS[1]: amount} if amount > 1 else {})
        for amount in amounts.tolist()
    ]
    return rules, group_rule
