# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Longhorn's user stories: one replica at a time, and all of them at once
#
# Longhorn keeps a volume's replicas on the disks of several hosts. When a host fails, its replicas
# are rebuilt elsewhere, and when it returns nothing moves back by itself: the volume stays
# unbalanced until a person deletes the right replica. *Automatic Replica Rebalance*, a design of
# 2021, does this by a rule. Its user stories have small numbers that can be checked by hand.
#
# This notebook simulates these stories with `method="longhorn"`, shows the rule step by step, and
# then compares the effect of the rule on the *disks* of a large system with that of one plan for
# all volumes.

# %%
import sys

import numpy as np
from IPython.display import HTML
from matplotlib import pyplot as plt

import evenkeel as ek
from evenkeel.measure.levelness import levelness
from evenkeel.systems.longhorn.auto_balance.compile import sharing_a_host
from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume, cluster_of
from evenkeel.systems.longhorn.auto_balance.settings import Settings
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance
from evenkeel.view import plots
from evenkeel.view.html import Raw, table
from evenkeel.view.plots.canvas import BOUND, STYLES, canvas, legend

sys.path.insert(0, "..")  # the experiments lie beside the notebooks, in bench
from bench.experiments.longhorn_stories import played

# %% [markdown]
# ## All stories of the text
#
# `played()` simulates all events of the user stories and of the test plan of the text, and runs the
# rule to convergence after each event. *3/1* means three replicas on node-1 and one on node-2;
# *limited* is the warning *Limited node redundancy* that Longhorn's user interface shows while two
# healthy replicas share a host. The last columns state whether the outcome is that of the text,
# whether a second run changes nothing, and whether every volume had all its healthy replicas
# throughout.

# %%
YES = {True: "yes", False: "NO"}


def counted(one):
    """Replicas of each volume by host, as the text writes them."""
    several = len(one.counts) > 1
    texts = [
        (f"{name} " if several else "") + "/".join(map(str, counts))
        for name, counts in one.counts.items()
    ]
    return ", ".join(texts) + (", limited" if one.limited else "")


stories = played()
assert len(stories) == 20
assert all(one.as_stated and one.rests and one.kept for one in stories)
HTML(
    table(
        ("story or test", "what happens", "replicas by host", "as the text", "rests", "kept"),
        [
            (one.story, Raw(one.when), Raw(counted(one)), YES[one.as_stated], YES[one.rests],
             YES[one.kept])
            for one in stories
        ],
    )
)  # fmt: skip

# %% [markdown]
# All twenty outcomes are those of the text (*Automatic Replica Rebalance*, user stories and test
# plan; where it states inequalities only, the exact counts follow from its rule).
#
# ## Step by step
#
# The example is one volume with six replicas on node-1, and two more hosts that have just been
# enabled. `AutoBalance` makes one step at a time. It always adds before it deletes, so that the
# volume always has its six replicas, and gives the reason of each step.


# %%
def lopsided(replicas, hosts=3):
    """One volume, all of its replicas on the first of so many hosts."""
    return cluster_of(
        [
            Host(name=f"node-{h + 1}", disks=[Disk(name="disk", maximum=1_000_000)])
            for h in range(hosts)
        ],
        [
            Volume(
                name="data",
                size=1_000,
                actual_size=500,
                number_of_replicas=replicas,
                attached_to="node-1",
                robustness="healthy",
                replicas=[
                    Replica(name=f"r{r + 1}", host="node-1", disk="disk") for r in range(replicas)
                ],
            )
        ],
        settings=Settings(replica_soft_anti_affinity=True),
    )


def walk(cluster, effort):
    """All steps until nothing is left to do; the last one says why."""
    work = AutoBalance(cluster, ek.options.Longhorn(replica_auto_balance=effort))
    steps = [work.step("data")]
    while steps[-1].kind != "nothing":
        steps.append(work.step("data"))
    return steps


steps = walk(lopsided(6), "best-effort")
for step in (*steps[:2], *steps[4:6], steps[-1]):
    print(step, end="\n\n")

# %% [markdown]
# The first two pairs of steps are due to *least effort* (there are hosts without a replica), the
# others to *best effort* (some host holds at least two more than another). Every deletion lists its
# candidates.

# %%
on_hosts = [step.on_hosts for step in steps]
names = [f"node-{h}" for h in (1, 2, 3)]
labels = ["start", *(f"{step.kind}\n{step.disk.split('/')[0]}" for step in steps[:-1])]
figure, ax = plt.subplots(figsize=(9.0, 3.2), layout="constrained")
canvas(ax)
at, below = np.arange(len(labels)), np.zeros(len(labels))
for name, look in zip(names, STYLES, strict=False):
    height = np.array([held.get(name, 0) for held in on_hosts], float)
    ax.bar(
        at, height, 0.72, bottom=below, label=name,
        facecolor=look.colour, edgecolor="white", hatch=look.hatch,
    )  # fmt: skip
    below += height
ax.axhline(6, color=BOUND.colour, linestyle=BOUND.line, linewidth=1.2, label="wanted")
ax.set_xticks(at, labels, fontsize="small")
ax.set_ylabel("replicas of the volume")
legend(ax)
plt.show()

# %% [markdown]
# ## Least and best effort
#
# *Least effort* stops when every possible host holds a replica, which is needed to survive the loss
# of a host. *Best effort* continues until no host holds two more than another. Both start from six
# replicas on node-1:

# %%
ends = {
    effort: walk(lopsided(6), effort)[-1].on_hosts for effort in ("least-effort", "best-effort")
}
figure, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
plots.bars(
    names,
    {"before": [6, 0, 0], **{k: [held.get(n, 0) for n in names] for k, held in ends.items()}},
    "replicas of the volume",
    ax=ax,
)
plt.show()

# %% [markdown]
# The results are 4/1/1 and 2/2/2, as in the text's integration tests.
#
# ## Many volumes, uneven disks
#
# The rule counts the replicas of *one volume*. A system has hundreds of volumes on disks of
# different sizes, and each volume may be spread evenly while one disk is nearly full. The next cell
# generates such a system: sizes follow a power law, some disks hold far more than others, two hosts
# are new and empty, and three volumes in ten have two replicas on one host after an outage.

# %%
GIB, TIB = 2**30, 2**40


def skewed(volumes=240, hosts=14, joined=2, seed=0):
    """A system out of balance."""
    rng = np.random.default_rng(seed)
    host = np.repeat(np.arange(hosts), rng.integers(2, 4, hosts))  # of each disk
    disks = len(host)
    size = rng.zipf(1.5, volumes).clip(max=50) * 4 * GIB
    actual = (size * rng.uniform(0.2, 0.9, volumes)).astype(int)
    old = host < hosts - joined
    room = rng.choice([1, 2, 2, 4], disks).astype(float)
    room = (room * 3.2 * 3 * actual.sum() / room[old].sum()).astype(int)
    popular = np.where(old, room * (rng.pareto(2.0, disks) + 0.3), 0.0)
    used = np.zeros(disks)
    system = []
    for v in range(volumes):
        torn, replicas = rng.random() < 0.3, []
        for r in range(3):
            taken = [disk for disk, _ in replicas]
            able = old & (used + actual[v] < 0.72 * room) & ~np.isin(np.arange(disks), taken)
            same = able & np.isin(host, host[taken])
            apart = able & ~np.isin(host % 3, host[taken] % 3)  # in zones of their own
            if torn and r == 1 and same.any():
                able = same
            else:
                able = apart if apart.any() else able & ~np.isin(host, host[taken])
            weight = popular * able
            disk = int(rng.choice(disks, p=weight / weight.sum()))
            used[disk] += actual[v]
            replicas.append(
                (disk, Replica(name=f"v{v}-r{r}", host=f"h{host[disk]}", disk=f"d{disk}"))
            )
        system.append(
            Volume(
                name=f"v{v}",
                size=int(size[v]),
                actual_size=int(actual[v]),
                number_of_replicas=3,
                attached_to=replicas[0][1].host,
                robustness="healthy",
                replicas=[replica for _, replica in replicas],
            )
        )
    return cluster_of(
        [
            Host(
                name=f"h{h}",
                zone=f"z{h % 3}",
                disks=[
                    Disk(name=f"d{d}", maximum=int(room[d]), available=int(room[d] - used[d]))
                    for d in np.flatnonzero(host == h)
                ],
            )
            for h in range(hosts)
        ],
        system,
        settings=Settings(
            replica_soft_anti_affinity=True, storage_over_provisioning_percentage=300
        ),
    )


system = skewed()
system

# %% [markdown]
# The first two rows are Longhorn's own rule, volume by volume until convergence, with least and
# with best effort. The others are one plan for all volumes (`scope="cluster"`), which spreads every
# volume as well as the rule and balances the disks by bytes: first with no more data to copy than
# the rule, then with more.

# %%
disk_size = system.native.disks.maximum
actual = system.native.volumes.actual
data = float((actual * system.native.volumes.replicas).sum())


def fullest(placement):
    """The share of the fullest disk that is in use, in percent."""
    return 100.0 * float((levelness(system, placement).loads[:, 0] / disk_size).max())


def shared(placement):
    """Volumes of which two replicas share a host."""
    return len(sharing_a_host(system, placement.node, placement.node >= 0))


def by_the_rule(effort):
    """Longhorn's own rule; every replica that it ever added was copied."""
    options = ek.options.Longhorn(replica_auto_balance=effort)
    result = ek.solve(system, "longhorn", options=options)
    added = result.native.volume[result.native.kind == 1]
    return len(added), float(actual[added].sum()), result


def by_one_plan(share=None):
    """One plan for all volumes, with a share of all data to copy beyond the repairs."""
    options = ek.options.Longhorn(
        replica_auto_balance="best-effort", scope="cluster", most_copied=share
    )
    result = ek.solve(system, "longhorn", options=options)
    return result.comparison.moves, result.comparison.bytes_moved, result


rule = {effort: by_the_rule(effort) for effort in ("least-effort", "best-effort")}
plans = {"one plan, no dearer": by_one_plan()}
plans |= {f"one plan, {share:.0%} more": by_one_plan(share) for share in (0.02, 0.05, 0.1, 0.2)}
rows = [
    ("as it is", "0", "0.0", f"{fullest(system.placement):.0f} %", str(shared(system.placement)))
]
rows += [
    (name, f"{copies}", f"{copied / TIB:.1f}", f"{fullest(result.placement):.0f} %",
     str(shared(result.placement)))
    for name, (copies, copied, result) in (rule | plans).items()
]  # fmt: skip
HTML(table(("", "replicas copied", "TiB copied", "fullest disk", "volumes sharing a host"), rows))

# %% [markdown]
# The rule serves its purpose: no volume has two replicas on a host any more. The fullest disk
# hardly changes, because each volume by itself is spread evenly, and best effort adds nothing to
# least effort. One plan repairs the same volumes with the same bytes, and uses every further
# percent of data to lower the fullest disk:

# %%
figure, ax = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
canvas(ax)
copied = [moved / TIB for _, moved, _ in plans.values()]
use = [fullest(result.placement) for _, _, result in plans.values()]
assert use == sorted(use, reverse=True)
ax.plot(
    copied, use, color=STYLES[0].colour, marker=STYLES[0].marker, label="one plan for all volumes"
)
for name, x, y in zip(plans, copied, use, strict=True):
    ax.annotate(
        name.removeprefix("one plan, "), (x, y), xytext=(9, 3), textcoords="offset points",
        fontsize="small",
    )  # fmt: skip
_, moved, result = rule["best-effort"]
ax.plot(
    moved / TIB, fullest(result.placement), linestyle="", marker="s", markersize=11,
    markerfacecolor="none", markeredgecolor=STYLES[1].colour, markeredgewidth=2.2,
    label="Longhorn's rule, least and best effort alike",
)  # fmt: skip
ax.plot(
    0, fullest(system.placement), linestyle="", marker="^", markersize=8, color=STYLES[2].colour,
    label="as it is",
)  # fmt: skip
level = 100.0 * float(actual @ system.native.volumes.replicas / disk_size.sum())
ax.axhline(level, color=BOUND.colour, linestyle=BOUND.line, linewidth=1.2)
ax.annotate("all disks equally full", (0, level), xytext=(0, 4), textcoords="offset points",
            fontsize="small")  # fmt: skip
ax.set(xlabel="TiB copied", ylabel="use of the fullest disk (%)", ylim=(0, 80))
ax.set_xlim(-0.15, max(copied) * 1.18)
legend(ax)
plt.show()

# %% [markdown]
# The next picture shows all disks for the plan that may copy a tenth of the data beyond the
# repairs. Empty disks, including those of the two new hosts, receive their share.

# %%
_, _, chosen = plans["one plan, 10% more"]
figure, ax = plt.subplots(figsize=(9.0, 3.6), layout="constrained")
plots.utilisation(chosen, "bytes", ax=ax).set_xlabel("disks, each curve from the fullest")
plt.show()

# %% [markdown]
# The choice among these points depends on the cost of copying. Without `most_copied` the plan
# weighs both, within the amount that Longhorn's own rule would copy. The result is an ordinary one,
# with moves, bounds and reasons:

# %%
chosen
