# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How far from optimal?
#
# The distance of a placement from the optimum is not visible in the placement itself. Every result
# therefore has bounds that are proven from the input alone: no placement without violations has a
# lower maximum than the first bound, and none reaches the goals with fewer moves than the second.
# This notebook compares `balance` with these bounds, with exact solutions of small clusters, and
# with public instances of the machine-reassignment problem.

# %%
from pathlib import Path

import numpy as np
from IPython.display import HTML, display
from matplotlib import pyplot as plt

import evenkeel as ek
from evenkeel.simulate.generators import expansion
from evenkeel.systems import roadef
from evenkeel.systems.roadef.reassignment import check
from evenkeel.view import plots
from evenkeel.view.html import table

# %% [markdown]
# ## The bounds, one by one
#
# The cluster was just expanded, and 3 % of its nodes are dead. The binding term is the argument
# that gives the bound on the fullest node.

# %%
cluster = expansion(partitions=5_000, nodes=100)
result = ek.solve(cluster, goals=ek.Goals(level=0.02))
bounds = result.bounds
rows = [
    (
        name,
        f"{bounds.fair[d]:.4f}",
        f"{bounds.level[d]:.4f}",
        bounds.level_term[d],
        f"{result.levelness.most[d]:.4f}",
        f"{result.levelness.ratio[d]:.4f}",
    )
    for d, name in enumerate(cluster.dimensions)
]
heads = ("", "fair share", "fullest at least", "binding term", "fullest node", "max/mean")
display(HTML(table(heads, rows)))
print(
    f"{result.comparison.moves:,} moves; repair takes at least {bounds.moves_feasible:,}, balance "
    f"too at least {bounds.moves_level:,} ({bounds.moves_term}): {result.gap.moves:.2%} above "
    f"the bound"
)

# %% [markdown]
# `result.proven` lists each value reached, its bound, and the argument of the proof.

# %%
for one in result.proven:
    print(one)

# %% [markdown]
# ## Tolerance by tolerance
#
# With a smaller tolerance more replicas have to move, and the gap to the bound grows. The gap is
# due in part to the method and in part to the bound.

# %%
tolerances = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
clusters = {seed: expansion(partitions=2_000, nodes=60, zones=6, seed=seed) for seed in (1, 2, 3)}
gaps = {}
for seed, one in clusters.items():
    found = [ek.solve(one, goals=ek.Goals(level=t)) for t in tolerances]
    gaps[f"seed {seed}"] = [100.0 * r.gap.moves for r in found]
    assert all(r.success for r in found)
figure, ax = plt.subplots(figsize=(9, 3.4), layout="constrained")
names = [f"{100 * t:g} %" for t in tolerances]
plots.bars(names, gaps, "moves above the bound (%)", figures="{:.1f}", ax=ax)
ax.set_xlabel("tolerance above the fair share")
plt.show()

# %% [markdown]
# ## The frontier
#
# The picture summarises the bounds and results: no plan can be in the hatched area, and every step
# of the line is a plan that was found.

# %%
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plots.frontier(ek.frontier(cluster, points=12), ax)
plt.show()

# %% [markdown]
# ## Against exact answers
#
# Small clusters can be solved with a proof: within 8 % of the least possible maximum, with the
# fewest moves. The table compares `balance`, the bound of every result, and the stronger bound of
# `result.proved()`. The latter takes seconds for larger clusters; it covers overfull nodes exactly,
# and prices the moves from them by the capacity of their targets. If it equals the number of moves,
# the result is proven optimal.


# %%
def drawn(seed):
    """Draw a small cluster: 6 nodes in 3 zones, 12 partitions twice, loads from 1 to 9, crowded."""
    rng = np.random.default_rng(seed)
    zone = np.array([0, 0, 1, 1, 2, 2])
    pull = rng.dirichlet(np.ones(6))
    nodes = [
        [
            rng.choice(np.flatnonzero(zone == z), p=pull[zone == z] / pull[zone == z].sum())
            for z in rng.choice(3, 2, replace=False)
        ]
        for _ in range(12)
    ]
    return ek.Cluster.from_arrays(
        capacity=[[40.0]] * 6,
        load=rng.integers(1, 10, (12, 1)).astype(float),
        placement=nodes,
        domains={"zone": zone},
        spread={"zone": 1},
    )


goals = ek.Goals(level=0.08)
exact = [ek.solve(drawn(seed), "exact", goals=goals) for seed in range(12)]
greedy = [ek.solve(drawn(seed), goals=goals) for seed in range(12)]
assert all(one.success for one in (*exact, *greedy))
proven = [one.status == "optimal" for one in exact]
lifted = [one.proved() for one in greedy]
series = {
    "bound": [one.bounds.moves_level for one in exact],
    "lifted bound": [one.bounds.moves_level for one in lifted],
    "exact": [one.comparison.moves for one in exact],
    "balance": [one.comparison.moves for one in greedy],
}
figure, ax = plt.subplots(figsize=(10, 3.2), layout="constrained")
plots.bars([str(seed) for seed in range(12)], series, "moves", figures="{:.0f}", ax=ax)
ax.set_xlabel("cluster")
plt.show()
print(
    f"{sum(proven)} of {len(exact)} proven by search, {sum(one.status == 'optimal' for one in lifted)} "
    f"by bounds alone; moves in all: {', '.join(f'{name} {sum(n)}' for name, n in series.items())}"
)

# %% [markdown]
# ## Public instances
#
# The ROADEF/EURO challenge of 2012 published instances of the machine-reassignment problem: a cost
# made of load above a safety capacity, of free capacity out of proportion, and of moves. Two of its
# smallest instances are part of the tests. The published figures are those of team S41 of the
# challenge in 300 seconds, and the best known.
#
# The bound is proven: no assignment can have less load above safety capacity, or less capacity out
# of proportion, than all machines taken together, or than a linear program with divisible
# processes. The binding term is its largest part.

# %%
DATA = Path("../tests/data/roadef")
PUBLISHED = {"a1_1": (44_306_501, 44_306_501), "a1_3": (583_006_422, 583_005_717)}

rows = []
for name, (contest, known) in PUBLISHED.items():
    instance = roadef.read(DATA / f"model_{name}.txt.gz")
    model = roadef.native_of(instance)
    solved = ek.solve(instance, goals=roadef.cost_of(instance), work_limit=20_000_000)
    verdict = check(model, solved.placement.node)  # integers only, and no code of the method's
    assert verdict.feasible
    # the linear program takes long where processes are many, and no bound is the tighter for it
    least = (solved.proved() if len(instance.partitions) <= 100 else solved).bounds.cost
    rows.append(
        (
            name,
            f"{len(instance.nodes):,}",
            f"{len(instance.partitions):,}",
            f"{check(model, model.initial).cost:,}",
            f"{verdict.cost:,}",
            f"{contest:,}",
            f"{known:,}",
            f"{least.total:,.0f}",
            least.term,
            f"{verdict.cost / least.total - 1.0:.4%}",
        )
    )
heads = (
    "",
    "machines",
    "processes",
    "cost before",
    "balance",
    "S41, 300 s",
    "best known",
    "bound",
    "binding term",
    "balance above the bound",
)
display(HTML(table(heads, rows)))
