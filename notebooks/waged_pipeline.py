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
# clusters with 25,000 partitions and more a run took 30 to 40 seconds, and every event waited for
# it. The redesign of 2022 (Helix wiki, *WAGED Rebalance Pipeline Redesign*) moves work to the
# background: the main thread replaces replicas of lost nodes (an *emergency*) and adds replicas
# where too few serve (an *overwrite*), and a partial rebalance in the background restores evenness,
# unless the next emergency cancels it.
#
# `evenkeel.control.Pipeline` implements this design with two engines: `"helix_waged"`, which places
# bit for bit as Helix does, and `"balance"`. This notebook replays the two timelines of the text
# with a manual clock, and then follows the text's section *Risks*: "test clusters must be put under
# prolonged cluster events to show how their evenness changes over time".

# %%
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from IPython.display import HTML
from matplotlib import pyplot as plt

import evenkeel as ek
from evenkeel import simulate
from evenkeel.control import Delay, InlineWorkers, ManualClock, ManualWorkers, Pipeline
from evenkeel.control.engines.engine import Answer, Scope
from evenkeel.control.pipeline import engine_of
from evenkeel.view import plots
from evenkeel.view.html import Raw, table
from evenkeel.view.plots.canvas import INK, STYLES, canvas, legend

# %% [markdown]
# ## One step
#
# The cluster has twelve nodes in four zones, and sixty partitions with three replicas, of which two
# must serve at any time. A node that goes down keeps its replicas for five units of time. A step
# takes a snapshot of the cluster, and returns the placement.

# %%
ZONES, WINDOW = 4, 5.0
rng = np.random.default_rng(5)
LOAD = rng.integers(2, 7, (60, 2)).astype(float)


def snapshot(nodes=12, down=(), gone=(), since=0.0, load=LOAD):
    """A snapshot of the cluster without replicas: only the pipeline knows their nodes."""
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
# Without a problem, the main thread calculates nothing. With one node down, each partition has two
# replicas, which is enough; with the second one, two partitions are below the minimum, and each
# gets one more replica, which is removed when both nodes have returned. Replicas of a lost node are
# placed again at once, and stay there.
#
# ## The two timelines of the text
#
# A partial rebalance takes two units of time, and an emergency, being smaller, takes one. The next
# cell defines an engine with these durations on the manual clock, and workers that run in the
# background on the same clock.


# %%
@dataclass(eq=False)
class Beside(ManualWorkers):
    """Workers on the manual clock that record the results of their partial runs."""

    clock: ManualClock
    takes: dict
    jobs: list = field(default_factory=list)
    bars: list = field(default_factory=list)  # began, ended, result

    def submit(self, job):
        """Accept a job; it is due after its duration."""
        self.jobs.append((self.clock.now(), job))

    def look(self):
        """Remove the jobs that were stopped."""
        for began, job in [one for one in self.jobs if one[1].stopped.is_set()]:
            self.jobs.remove((began, job))
            self.bars.append((began, self.clock.now(), "killed"))

    def work_until(self, moment):
        """Advance the clock; calculate and deliver due jobs in order."""
        while due := [one for one in self.jobs if self._end(one) <= moment]:
            first = min(due, key=self._end)
            self.jobs.remove(first)
            self.clock.advance(max(0.0, self._end(first) - self.clock.now()))
            first[1].calculate()
            if first[1].scope is Scope.PARTIAL:
                self.bars.append((first[0], self.clock.now(), "done"))
            first[1].deliver()
        self.clock.advance(max(0.0, moment - self.clock.now()))

    def work(self, scope):
        """Deliver the jobs that are due."""
        self.look()
        self.work_until(self.clock.now())

    def close(self, timeout=None):
        """Close; no job is left running."""
        return True

    def waiting(self, scope):
        """Return the number of jobs of a scope in flight."""
        return sum(job.scope is scope and not job.stopped.is_set() for _, job in self.jobs)

    def _end(self, entry):
        return entry[0] + self.takes.get(entry[1].scope, 0.0)


def taking(engine, clock, takes, first=lambda: None):
    """An engine with durations on the manual clock."""

    def calculate(task):
        if takes.get(task.scope):
            first()
        clock.advance(takes.get(task.scope, 0.0))
        return engine(task)

    return calculate


engine = engine_of("helix_waged", None)

# %% [markdown]
# **Before.** Everything runs on the main thread. At every unit of time another node is down for a
# moment, within its delay window, and each step calculates the best possible placement again.

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
        taken = [t for t in queue if t <= began]  # a step takes all events so far
        queue = queue[len(taken) :]
        result = pipeline.run(snapshot(down=[4 + taken[-1]], since=clock.now()))
        before.append((taken, began, clock.now() - start, result))
for taken, began, ended, result in before:
    print(f"events of {taken}: {began:.0f} to {ended:.0f}  {result}")

# %% [markdown]
# **After.** Nodes are lost permanently at 0 and at 1, which are emergencies. At 2 a node is down
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
    for _ in range(3):  # until nothing remains to do
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
# The pictures show the same. Arrows are cluster events; the number in a bar, or in a diamond for a
# step without a calculation, is the version of the best possible placement that the step returns.

# %%
BARS = {"partial": STYLES[0], "emergency": STYLES[1]}
POINTS = {"step that calculates nothing": ("D", "white"), "killed at once": ("X", INK)}


def timeline(ax, rows, events, when):
    """Draw bars and points in rows over time, and arrows for events."""
    canvas(ax)
    seen = set()
    for row, (_, entries) in enumerate(rows):
        for began, ended, kind, label in entries:
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
                label, ((began + ended) / 2, row), xytext=at, textcoords="offset points",
                ha="center", fontsize="small", bbox=box if label else None,
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
# These are the text's two tables. Before, the event at n+1 is answered at n+4. After, the answers
# come at n+1, n+2 and n+2; the second emergency cancels the partial rebalance that started at n+1,
# the one started at n+2 finishes, and triggers a step that returns its result. (The text's steps
# return best possible placements n, n+1, n+1 and n+2; here they are versions 2, 3, 3 and 4.)
#
# ## Five hours of events
#
# This part covers the risk that the text names. Nodes go down and return, are lost permanently, and
# join; loads change. An event happens every minute, with a probability of 0.7. A partial rebalance
# takes two minutes, so that emergencies cancel some, and a node that is down keeps its replicas for
# eight. The list of events is drawn once:


# %%
CHANCES = {"down": 0.24, "back": 0.24, "lost": 0.05, "joins": 0.07, "loads": 0.1, "quiet": 0.3}
MINUTES, NODES, PARTITIONS = 300, 20, 100


def trouble(load, seed=4):
    """Events of a minute each; every zone always has three nodes that serve."""
    rng, events = np.random.default_rng(seed), []
    zone = [n % ZONES for n in range(NODES)]
    serves, away = set(range(NODES)), set()
    for at in 60.0 * np.arange(1, MINUTES + 1):
        what = str(rng.choice(list(CHANCES), p=list(CHANCES.values())))
        in_zone = np.bincount([zone[n] for n in serves], minlength=ZONES)
        able = sorted(away if what == "back" else {n for n in serves if in_zone[zone[n]] > 3})
        if what in ("down", "lost", "back") and able:
            node = int(rng.choice(able))
            serves ^= {node}
            if what == "lost":
                events.append(simulate.At(at, ek.Changes(gone=node)))
                continue
            away ^= {node}
            events.append(
                simulate.At(at, ek.Changes(down=node))
                if what == "down"
                else simulate.At(at, ek.Changes(up=node), suspect_for=0.0)
            )
        elif what == "joins":
            zone.append(int(in_zone.argmin()))
            serves.add(len(zone) - 1)
            new = {"names": [f"new{len(zone)}"], "like": zone[-1]}
            events.append(simulate.At(at, ek.Changes(nodes=new)))
        elif what == "loads":
            some = np.flatnonzero(rng.random(PARTITIONS) < 0.1)
            drawn = rng.integers(2, 7, len(some)).astype(float)
            events.append(
                simulate.At(
                    at,
                    ek.Changes(
                        load_factor={
                            int(p): {"cpu": float(factor)}
                            for p, factor in zip(some, drawn / load[some], strict=True)
                        }
                    ),
                )
            )
            load[some] = drawn
    return events


load = np.random.default_rng(4).integers(2, 7, PARTITIONS).astype(float)
begun = ek.Cluster.from_arrays(
    capacity=np.full((NODES, 2), 200.0),
    dimensions=("cpu", "disk"),
    load=np.stack([load, load[::-1]], axis=1),
    replicas=3,
    min_active=2,
    domains={"zone": np.arange(NODES) % ZONES},
    spread={"zone": 1},
)
begun = begun.with_placement(ek.solve(begun, goals=ek.Goals(level=0.02)).placement)
events = trouble(load.copy())
Counter(
    name
    for event in events
    for name in ("down", "up", "gone", "nodes", "load_factor")
    if getattr(event.changes, name) not in (None, ())
)

# %% [markdown]
# `simulate.play` simulates a cluster with these events and a pipeline, which runs after every
# event, at the end of a window, and at the end of a background calculation. A move takes a tenth of
# a second. Three engines run through the same three hundred minutes, and another hour without
# events: one with emergencies only, as if every partial rebalance were cancelled, and the two of
# the library.


# %%
def firefighting(task):
    """Places as WAGED does, but a partial rebalance leaves everything where it is."""
    is_started = len(task.current.node) > 0
    return Answer(task.current) if task.scope is Scope.PARTIAL and is_started else engine(task)


engines = {
    "balance": engine_of("balance", None),
    "helix_waged": engine,
    "emergencies alone": firefighting,
}
histories, counters, ends = {}, {}, {}
for name, one in engines.items():
    clock = ManualClock()
    beside = Beside(clock, {Scope.PARTIAL: 120.0})
    with simulate.pipeline(
        one, clock=clock, workers=beside, delay=Delay(seconds=480.0)
    ) as pipeline:
        histories[name] = simulate.play(
            begun, events, pipeline, until=60.0 * (MINUTES + 60), name=name
        )
        counters[name] = pipeline.metrics
    assert not histories[name].warnings
    ends[name] = Counter(what for *_, what in beside.bars)

figure, axes = plt.subplots(2, 1, figsize=(10.0, 6.0), layout="constrained", sharex=True)
seconds = histories["balance"].seconds
worst = {name: one.level.max(1) for name, one in histories.items()}  # of both dimensions
plots.compared(seconds, worst, what="fullest node over fair share", ax=axes[0])
plots.course(histories, "moves", what="replicas moved so far", ax=axes[1])
axes[0].set_xlabel("")
plt.show()

# %% [markdown]
# Without partial rebalances, evenness decays, which is the risk. With them it is restored every
# time; a jump is a node that is lost, or returns empty, and a fall is a finished partial rebalance.
# The next picture shows the utilisation of all serving nodes over the same time:

# %%
figure, axes = plt.subplots(1, 3, figsize=(12.0, 3.4), layout="constrained", sharey=True)
for ax, (name, one) in zip(axes, histories.items(), strict=True):
    use = 100.0 * one.series("cpu_share")
    plots.evenness(seconds, use, present=one.alive, what="CPU (%)", ax=ax, title=name)
for ax in axes[1:]:
    ax.set_ylabel("")
axes[0].set_ylim(0.0, 70.0)
plt.show()

# %% [markdown]
# The light spikes down to zero are nodes that join, or return after their window: they are empty
# until the next partial rebalance has finished.
#
# In the table, *below min-active* is the exact number of seconds with fewer than two serving
# replicas, summed over partitions; *came back* counts replicas that returned within an hour to a
# node that they had left; *at rest* is the fullest node after the hour without events.

# %%
rows = []
busy = seconds <= 60.0 * MINUTES
for name, one in histories.items():
    even = worst[name][busy]
    figures = one.table()
    rows.append(
        (
            name,
            *(f"{value:.3f}" for value in (np.median(even), np.quantile(even, 0.95), max(even))),
            f"{worst[name][-1]:.3f}",
            f"{one.total('moves'):,.0f}",
            f"{figures['returns'][-1]:,.0f}",
            f"{one.total('below_min_active'):.1f}",
            f"{one.below_min_active.max():.1f}",
            f"{counters[name]['emergency_rebalance_counter']}",
            f"{ends[name]['done']} / {ends[name]['killed']}",
        )
    )
heads = ("", "max/fair, median", "95 %", "worst", "at rest", "moves", "came back",
         "below min-active (s)", "worst partition (s)", "emergencies",
         "partial, done / killed")  # fmt: skip
HTML(table(heads, rows))

# %% [markdown]
# A partition that falls below its minimum at an event is repaired within seconds by the main
# thread, with any of the three engines. Both engines of the library keep the cluster even during
# five hours of events. `"balance"` needs about half the moves, since its goal is a balanced cluster
# and not one of many equally good baselines.

# %%
median = {name: np.median(one[busy]) for name, one in worst.items()}
assert max(median["balance"], median["helix_waged"]) < 1.15 < median["emergencies alone"]
assert histories["balance"].total("moves") < 0.6 * histories["helix_waged"].total("moves")
assert all(one.below_min_active.max() < 10.0 for one in histories.values())
assert worst["balance"][-1] < 1.05
{name: n for name, n in counters["balance"].items() if name.endswith("counter") and n}

# %% [markdown]
# These counters have Helix's names, so that its dashboards can be used. In production the workers
# are threads (the default of `Pipeline("balance")`), the clock is the system's, and `on_trigger`
# queues the next step.
