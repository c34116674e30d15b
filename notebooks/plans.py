# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Plans: from the present placement to the target
#
# A placement is carried out in steps. Between two valid placements there are states that may be
# invalid: a disk that sends and receives data is full in between, two replicas of a partition share
# a zone while one of them moves, a leader is removed before another one exists. This notebook shows
# how `ek.plan` avoids such states, on a cluster of Kafka and on one of CockroachDB: steps and their
# dependencies, an independent check, throttles, blocked moves, the death of a machine during a
# plan, and the duration of a recovery.

# %%
import json
import tempfile
from pathlib import Path

import numpy as np

import evenkeel as ek
from evenkeel import simulate
from evenkeel.view import plots

GB = 10**9

# %% [markdown]
# ## Kafka: three new brokers, empty beside six that are well filled
#
# Six brokers in three racks hold four topics of twelve partitions, and three more have just joined.
# The output of Kafka's own tools is read unchanged: the description of the topics, the log
# directories with their sizes, the racks, and Cruise Control's file of capacities.

# %%
rng = np.random.default_rng(11)
brokers = {str(b): f"rack-{'abc'[(b - 101) % 3]}" for b in range(101, 110)}
old = np.array([[101, 104], [102, 105], [103, 106]])
described, held = [], {broker: [] for broker in brokers}
for topic in ("audit", "clicks", "orders", "stock"):
    described.append(f"Topic: {topic}\tPartitionCount: 12\tReplicationFactor: 3\tConfigs: ")
    for partition in range(12):
        picked = rng.choice(2, 3, p=[0.6, 0.4])
        row = rng.permutation([int(old[r, k]) for r, k in enumerate(picked)])
        listed = ",".join(map(str, row))
        described.append(
            f"\tTopic: {topic}\tPartition: {partition}\tLeader: {row[0]}\t"
            f"Replicas: {listed}\tIsr: {listed}"
        )
        size = int(rng.gamma(4.0, 5.0 * GB))
        for broker in row:
            entry = {"partition": f"{topic}-{partition}", "size": size, "offsetLag": 0}
            held[str(broker)].append(entry | {"isFuture": False})
sizes = {
    "version": 1,
    "brokers": [
        {"broker": int(b), "logDirs": [{"logDir": "/d", "error": None, "partitions": rows}]}
        for b, rows in held.items()
    ],
}
capacity = {"brokerCapacities": [{"brokerId": "-1", "capacity": {"DISK": "700000"}}]}
files = ["\n".join(described), json.dumps(sizes), json.dumps(brokers), json.dumps(capacity)]
kafka = ek.read([file.encode() for file in files])
kafka

# %%
result = ek.solve(kafka, goals=ek.Goals(level=0.1))
print(result)

# %% [markdown]
# `result.plan` (or `ek.plan`, for any target) orders the moves into steps. A throttle limits the
# copies in flight, and the protocol describes the capabilities of the system: a Kafka reassignment
# exchanges the whole set of a partition. The printed bound is the least duration of any order of
# the same copies.

# %%
throttle = ek.Throttle(node_in=2, node_out=2, node_bandwidth="100MB")
plan = result.plan(throttle=throttle, protocol="kafka")
plan

# %%
plots.gantt(plan, title="every copy, by the broker that receives it").figure

# %% [markdown]
# `plan.check()` replays every state between the steps, copies in flight included, with NumPy alone;
# it shares no code with the planner. It returns a certificate: for each rule and dimension the
# point with the least slack.

# %%
certificate = plan.check()
print(certificate)

# %% [markdown]
# ## Dependencies
#
# Dependencies keep a plan safe, regardless of timing: a step may start as soon as the steps that it
# waits for have ended. `explain` lists them, with the capacity or the throttle that they free.

# %%
last = plan.rows()[int(np.argmax(plan.steps.finish))].partition
print(plan.explain(last))

# %% [markdown]
# ## A plan is a file
#
# The file is JSON, with one step per line, and contains the cluster, so that
# `evenkeel check plan.json` needs no other file. A plan of another tool, or an edited plan, is read
# in the same way: reading reports all errors of the file, and the check finds unsafe steps.

# %%
folder = tempfile.TemporaryDirectory()
file = ek.write_plan(plan, Path(folder.name, "plan.json"))
print(*file.read_text().splitlines()[5:8], sep="\n")
assert ek.read_plan(file).rows() == plan.rows()

edited = json.loads(file.read_text())
edited["steps"][0]["to"] = "999"
edited["steps"][1]["after"] = [1]
edited["steps"][2]["start"] = -5.0
try:
    ek.read_plan(json.dumps(edited).encode())
except ek.InvalidInput as error:
    print(error)

# %%
hasty = json.loads(file.read_text())
for step in hasty["steps"]:
    step["start"], step["finish"], step["after"] = 0.0, 60.0, []
print(ek.read_plan(json.dumps(hasty).encode()).check().counts)

# %% [markdown]
# ## Progress
#
# Progress is computed from the observed replicas, not from the commands. The beginning of a plan is
# a plan, and so is its undo.

# %%
begun = plan.prefix(len(plan) // 2)
print(plan.progress(begun.end, elapsed=2_400.0))
undone = begun.undo()
assert undone.check().ok
assert np.array_equal(undone.end.node, kafka.placement.node)

# %% [markdown]
# Half-way through, broker 103 dies. `resume` continues with all changes that do not need it; since
# its replicas need other brokers, the cluster is solved again from the present state. Then the most
# endangered partitions go first, and `short_for` is the time until no partition lacks live
# replicas.

# %%
now = kafka.with_placement(begun.end).down("103")
print(plan.resume(now))
again = ek.solve(now, goals=ek.Goals(level=0.1))
rest = again.plan(throttle=throttle, protocol="kafka")
print(rest)
print("every partition has all its replicas after", f"{rest.short_for:,.0f} s;", end=" ")
print("safe:", rest.check().ok)

# %% [markdown]
# ## Blocked
#
# Two full brokers out of three exchange their partitions. This is possible via the third one, with
# one additional copy; without free capacity there it is blocked, and the plan lists the moves that
# wait for one another.


# %%
def trade(spare):
    """Two full brokers that trade a partition, and a third one with some room."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0], [10.0], [spare]],
        load=[[10.0], [8.0]],
        dimensions=("disk",),
        transient=["disk"],
        bytes="disk",
        placement=[["b1"], ["b2"]],
        node_names=["b1", "b2", "b3"],
    )
    target = cluster.placement.replaced(np.array([1, 0], np.int32), cluster.placement.leader)
    return ek.plan(cluster, target, throttle=ek.Throttle(node_bandwidth=1.0), protocol="kafka")


plots.gantt(trade(spare=8.0)).figure

# %%
print(trade(spare=5.0).explain("p0"))

# %% [markdown]
# ## CockroachDB: a store is drained
#
# CockroachDB has learners and joint consensus: a range copies to a learner first, then one change
# makes it a voter and removes its predecessor's vote. One of nine stores in three regions is
# drained. A replica loses the lease before it is removed, and no replica that lags behind gets it;
# at no instant do two replicas share a region.

# %%
ranges = 60
stores = ek.cockroach_cluster(
    localities=["region=us", "region=eu", "region=asia"] * 3,
    replicas=[[r % 3 * 3, (r + 1) % 3 * 3 + 1, (r + 2) % 3 * 3 + 2] for r in range(ranges)],
    leaseholder=[r % 3 * 3 for r in range(ranges)],
    configs=[{"num_replicas": 3}],
    qps=np.linspace(10.0, 60.0, ranges),
    size=64.0 * 2**20,
    capacity=[10.0 * 2**30] * 9,
    spread={"region": 1},
)
drained = stores.drain("n0")
emptied = ek.solve(drained, goals=ek.Goals(level=None))
leaving = emptied.plan(throttle=ek.Throttle(node_in=1, node_out=2), protocol="cockroach")
assert leaving.check().ok
leaving

# %%
print(leaving.explain(leaving.rows()[0].partition))

# %% [markdown]
# ## Simulation
#
# The simulator carries plans out: the network limits copies, information is delayed, and while the
# store is drained another one dies. After each event the rest is planned again from the present
# state.

# %%
slow = simulate.Environment(snapshot=8.0 * 2**20, gossip_delay=5.0)
carrying = simulate.planned(
    "balance", throttle=ek.Throttle(node_in=1, node_out=2), protocol="cockroach"
)
happens = [
    simulate.NodesBecome(at=10.0, nodes="n0", health=simulate.Health.DRAINING),
    simulate.At(60.0, ek.Changes(down="n4"), dead_after=30.0),
]
history = simulate.play(
    stores, happens, carrying, until=3600.0, goals=ek.Goals(level=None), environment=slow
)
print(len(carrying.plans), "plans,", f"{history.total('moves'):,.0f} moves,", end=" ")
print("all of them safe:", all(one.check().ok for one in carrying.plans))
history

# %% [markdown]
# ## Duration of recovery
#
# A sweep computes for every store and every region how long the plan of the repair takes under a
# throttle, and for how long partitions lack live replicas. After the loss of a region its replicas
# have no possible place, so that this time is infinite.

# %%
careful, bold = (
    ek.sweep(
        stores,
        ["node", "region"],
        goals=ek.Goals(level=None),
        protocol="cockroach",
        recovery=ek.Throttle(node_bandwidth=rate),
    )
    for rate in ("8MiB", "32MiB")
)
print(f"{'':12}{'8 MiB/s':>12}{'short for':>12}{'32 MiB/s':>12}{'short for':>12}")
for name, *times in zip(
    careful.names,
    *(figures for found in (careful, bold) for figures in (found.recovery, found.under_replicated)),
    strict=True,
):
    print(f"{name:12}" + "".join(f"{seconds:10,.0f} s" for seconds in times))

# %%
folder.cleanup()
