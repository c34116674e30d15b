# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A tour: from arrays to a solved cluster
#
# Evenkeel takes a snapshot of a cluster and decides the node of every replica. This notebook shows
# all parts of it: input arrays, a solve, its result with explanations, budgets, a proof for a small
# cluster, contradictory rules, the trade-off between moves and balance, a custom objective, and a
# simulation over time.

# %%
import numpy as np
from matplotlib import pyplot as plt

import evenkeel as ek
from evenkeel import simulate
from evenkeel.measure.audit import audit
from evenkeel.measure.levelness import levelness
from evenkeel.simulate.generators import expansion
from evenkeel.view import plots

# %% [markdown]
# ## Input arrays
#
# The cluster has twelve brokers in three zones, of which the last one has died and the one before
# it is new. It has 240 partitions of twenty topics, with three replicas each; a leader needs more
# CPU and network.

# %%
rng = np.random.default_rng(7)
zone = np.repeat(["a", "b", "c"], 4)
disk = rng.gamma(4.0, 10.0, 240)
load = np.stack([rng.gamma(3.0, 1.0, 240), disk, rng.gamma(2.0, 2.0, 240)], axis=1)
old = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 11, 11]])
before = np.stack([rng.choice(old[z], 240, p=[0.4, 0.3, 0.2, 0.1]) for z in range(3)], axis=1)
before = rng.permuted(before, axis=1)

cluster = ek.Cluster.from_arrays(
    dimensions=("cpu", "disk", "net"),
    capacity=np.tile([300.0, 4_000.0, 450.0], (12, 1)),
    node_names=[f"broker-{n}" for n in range(12)],
    domains={"zone": zone},
    alive=[True] * 11 + [False],
    load=load,
    leader_load=load * [2.0, 1.0, 1.5],
    bytes="disk",
    placement=before,  # the first column leads
    spread={"zone": 1},  # one replica of a partition per zone
    partition_names=[f"orders-{p}" for p in range(240)],
    group=np.arange(240) // 12,  # the topic
    min_active=2,
)
cluster

# %% [markdown]
# The input is validated once, and every problem is reported together:

# %%
try:
    ek.Cluster.from_arrays(capacity=[[-1.0]] * 2, load=[[np.nan]], placement=[[0, 7]])
except ek.InvalidInput as invalid:
    print(invalid)

# %% [markdown]
# The audit counts the present violations. It shares no code with any method.

# %%
found = audit(cluster, cluster.placement)
{kind: count for kind, count in found.counts.items() if count}

# %% [markdown]
# ## Solve
#
# `balance` repairs first, then balances with few moves: no node should be more than 5 % above its
# fair share in any dimension, nor lead more than 10 % above its share.

# %%
result = ek.solve(cluster, goals=ek.Goals(level=0.05, leaders=0.1))
result

# %%
result.placement.by_leader()[:5]  # node of each replica, the leader first

# %%
print(result)
print("first moves:")
for move in result.moves[:5]:
    print(f"  {move.partition} slot {move.slot}: {move.source} -> {move.target}")

# %%
figure, axes = plt.subplots(2, 2, figsize=(12, 6.4), layout="constrained")
for ax, dimension in zip(axes.flat, cluster.dimensions, strict=False):
    plots.utilisation(result, dimension, ax)
plots.leaders(result, axes[1, 1])
plt.show()

# %%
figure, axes = plt.subplots(1, 2, figsize=(12, 2.6), layout="constrained")
for ax, level, when in (
    (axes[0], result.levelness_before, "before"),
    (axes[1], result.levelness, "after"),
):
    top = 100.0 * result.levelness_before.most[0]
    plots.heat_map(cluster, level, "cpu", top=top, ax=ax).set_title(when, loc="left")
plt.show()

# %%
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plots.flows(result, ax=ax)
plt.show()

# %% [markdown]
# The same input and seed give the same bits, and a solve of the result moves nothing:

# %%
again = ek.solve(cluster, goals=ek.Goals(level=0.05, leaders=0.1))
assert np.array_equal(again.placement.node, result.placement.node)
settled = ek.solve(cluster.with_placement(result.placement), goals=result.goals)
settled.comparison.moves, settled.comparison.leader_changes

# %% [markdown]
# ## Explanations
#
# An explanation of a partition lists, for each node, the rule that excludes it, or its utilisation
# with the replica.

# %%
moved = result.moves[0].partition
print(result.explain(moved))

# %% [markdown]
# ## Within a budget
#
# Limits are never exceeded. Repairs come first and use the budget, too; the rest is used for
# balancing.

# %%
needed = result.bounds.moves_feasible
rows = []
for extra in (0, 5, 10, 20, 40):
    limited = ek.solve(cluster, goals=result.goals, limits=ek.Limits(moves=needed + extra))
    rows.append((extra, limited.comparison.moves, float(limited.levelness.ratio.max())))
    assert limited.comparison.moves <= needed + extra
print("beyond repairs   moves   max/mean of the worst dimension")
for extra, moves, ratio in rows:
    print(f"{extra:14d}   {moves:5d}   {ratio:.3f}")

# %% [markdown]
# ## A proof, for a small cluster
#
# `exact` places all replicas, then balances, then minimises moves, with a proof. The second row is
# `balance` on the same cluster; its bounds limit its distance from the optimum.

# %%
small = ek.Cluster.from_arrays(
    capacity=[[12.0]] * 6,
    load=[[5.0], [4.0], [4.0], [3.0], [3.0], [2.0], [2.0], [1.0]],
    placement=[[0, 2], [0, 3], [1, 2], [1, 2], [0, 2], [1, 3], [0, 3], [1, 2]],
    domains={"zone": [*"aabbcc"]},
    spread={"zone": 1},
)
for method in ("exact", "balance"):
    one = ek.solve(small, method, goals=ek.Goals(level=0.0))
    print(
        f"{method:8s} {one.status:9s} fullest {one.levelness.most[0]:.3f} (at least "
        f"{one.bounds.level[0]:.3f}), {one.comparison.moves} moves  {one.message}"
    )

# %% [markdown]
# ## Infeasible rules
#
# Three replicas must be in different zones, one of which is too small. `balance` places as many
# replicas as fit and lists the others with the rules that exclude them; `conflicts` returns a
# minimal set of rules that contradict each other.

# %%
tight = ek.Cluster.from_arrays(
    capacity=[[6.0], [6.0], [6.0], [2.0]],
    load=[[1.0]] * 4,
    replicas=3,
    domains={"zone": [*"aabc"]},
    spread={"zone": 1},
)
partial = ek.solve(tight)
print(partial)
for one in partial.unplaced:
    print(f"{one.partition} slot {one.slot}: {one.blocked}")
ek.conflicts(tight)

# %% [markdown]
# ## Balance and moves
#
# The frontier shows the trade-off. No plan can be in the hatched area, which is proven from the
# input alone.

# %%
large = expansion(partitions=5_000, nodes=100)
traced = ek.frontier(large, points=9)
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
plots.frontier(traced, ax)
plt.show()
best = traced.within(moves=820)
print(f"within 820 moves: {best.comparison.moves} moves, max/mean {best.levelness.ratio.max():.4f}")

# %% [markdown]
# ## Watching a search
#
# A callback receives the progress, and may stop the search by raising `StopIteration`; the best
# placement so far is returned. A limit on work, unlike one on time, gives the same bits on any
# machine.

# %%
records = []
fine = ek.solve(
    large, goals=ek.Goals(level=0.002, leaders=0.05), work_limit=4_000_000, callback=records.append
)
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
plots.trace(records, "cost", ax)
plt.show()
fine

# %%
after = levelness(large, fine.placement)
dict(zip(large.dimensions, after.ratio.round(4).tolist(), strict=True))

# %% [markdown]
# ## A custom objective
#
# Instead of tolerances, a `Cost` may be minimised: prices of moves, and user-defined tables. Here
# CPU is free between 180 and 240 of a broker's 300, has a price above and a higher one from 270 on,
# and idle CPU has a price as well. A topic has a cost for every replica beyond its fourth on one
# broker, which the rules do not forbid. The cluster starts with the result of the previous solve.

# %%
paid = ek.NodeTable("cpu", at=[180.0, 240.0, 270.0], slope=[0.0, 1.0, 10.0], below=-0.5)
crowd = ek.GroupTable("node", cost=[0.0, 0.0, 0.0, 0.0, 0.0, 5.0])
levelled = cluster.with_placement(result.placement)
for price in (3.0, 1.0, 0.0):
    own = ek.Cost(watermark=0.0, tables=[paid, crowd], moves=price)
    cheap = ek.solve(levelled, goals=own, work_limit=1_000_000)
    cpu, topics = cheap.cost.tables
    print(
        f"a move costs {price:g}: {cheap.comparison.moves:3d} moves, CPU {cpu:.1f}, topics {topics:g}; "
        f"in all {cheap.cost.total:.1f}, at least {cheap.bounds.cost.total:.1f}"
    )

# %% [markdown]
# ## Over time
#
# The same cluster is simulated for two hours: a zone is lost and returns half an hour later, and
# then the load of a topic rises for a while. `balance` decides after every event, and copies take
# time.

# %%
more = {p: {"cpu": 4.0, "net": 4.0} for p in range(36, 48)}
hot = ek.Changes(load_factor=more, name="topic 3 hot")
events = [
    simulate.At(600.0, ek.Changes(down="zone=c"), lasts=1800.0),
    simulate.At(4200.0, hot, lasts=1200.0),
]
history = simulate.play(
    levelled,
    events,
    "balance",
    until=7200.0,
    goals=result.goals,
    environment=simulate.Environment(snapshot=20.0),  # of `bytes`, in a second
)
history

# %%
figure, axes = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
plots.course(history, "level_cpu", what="CPU: fullest broker over fair share", ax=axes[0])
plots.course(history, "moves", what="replicas moved so far", ax=axes[1])
plt.show()
assert history.total("below_min_active") == 0.0

# %% [markdown]
# No partition ever had fewer than the two replicas that it needs. During the loss of the zone
# nothing moves, since one replica per zone is a rule. Only leaders are replaced, and balanced. The
# short dip is the time after the return of the zone while it does not accept replicas yet: it
# serves, and the fair share is computed over the other zones alone.
