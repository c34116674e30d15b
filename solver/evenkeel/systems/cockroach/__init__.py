"""CockroachDB: its ranges and stores, and its allocator."""

from evenkeel.methods.registry import Method

METHODS = (
    Method(
        "cockroach",
        "evenkeel.systems.cockroach.allocator.method:cockroach",
        "CockroachDB's replicate queue and store rebalancer, run until convergence",
        "evenkeel.systems.cockroach.allocator.settings:Cockroach",
        begins=4e-7,
        decider="evenkeel.systems.cockroach.allocator.range_decider:RangeDecider",
        refresh="evenkeel.systems.cockroach.allocator.method:refresh_payload",
        warmup="stores",
    ),
)
