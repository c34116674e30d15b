"""Random clusters with every kind of rule, small loads in whole numbers, and costs to match."""

import numpy as np

from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel.model.cluster import Cluster
from evenkeel.model.cost_tables import GroupTable, NodeTable
from evenkeel.model.goals import Cost, Proportion
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag
from evenkeel.model.rules import Rule
from evenkeel_kernels.core.problem import Problem, State


def random_cluster(seed: int) -> Cluster:
    """A cluster of up to 7 nodes and 9 partitions; one node, one zone, no load all happen."""
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(1, 8)), int(rng.integers(1, 10))
    dimensions, groups = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    zones = rng.integers(-1 if rng.random() < 0.2 else 0, rng.integers(1, 4), nodes)
    racks = rng.integers(0, rng.integers(1, 4), nodes)
    load = rng.integers(0, rng.choice([1, 6]) + 1, (partitions, dimensions))
    roomy = rng.choice([6, 20, 60])
    capacity = rng.integers(0, roomy, (nodes, dimensions)).astype(float)
    capacity[rng.random((nodes, dimensions)) < 0.1] = np.inf
    width = rng.integers(1, 4, partitions)
    first = np.concatenate([[0], np.cumsum(width)])
    names = [f"d{i}" for i in range(dimensions)]

    def amounts(low: int) -> dict[str, int]:
        levels = [level for level in ("zone", "rack", "node") if rng.random() < 0.4]
        return {level: int(rng.integers(low, 3)) for level in levels}

    def rule(smallest: int) -> Rule:
        return Rule(
            require=["+fast"] if rng.random() < 0.2 else [],
            voters_require=["-slow"] if rng.random() < 0.2 else [],
            place={"+fast": 1} if rng.random() < 0.3 else {},
            lead=["+fast"] if rng.random() < 0.3 else [],
            spread=amounts(1),
            min_domains={k: v for k, v in amounts(0).items() if v <= smallest},
            skew=amounts(1) if rng.random() < 0.3 else {},
        )

    def shared(smallest: int) -> Rule:
        return Rule(
            place={"+fast": 1} if rng.random() < 0.3 else {},
            spread=amounts(1),
            min_domains={k: v for k, v in amounts(0).items() if v <= smallest},
            max_domains={"zone": 2} if rng.random() < 0.3 else {},
        )

    ties = [(int(a), int(b)) for a, b in rng.integers(0, groups, (3, 2)) if a != b]
    flags = np.where(rng.random(first[-1]) < 0.1, int(Flag.PINNED), 0).astype(np.uint16)
    fast, slow = rng.random(nodes) < 0.6, rng.random(nodes) < 0.3
    fast[0], slow[0] = True, False  # some node meets every requirement
    limited = rng.random() < 0.3
    zone_count = len(np.unique(zones[zones >= 0]))
    rules = [rule(1 if i else int(width.min())) for i in range(2)]
    group = rng.integers(0, groups, partitions)
    group_rule = rng.choice([-1, 2, 3], groups)
    size = np.bincount(group, width, groups)
    shared_rules = [shared(int(size[group_rule == i].min(initial=9))) for i in (2, 3)]
    return Cluster.from_arrays(
        capacity=capacity,
        watermark=np.minimum(capacity, rng.integers(0, roomy, (nodes, dimensions))),
        load=load,
        leader_load=load + rng.integers(0, 3, load.shape) if rng.random() < 0.5 else None,
        dimensions=names,
        transient=[name for name in names if rng.random() < 0.4],
        domains={"zone": zones, "rack": racks},
        crossing=["rack"] if rng.random() < 0.3 else [],
        tier_capacity=(
            {"zone": rng.integers(0, 60, (zone_count, dimensions))} if limited else None
        ),
        tier_distance=(
            rng.integers(0, 5, (nodes, nodes)) * (1 - np.eye(nodes, dtype=np.int64))
            if rng.random() < 0.3
            else [4, 2, 0]
        ),
        accepts=rng.random(nodes) < 0.9,
        leads=rng.random(nodes) < 0.9,
        max_replicas=np.where(rng.random(nodes) < 0.2, rng.integers(0, 5, nodes), -1),
        tags={"fast": fast, "slow": slow},
        placement=rng.integers(-1 if rng.random() < 0.3 else 0, nodes, first[-1]),
        first=first,
        role=rng.integers(0, 2, first[-1]) if rng.random() < 0.3 else None,
        flags=flags,
        group=group,
        group_names=[f"g{i}" for i in range(groups)],
        rules=[*rules, *shared_rules],
        rule=rng.integers(-1, 2, partitions),
        group_rule=group_rule,
        depends=[(a, b, str(rng.choice(["zone", "rack", "node"]))) for a, b in ties],
        forbidden=np.stack([rng.integers(0, partitions, 2), rng.integers(0, nodes, 2)], axis=1),
        move_cost=rng.integers(0, 4, partitions),
    )


def random_cost(seed: int, cluster: Cluster) -> Cost:
    """Whole-number weights, a proportion where there are two dimensions of bounded capacity."""
    rng = np.random.default_rng(seed)
    bounded = [
        name
        for d, name in enumerate(cluster.dimensions)
        if np.isfinite(cluster.nodes.capacity[:, d]).all()
    ]
    pair = tuple(bounded[:2])
    return Cost(
        watermark={name: float(rng.integers(0, 4)) for name in cluster.dimensions},
        proportion=[Proportion(*pair, ratio=2.0, weight=3.0)] if len(pair) == 2 else [],
        moves=float(rng.integers(0, 3)),
        group_moves=float(rng.integers(0, 6)),
        distance=float(rng.integers(0, 3)),
        tables=random_tables(rng, cluster),
    )


def random_tables(rng: np.random.Generator, cluster: Cluster) -> list[NodeTable | GroupTable]:
    """None, or a table or two of either kind, with nodes and groups that pay nothing among them."""
    tables: list[NodeTable | GroupTable] = []
    nodes = len(cluster.nodes)
    for _ in range(rng.integers(0, 3)):
        pieces = int(rng.integers(1, 4))
        shape = (nodes, pieces) if rng.random() < 0.5 else (pieces,)
        at = np.sort(rng.integers(0, 15, shape), axis=-1).astype(float)
        if at.ndim == 2:
            at[rng.random(nodes) < 0.2] = np.nan
        slope = np.sort(rng.integers(-3, 4, pieces + 1)).astype(float)
        slope[-1] = max(slope[-1], 0.0)
        dimension = str(rng.choice(list(cluster.dimensions)))
        tables.append(NodeTable(dimension, at, slope[1:], below=slope[0]))
    for _ in range(rng.integers(0, 3)):
        level = str(rng.choice([*cluster.topology.tiers, "node"]))
        domains = int(cluster.topology.domain_count[cluster.topology.tier_index(level)])
        length = int(rng.integers(2, 5))
        each = domains > 0 and rng.random() < 0.5
        cost = rng.integers(0, 6, (domains, length) if each else length).astype(float)
        names = [name for name in cluster.partitions.group_names if rng.random() < 0.7]
        tables.append(GroupTable(level, cost, names if rng.random() < 0.7 else None))
    return tables


def random_problem(seed: int) -> tuple[Cluster, Problem, State]:
    """A random cluster as the kernels see it."""
    cluster = random_cluster(seed)
    cost = random_cost(seed, cluster)
    weight = np.array([cost.watermark_weight(name) for name in cluster.dimensions])
    watermark = np.array(cluster.nodes.watermark.T, order="C")
    problem = compile_problem(cluster, watermark, weight, cost=cost)
    return cluster, problem, compile_state(cluster, problem)


def random_budgeted(seed: int) -> tuple[Cluster, Problem, State]:
    """The same with budgets of every kind, some of them exhausted from the start."""
    cluster = random_cluster(seed)
    rng = np.random.default_rng(seed)

    def some(most: int) -> int | None:
        return int(rng.integers(0, most)) if rng.random() < 0.5 else None

    tiers = {tier: int(rng.integers(0, 4)) for tier in ("zone", "rack") if rng.random() < 0.5}
    limits = Limits(
        moves=some(8), node_in=some(4), node_out=some(4), partition_moves=some(3),
        leader_changes=some(4), domain_in=tiers, domain_out=tiers if rng.random() < 0.5 else None,
    )  # fmt: skip
    watermark = np.array(cluster.nodes.watermark.T, order="C")
    weight = np.ones(len(cluster.dimensions))
    problem = compile_problem(cluster, watermark, weight, limits=limits)
    if rng.random() < 0.5:
        budgets = problem.budgets._replace(data=float(rng.integers(0, 40)), data_dimension=0)
        problem = problem._replace(budgets=budgets)
    return cluster, problem, compile_state(cluster, problem)
