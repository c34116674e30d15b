"""Run Meta's Rebalancer on an instance; by the Python that has it, which knows nothing else of us.

Usage: rebalancer_side.py INSTANCE.npz PROFILE SECONDS ANSWER.npz. Enumerations are the numbers of
its Thrift schema, since version 1.0.4 of the wheel takes no names.

References
----------
Rebalancer, ProblemSpecs.thrift, SolverSpecs.thrift; Kumar et al., OSDI 2024.
"""

import json
import re
import sys
import time
from pathlib import Path

import numpy as np
from rebalancer import ProblemSolver

ABSOLUTE, LINEAR, SQUARES = 1, 1, 2
NOWHERE = "nowhere"  # a container for what has no node; it is to be emptied like dead nodes

ANY_ZONE = {"moveToScopeItems": {"defaultScopeItems": {"scopeName": "zone"}}}
SAMPLED = [
    {
        "singleRandomStratifiedMoveTypeSpec": {
            "destinationsToExplore": ANY_ZONE,
            "stratifiedSampleSize": {"defaultSampleSize": 20},
        }
    },
    {"swapMoveTypeSpec": {"greedyOnSrc": True, "sampleSize": {"defaultSampleSize": 1000}}},
]
LITTLE = {"formula": LINEAR, "upperBound": 1.03}
# the balance goal and the search of each profile: few moves by taking large replicas first; still
# fewer by looking at 50 replicas before the best is taken, in a stage after what is broken has been
# repaired; as level as can be; soon done
PROFILES = {
    "few": (LITTLE, {"objectOrderingDimension": "d0"}),
    "fewest": (LITTLE, {"minHotObjects": 50}),
    "level": ({"formula": SQUARES}, {}),
    "tolerant": ({"formula": LINEAR, "upperBound": 1.05}, {}),
}


def model(instance, profile, seconds):
    """State an instance in Rebalancer's terms: replicas are objects, nodes containers."""
    balance, search = PROFILES[profile]
    placement, zone, dead = (instance[key] for key in ("placement_before", "zone", "dead"))
    partitions, width = placement.shape
    nodes, dimensions = instance["capacity"].shape
    living = [f"n{n}" for n in np.flatnonzero(~dead)]
    solver = ProblemSolver("bench", "bench")
    solver.disable_scuba_logging()
    solver.set_log_level("ERR")
    solver.set_object_name("replica")
    solver.set_container_name("node")
    inside = {f"n{n}": [] for n in range(nodes)} | {NOWHERE: []}
    names = [[f"{p}.{r}" for r in range(width)] for p in range(partitions)]
    for row, where in zip(names, placement.tolist(), strict=True):
        for name, n in zip(row, where, strict=True):
            inside[NOWHERE if n < 0 else f"n{n}"].append(name)
    solver.set_assignment(inside)
    solver.add_partition("partition", {str(p): row for p, row in enumerate(names)})
    domain = {f"n{n}": f"z{z}" for n, z in enumerate(zone.tolist())}
    solver.add_scope("zone", domain | {NOWHERE: NOWHERE})
    of_living = {"itemsWhitelist": living}
    dead_names = [f"n{n}" for n in np.flatnonzero(dead)]
    solver.add_constraint({"toFreeSpec": {"name": "free", "containers": [*dead_names, NOWHERE]}})
    for d in range(dimensions):
        load = np.repeat(instance["load"][:, [d]], width, axis=1)
        load[:, 0] += instance["leader_extra_load"][:, d]
        sizes = {}
        for row, loads in zip(names, load.tolist(), strict=True):
            sizes |= zip(row, loads, strict=True)
        solver.add_object_dimension(f"d{d}", sizes)
        room = {f"n{n}": c for n, c in enumerate(instance["capacity"][:, d].tolist())}
        solver.add_container_dimension(f"d{d}", room, 0.0)
        common = {"scope": "node", "dimension": f"d{d}", "filter": of_living}
        solver.add_constraint({"capacitySpec": {"name": f"capacity {d}", **common}})
        solver.add_goal({"balanceSpec": {"name": f"balance {d}", **common, **balance}}, 1.0, 1)
    apart = {
        "name": "spread", "scope": "zone", "partitionName": "partition",
        "limit": {"type": ABSOLUTE, "globalLimit": 1},
        "filter": {"itemsBlacklist": [NOWHERE]},
    }  # fmt: skip
    solver.add_constraint({"groupCountSpec": apart})
    moves = {"moveTypeList": SAMPLED, "randomSeed": 1}
    if profile == "fewest":
        stages = [
            {"begin": 0, "end": 1, "solverSpec": moves},
            {"begin": 1, "end": 2, "solverSpec": moves | search},
        ]
        spec = {"localSearchStageSolverSpec": {"stageSpecs": stages, "solveTime": seconds}}
    else:
        spec = {"localSearchSolverSpec": moves | search | {"solveTime": seconds}}
    solver.add_solver(spec)
    return solver


def peak():
    """MiB that this process had at most; what its parent had is not among them."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def main(source, profile, seconds, answer):
    """Solve and write the placement with what it cost."""
    with np.load(source, allow_pickle=False) as arrays:
        instance = {key: arrays[key] for key in arrays.files}
    started = time.perf_counter(), time.process_time()
    solution = model(instance, profile, int(seconds)).solve()
    placed = np.full(instance["placement_before"].shape, -1, np.int32)
    for name, node in solution["assignment"].items():
        p, r = name.split(".")
        placed[int(p), int(r)] = -1 if node == NOWHERE else int(node[1:])
    cost = {
        "wall": time.perf_counter() - started[0],
        "cpu": time.process_time() - started[1],
        "peak_mb": peak(),
    }
    np.savez(answer, placement=placed, cost=json.dumps(cost))


if __name__ == "__main__":
    main(*sys.argv[1:])
