# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # WAGED's pipeline: before its redesign, after it, and under stress
#
# Apache Helix's WAGED rebalancer once calculated everything on the controller's main thread. In
# clusters with 25,000 partitions and more a pass took as long as 30 to 40 seconds, and every
# event waited for it. The redesign of 2022 (Helix wiki, *WAGED Rebalance Pipeline Redesign*)
# moves to the side whatever can wait: the main thread places what sits on lost nodes (an
# *emergency*) and adds replicas where too few serve (an *overwrite*), and a partial rebalance
# beside it brings back evenness, unless the next emergency kills it first.
#
# `evenkeel.control.Pipeline` is that design, over either of two engines: `"helix_waged"`, which
# places bit for bit as Helix does, and `"balance"`. This notebook replays the two timelines of
# the text by a clock that is turned by hand, and then does what the text asks for under
# *Risks*: "test clusters must be put under prolonged cluster events to show how their evenness
# changes over time".

# %%
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from IPython.display import HTML
from matplotlib import pyplot as plt

import evenkeel as ek
from evenkeel.control import Delay, InlineWorkers, ManualClock, Pipeline, Workers
from evenkeel.control.engine import Answer, Scope
from evenkeel.control.engines import engine_of
from evenkeel.measure.levelness import levelness
from evenkeel.view import plots
from evenkeel.view.markup import Raw, table
from evenkeel.view.plots.canvas import canvas, legend
from evenkeel.view.plots.palette import INK, STYLES

# %% [markdown]
# ## What one step does
#
# Twelve nodes in four zones, sixty partitions with three replicas, of which two must serve at
# any time. A node that goes down keeps its replicas for five units of time; who knows whether
# it comes back. A step is called with a snapshot of the cluster, and says where replicas should
# be now.

# %%
ZONES, WINDOW = 4, 5.0
rng = np.random.default_rng(5)
LOAD = rng.integers(2, 7, (60, 2)).astype(float)


def snapshot(nodes=12, down=(), gone=(), since=0.0, load=LOAD):
    """The cluster as somebody sees it: nobody but the pipeline knows where replicas are."""
    alive, lost = np.ones(nodes, bool), np.zeros(nodes, bool)
    alive[[*down, *gone]], lost[list(gone)] = False, True
    return ek.Cluster.from_arrays(
        capacity=np.full((nodes, 2), 100.0),
        dimensions=("cpu", "disk"),
        load=load,
        replicas=3,
        min_active=2,
        domains={"zone": np.arange(nodes) % ZONES},
        spread={"zone": 1},
        alive=alive,
        gone=lost,
        since=np.where(alive, np.nan, since),
    )


clock = ManualClock()
events = [
    ("the first step ever", {}),
    ("nothing has happened", {}),
    ("n0 goes down", {"down": [0]}),
    ("n1 goes down as well", {"down": [0, 1]}),
    ("both come back", {}),
    ("n2 is lost for good", {"gone": [2]}),
    ("nothing has happened", {"gone": [2]}),
]
rows = []
with Pipeline(
    "helix_waged", clock=clock, workers=InlineWorkers(), delay=Delay(seconds=WINDOW)
) as pipeline:
    for what, state in events:
        clock.advance(1.0)
        step = pipeline.run(snapshot(since=clock.now(), **state))
        done = [
            name
            for name in ("emergency", "overwritten", "partial_started", "baseline_started")
            if getattr(step, name)
        ]
        rows.append((what, Raw(", ".join(done) or "—"), f"{len(step.assignment.node)}",
                     str(step.best_version), str(step.baseline_version)))  # fmt: skip
heads = ("event", "what the step did", "replicas", "best possible", "baseline")
HTML(table(heads, rows))

# %% [markdown]
# Nothing is calculated on the main thread where nothing is wrong. One node down leaves two
# replicas of each partition, which is enough; the second one takes two partitions below the
# minimum, and each gets one more replica that is given up again once both nodes are back. A
# lost node's replicas are placed anew at once, and kept there.
#
# ## The two timelines of the text
#
# A partial rebalance takes two units of time and an emergency, being smaller, takes one. Here
# is an engine that does so by the clock, and workers that run beside the main thread by the
# same clock. That is all it takes to see the pipeline think: `Workers` has two methods.


# %%
@dataclass(eq=False)
class Beside(Workers):
    """Workers that take time by the clock, and write down what becomes of their partial runs."""

    clock: ManualClock
    takes: dict
    jobs: list = field(default_factory=list)
    bars: list = field(default_factory=list)  # began, ended, what came of it

    def submit(self, job):
        """Take a job; it is due when its time has passed."""
        self.jobs.append((self.clock.now(), job))

    def look(self):
        """Send home whoever was told to stop."""
        for began, job in [one for one in self.jobs if one[1].stopped.is_set()]:
            self.jobs.remove((began, job))
            self.bars.append((began, self.clock.now(), "killed"))

    def work_until(self, moment):
        """Let time pass; what is due is calculated and delivered in its order."""
        while due := [one for one in self.jobs if self._end(one) <= moment]:
            first = min(due, key=self._end)
            self.jobs.remove(first)
            self.clock.advance(max(0.0, self._end(first) - self.clock.now()))
            first[1].calculate()
            if first[1].scope is Scope.PARTIAL:
                self.bars.append((first[0], self.clock.now(), "done"))
            first[1].deliver()
        self.clock.advance(max(0.0, moment - self.clock.now()))

    def close(self, timeout=None):
        """Nobody is left running."""
        return True

    def _end(self, entry):
        return entry[0] + self.takes.get(entry[1].scope, 0.0)


def taking(engine, clock, takes, first=lambda: None):
    """An engine that takes time by the clock."""

    def calculate(task):
        if takes.get(task.scope):
            first()
        clock.advance(takes.get(task.scope, 0.0))
        return engine(task)

    return calculate


engine = engine_of("helix_waged", None)

# %% [markdown]
# **Before.** Everything runs on the main thread. At every unit of time another node drops out
# for a moment, within its delay window, and each step calculates the best possible again.

# %%
clock = ManualClock()
slow = taking(engine, clock, {Scope.PARTIAL: 2.0})
window = Delay(seconds=100.0)
before = []
with Pipeline(slow, clock=clock, workers=InlineWorkers(), delay=window) as pipeline:
    pipeline.run(snapshot())
    start = clock.now()
    queue = [0, 1, 2, 3, 4]
    while queue:
        clock.advance(max(0.0, start + queue[0] - clock.now()))
        began = clock.now() - start
        taken = [t for t in queue if t <= began]  # a step takes up all that has come
        queue = queue[len(taken) :]
        result = pipeline.run(snapshot(down=[4 + taken[-1]], since=clock.now()))
        before.append((taken, began, clock.now() - start, result))
for taken, began, ended, result in before:
    print(f"events of {taken}: {began:.0f} to {ended:.0f}  {result}")

# %% [markdown]
# **After.** Nodes are lost for good at 0 and at 1, which are emergencies. At 2 a node drops out
# for a moment; at 3 and 4 nothing happens.

# %%
clock = ManualClock()
beside = Beside(clock, {Scope.PARTIAL: 2.0})
quick = taking(engine, clock, {Scope.EMERGENCY: 1.0}, beside.look)
after, start, latest = [], 0.0, snapshot()


def step(why):
    """One step of the main thread on the latest snapshot."""
    began = clock.now() - start
    result = pipeline.run(latest)
    after.append((why, began, clock.now() - start, result))


with Pipeline(
    quick, clock=clock, workers=beside, delay=window, on_trigger=lambda: step("trigger")
) as pipeline:
    for _ in range(3):  # until nothing is left to do
        pipeline.run(latest)
        beside.work_until(clock.now() + 4.0)
    start = clock.now()
    after.clear()
    beside.bars.clear()
    for moment, state in (
        (0, {"gone": [0]}),
        (1, {"gone": [0, 5]}),
        (2, {"gone": [0, 5], "down": [7]}),
    ):
        beside.work_until(max(start + moment, clock.now()))
        latest = snapshot(since=clock.now(), **state)
        step("event")
    beside.work_until(start + 4.0)
for why, began, ended, result in after:
    print(f"{why:7s} {began:.0f} to {ended:.0f}  {result}")
runs = [(began - start, ended - start, what) for began, ended, what in beside.bars]
runs

# %% [markdown]
# The same as pictures. Arrows are cluster events; the number in a bar, or in a diamond for a
# step that calculates nothing, is the version of the best possible that the step returns.

# %%
BARS = {"partial": STYLES[0], "emergency": STYLES[1]}
POINTS = {"step that calculates nothing": ("D", "white"), "killed at once": ("X", INK)}


def timeline(ax, rows, events, when):
    """Draw bars and points in rows over time, and arrows for events."""
    canvas(ax)
    seen = set()
    for row, (_, entries) in enumerate(rows):
        for began, ended, kind, said in entries:
            label = None if kind in seen else kind
            seen.add(kind)
            if kind in POINTS:
                marker, face = POINTS[kind]
                ax.plot(
                    began, row, marker=marker, markersize=11, linestyle="", zorder=3,
                    color=face, markeredgecolor=INK, label=label,
                )  # fmt: skip
                at, box = (0, -19), None
            else:
                ax.barh(
                    row, ended - began, left=began, height=0.46, facecolor=BARS[kind].colour,
                    edgecolor="white", hatch=BARS[kind].hatch, linewidth=1.2, label=label,
                )  # fmt: skip
                at, box = (0, -4), {"facecolor": "white", "linewidth": 0, "pad": 1.5}
            ax.annotate(
                said, ((began + ended) / 2, row), xytext=at, textcoords="offset points",
                ha="center", fontsize="small", bbox=box if said else None,
            )  # fmt: skip
    for moment in events:
        arrow = {"arrowstyle": "-|>", "color": INK}
        ax.annotate("", (moment, -0.42), xytext=(moment, -0.85), arrowprops=arrow)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.set_ylim(len(rows) - 0.4, -0.95)
    ax.set_xlim(-0.15, 6.15)
    ax.set_xticks(range(7), ["t = n", *(f"n + {k}" for k in range(1, 7))])
    ax.set_ylabel(when)
    legend(ax)


nothing, killed = POINTS
main_before = [(began, ended, "partial", str(one.best_version)) for _, began, ended, one in before]
main_after = [
    (began, ended, "emergency" if one.emergency else nothing, str(one.best_version))
    for _, began, ended, one in after
]
aside = [(*span, killed if what == "killed" else "partial", "") for *span, what in runs]
figure, axes = plt.subplots(
    2, 1, figsize=(9.0, 5.0), layout="constrained", height_ratios=(2, 3), sharex=True
)
timeline(axes[0], [("main thread", main_before)], range(5), "before")
timeline(axes[1], [("main thread", main_after), ("beside it", aside)], range(3), "after")
plt.show()

# %% [markdown]
# These are the text's two tables. Before, the event at n+1 is answered at n+4. After, the
# answers come at n+1, n+2 and n+2; the partial rebalance started at n+1 is killed by the second
# emergency, the one started at n+2 finishes, and its result is shown by a step that it triggers
# itself. (The text's steps return best possibles n, n+1, n+1 and n+2; here they are versions 2,
# 3, 3 and 4.)
#
# ## Five hours of trouble
#
# Now the risk that the text names. Nodes drop out and come back, are lost for good, and join;
# loads change. Something happens every minute (or, three times in ten, nothing does). A partial
# rebalance takes two minutes, so that emergencies do kill some, and a node that is down keeps
# its replicas for eight.


# %%
CHANCES = {"down": 0.24, "back": 0.24, "lost": 0.05, "joins": 0.07, "loads": 0.1, "quiet": 0.3}


class World:
    """A cluster to which things happen; every zone always has three nodes that serve."""

    def __init__(self, nodes=20, partitions=100, seed=4):
        self.rng = np.random.default_rng(seed)
        self.zone = np.arange(nodes) % ZONES
        self.up, self.lost = np.ones(nodes, bool), np.zeros(nodes, bool)
        self.since = np.full(nodes, np.nan)
        self.load = self.rng.integers(2, 7, (partitions, 2)).astype(float)
        self.now = 0.0

    def happens(self):
        """Let one thing happen, and say what it was."""
        self.now += 1.0
        event = str(self.rng.choice(list(CHANCES), p=list(CHANCES.values())))
        serving = self.up & ~self.lost
        in_zone = np.bincount(self.zone[serving], minlength=ZONES)
        candidates = {
            "back": np.flatnonzero(~self.up & ~self.lost),
            "down": np.flatnonzero(serving & (in_zone[self.zone] > 3)),
        }
        candidates["lost"] = candidates["down"]
        if event in candidates:
            if len(candidates[event]) == 0:
                return "quiet"
            node = self.rng.choice(candidates[event])
            self.up[node] = event == "back"
            self.lost[node] = event == "lost"
            self.since[node] = np.nan if event == "back" else self.now
        elif event == "joins":
            self.zone = np.append(self.zone, in_zone.argmin())
            self.up, self.lost = np.append(self.up, True), np.append(self.lost, False)
            self.since = np.append(self.since, np.nan)
        elif event == "loads":
            some = self.rng.random(len(self.load)) < 0.1
            self.load = np.where(some[:, None], self.rng.integers(2, 7, self.load.shape), self.load)
        return event

    def snapshot(self):
        """The cluster as it is now."""
        return ek.Cluster.from_arrays(
            capacity=np.full((len(self.zone), 2), 200.0),
            dimensions=("cpu", "disk"),
            load=self.load,
            replicas=3,
            min_active=2,
            domains={"zone": self.zone},
            spread={"zone": 1},
            alive=self.up & ~self.lost,
            gone=self.lost,
            since=self.since,
        )


# %% [markdown]
# After every event the pipeline makes a step, and what it returns is carried out at once.
# Measured are the fullest node that serves over the mean, in the tightest dimension; the
# replicas that moved so far; and the partitions of which fewer than two replicas serve, as the
# event strikes and after the step.


# %%
def use_of(cluster, placement):
    """How full each node is that serves, in percent of the tightest dimension; NaN for others."""
    found = levelness(cluster, placement)
    serves = cluster.nodes.alive
    use = 100.0 * found.table[:, found.table[serves].mean(0).argmax()]
    return np.where(serves, use, np.nan)


def short(cluster, placement):
    """Partitions with fewer replicas that serve than they must have."""
    serves = (placement.node >= 0) & cluster.nodes.alive[placement.node]
    return int((np.bincount(placement.owner[serves], minlength=len(cluster.partitions)) < 2).sum())


def came(before, after):
    """Replicas on nodes where their partition had none before."""
    one, other = ({*zip(p.owner.tolist(), p.node.tolist(), strict=True)} for p in (before, after))
    return len(other - one)


class Run:
    """An engine under the events of a world."""

    def __init__(self, engine):
        self.world, self.clock = World(), ManualClock()
        self.beside = Beside(self.clock, {Scope.PARTIAL: 2.0})
        self.use, self.moves, self.struck, self.left = [], [], [], []
        self.counts, self.moved, self.held = Counter(), 0, None
        self.pipeline = Pipeline(
            engine, clock=self.clock, workers=self.beside, delay=Delay(seconds=8.0),
            on_trigger=self.step,
        )  # fmt: skip
        self.rest()

    def step(self):
        """One step of the main thread; what it returns is carried out at once."""
        result = self.pipeline.run(self.cluster)
        self.beside.look()
        self.moved += 0 if self.held is None else came(self.held, result.placement)
        self.held = result.placement
        self.counts["emergencies"] += result.emergency
        self.counts["overwrites"] += result.overwritten
        self.counts["neither"] += not (result.emergency or result.overwritten)
        assert not result.failures

    def event(self):
        """Let something happen, and react."""
        self.counts[self.world.happens()] += 1
        self.beside.work_until(self.world.now)
        self.cluster = self.world.snapshot()
        self.struck.append(short(self.cluster, self.held))
        self.step()
        self.left.append(short(self.cluster, self.held))
        self.use.append(use_of(self.cluster, self.held))
        self.moves.append(self.moved)

    def rest(self):
        """Leave it alone until every window has ended and nothing is left to do."""
        for _ in range(4):
            self.world.now += 10.0
            self.beside.work_until(self.world.now)
            self.cluster = self.world.snapshot()
            self.step()


def uneven(use):
    """The fullest node over the mean."""
    return float(np.nanmax(use) / np.nanmean(use))


# %% [markdown]
# Three engines go through the same three hundred minutes: one that only ever puts out fires, as
# if every partial rebalance were killed, and the two of the library.


# %%
def firefighting(task):
    """Places as WAGED does, but a partial rebalance leaves everything where it is."""
    is_started = len(task.current.node) > 0
    return Answer(task.current) if task.scope is Scope.PARTIAL and is_started else engine(task)


runs = {
    "balance": Run(engine_of("balance", None)),
    "helix_waged": Run(engine_of("helix_waged", None)),
    "emergencies alone": Run(firefighting),
}
for run in runs.values():
    run.counts.clear()
    run.beside.bars.clear()
    run.moved = 0
    for _ in range(300):
        run.event()

seconds = 60.0 * np.arange(300)
figure, axes = plt.subplots(2, 1, figsize=(10.0, 6.0), layout="constrained", sharex=True)
plots.compared(
    seconds,
    {name: [uneven(use) for use in run.use] for name, run in runs.items()},
    what="fullest node, max/mean",
    ax=axes[0],
)
plots.compared(
    seconds,
    {name: run.moves for name, run in runs.items()},
    what="replicas moved so far",
    ax=axes[1],
)
axes[0].set_xlabel("")
plt.show()

# %% [markdown]
# Evenness does decay where nobody looks after it: that is the risk. With partial rebalances it
# comes back every time; a jump is a node that is lost, or comes back empty, and a fall is a
# partial rebalance that was allowed to finish. How full all nodes are, over the same time:

# %%
figure, axes = plt.subplots(1, 3, figsize=(12.0, 3.4), layout="constrained", sharey=True)
for ax, (name, run) in zip(axes, runs.items(), strict=True):
    nodes = len(run.world.zone)
    use = np.array([np.pad(one, (0, nodes - len(one)), constant_values=np.nan) for one in run.use])
    what = f"{name}: use (%)"
    plots.evenness(seconds, np.nan_to_num(use), present=~np.isnan(use), what=what, ax=ax)
axes[0].set_ylim(0.0, 60.0)
plt.show()

# %% [markdown]
# The light spikes that reach down to nothing are nodes that join, or come back after their
# window: they are empty until the next partial rebalance has finished.
#
# In figures. *Below min-active* counts partitions of which fewer than two replicas serve, added
# up over the minutes: as the events strike, and what is left of it after the step. *At rest* is
# the fullest node once the cluster has been left alone.

# %%
rows = []
for name, run in runs.items():
    even = [uneven(use) for use in run.use]
    ends = Counter(what for *_, what in run.beside.bars)
    struck, left, moved = sum(run.struck), sum(run.left), run.moves[-1]
    told = [run.counts[what] for what in ("emergencies", "overwrites")]
    run.rest()
    rows.append(
        (
            name,
            *(f"{value:.3f}" for value in (np.median(even), np.quantile(even, 0.95), max(even))),
            f"{uneven(use_of(run.cluster, run.held)):.3f}",
            f"{moved:,}",
            f"{struck} → {left}",
            *map(str, told),
            f"{ends['done']} / {ends['killed']}",
        )
    )
    assert left == 0
heads = ("", "max/mean, median", "95 %", "worst", "at rest", "moves", "below min-active",
         "emergencies", "overwrites", "partial, done / killed")  # fmt: skip
HTML(table(heads, rows))

# %% [markdown]
# What it shows: no minute passes with a partition below its minimum once the step has been
# made, under either engine, whatever strikes. Both keep the cluster even through five hours of
# trouble; `"balance"` a little more so and with about half the moves, since it heads for a
# level cluster and not for one baseline among many that are as good. Where it is left alone it
# comes to rest within a percent of level.

# %%
median = {name: np.median([uneven(use) for use in run.use]) for name, run in runs.items()}
assert median["balance"] <= median["helix_waged"] < median["emergencies alone"]
assert runs["balance"].moves[-1] < 0.6 * runs["helix_waged"].moves[-1]
assert uneven(use_of(runs["balance"].cluster, runs["balance"].held)) < 1.02
{name: n for name, n in runs["balance"].pipeline.metrics.items() if name.endswith("counter") and n}

# %% [markdown]
# These counters have the names that Helix gives them, so that its dashboards can stay. In
# production the workers are threads (`Pipeline("balance")` is all it takes), the clock is the
# system's, and `on_trigger` queues the next step.
