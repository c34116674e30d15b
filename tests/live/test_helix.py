"""Apache Helix, live: what its controller assigns is what is computed from its records before."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenkeel as ek
from evenkeel.control import InlineWorkers, Pipeline
from tests.live import folders
from tests.live.daemons import call, until
from tests.live.helix_cluster import REBALANCER, Helix
from tests.live.parts import say
from tests.live.seen import Where, apart, height, moves_between, where

ZONES = "abcd"
INSTANCES = {f"h{i}_1": ZONES[i // 3] for i in range(12)}

STRATEGIES = {
    "orders": ("CrushEdRebalanceStrategy", "helix_crushed", 24),
    "users": ("CrushRebalanceStrategy", "helix_crush", 15),
    "logs": ("MultiRoundCrushRebalanceStrategy", "helix_multiround", 20),
    "tail": ("AutoRebalanceStrategy", "helix_auto", 10),
}
"""The strategy of each resource, the method for it, and its partitions."""


@pytest.fixture(scope="module")
def helix() -> Iterator[Helix]:
    found = Helix()
    yield found
    found.stop()


def begin(helix: Helix, cluster: str, settings=(), **maps) -> None:
    """Make a cluster whose instances have all joined, and no controller yet."""
    helix.make(cluster, dict(settings))
    for name, zone in INSTANCES.items():
        helix.instance(cluster, name, zone, **maps)
        helix.join(cluster, name)


def of(seen: Where, resource: str) -> Where:
    """The partitions of one resource."""
    return {name: row for name, row in seen.items() if name.startswith(f"{resource}_")}


class Crush:
    """A cluster whose resources use Helix's own strategies, and what is foreseen for them."""

    def __init__(self, helix: Helix) -> None:
        self.helix, self.name = helix, "crush"
        # a record that is written is a change, after which some strategies decide anew
        begin(helix, self.name, {"PERSIST_BEST_POSSIBLE_ASSIGNMENT": "false"})
        for resource, (strategy, _, partitions) in STRATEGIES.items():
            named = f"{REBALANCER}.strategy.{strategy}"
            helix.resource(self.name, resource, partitions, REBALANCE_STRATEGY=named)
        self.seen = self.read()

    def read(self) -> ek.Cluster:
        self.dump = self.helix.settled(self.name)
        return ek.read([self.dump])

    def foreseen(self, cluster: ek.Cluster) -> dict[str, Where]:
        """What each method answers for the resources of its strategy."""
        return {
            resource: of(where(cluster, ek.solve(cluster, method).placement), resource)
            for resource, (_, method, _) in STRATEGIES.items()
        }

    def comes(self, foreseen: dict[str, Where], what: str, *, later: str = "") -> None:
        """Compare what the controller assigned with what was foreseen.

        Of the resource ``later`` the controller decides again while replicas are under way; there
        the last answer is compared, which is to be the one that it would give once more.
        """
        before, self.seen = where(self.seen), self.read()
        if later:
            again = ek.solve(self.seen, STRATEGIES[later][1])
            assert not [m for m in again.moves if m.partition.startswith(later)]
            foreseen = {name: rows for name, rows in foreseen.items() if name != later}
        now = where(self.seen)
        wrong = {r: apart(of(now, r), rows) for r, rows in foreseen.items()}
        moved = len(apart(now, before))
        say(f"{what}: {moved} partitions changed; otherwise than foreseen: "
            f"{ {r: len(rows) for r, rows in wrong.items()} }")  # fmt: skip
        assert not any(wrong.values()), wrong


@pytest.fixture(scope="module")
def crush(helix: Helix) -> Crush:
    return Crush(helix)


def test_strategies_assign_what_is_computed_from_nothing(crush):
    foreseen = crush.foreseen(crush.seen)
    crush.helix.do("control", crush.name)
    crush.comes(foreseen, "nothing assigned so far")


@pytest.mark.parametrize("lost", ["h4_1", "h0_1"])
def test_a_lost_instance(crush, lost):
    foreseen = crush.foreseen(crush.seen.down(lost))
    crush.helix.leave(crush.name, lost)
    crush.comes(foreseen, f"{lost} lost")


def test_one_comes_back(crush):
    foreseen = crush.foreseen(crush.seen.up("h4_1"))
    crush.helix.join(crush.name, "h4_1")
    crush.comes(foreseen, "h4_1 back", later="tail")


def test_one_that_is_disabled(crush):
    crush.helix.instance(crush.name, "h7_1", "c", simple={"HELIX_ENABLED": "false"})
    crush.comes(crush.foreseen(crush.seen.down("h7_1")), "h7_1 disabled")


def test_in_maintenance_nothing_is_placed_anew(crush):
    helix, before = crush.helix, where(crush.seen)
    helix.put(crush.name, "CONTROLLER/MAINTENANCE", {"REASON": "test"})
    foreseen = crush.foreseen(crush.seen.down("h9_1"))
    helix.leave(crush.name, "h9_1")
    held = where(crush.read())
    assert all({*held[p][0]} <= {*before[p][0]} for p in before)
    helix.do("remove", crush.name, "CONTROLLER/MAINTENANCE")
    crush.comes(foreseen, "h9_1 lost in maintenance, which ended")


def operation(name: str) -> dict[str, list[str]]:
    """Return the list of an instance's record that has it do this from now on."""
    row = {"OPERATION": name, "REASON": "", "SOURCE": "USER", "TIMESTAMP": "0"}
    return {"HELIX_INSTANCE_OPERATIONS": [json.dumps(row)]}


def test_an_instance_is_swapped_for_another(crush):
    helix, name, out, new = crush.helix, crush.name, "h4_1", "h12_1"
    foreseen = crush.foreseen(crush.seen)
    helix.instance(name, new, "b", logical=out, lists=operation("SWAP_IN"))
    helix.join(name, new)
    crush.comes(foreseen, f"{new} swapped in beside {out}", later="tail")
    views = [file.read_text() for file in (crush.dump / "EXTERNALVIEW").iterdir()]
    assert any(new in view for view in views)  # both have the same, and it counts once

    helix.instance(name, out, "b", lists=operation("UNKNOWN"))
    helix.instance(name, new, "b", logical=out, lists=operation("ENABLE"))
    helix.leave(name, out)
    # records are written one by one, and meanwhile `tail` is dealt without either
    renamed = {
        resource: {
            partition: (sorted(new if n == out else n for n in held), new if led == out else led)
            for partition, (held, led) in rows.items()
        }
        for resource, rows in foreseen.items()
        if resource != "tail"
    }
    crush.comes(renamed, f"{new} in the place of {out}")
    assert not any(out in held for held, _ in where(crush.seen).values())


def beside(start: ek.Cluster, seen: ek.Cluster, what: str) -> None:
    """Compare the controller's answer with ours from the same start, asked for its level."""
    before, theirs = where(start), where(seen)
    nodes = int(start.nodes.alive.sum())
    reached = height(theirs, nodes)
    result = ek.solve(start, "balance", goals=ek.Goals(level=reached - 1.0))
    ours = where(start, result.placement)
    counts = [moves_between(before, one) for one in (theirs, ours)]
    say(f"{what}: controller max/mean {reached:.3f}, {counts[0]} moves; "
        f"evenkeel {height(ours, nodes):.3f}, {counts[1]} moves")  # fmt: skip
    assert height(ours, nodes) <= reached + 1e-9 and counts[1] <= counts[0]


@pytest.fixture
def alone() -> Iterator[Helix]:
    """A controller in a process of its own, as people run it.

    After four strategies in one process WAGED's answer from nothing was another: once all had
    been assigned as foreseen, it changed 9 of 32 partitions, for a reason that was not found.
    """
    found = Helix()
    yield found
    found.stop()


def test_waged_in_step_with_the_pipeline(alone):
    helix, name = alone, "waged"
    begin(
        helix,
        name,
        {"DELAY_REBALANCE_ENABLED": "false", "GLOBAL_REBALANCE_ASYNC_MODE": "false"},
        maps={"INSTANCE_CAPACITY_MAP": {"cpu": 1000, "disk": 5000}},
    )
    maps = {"DEFAULT_PARTITION_WEIGHT_MAP": {"cpu": 10, "disk": 50}}
    helix.put(
        name, f"CONFIGS/CLUSTER/{name}",
        {
            "TOPOLOGY_AWARE_ENABLED": "true", "TOPOLOGY": "/zone/host", "FAULT_ZONE_TYPE": "zone",
            "PERSIST_BEST_POSSIBLE_ASSIGNMENT": "true", "GLOBAL_REBALANCE_ASYNC_MODE": "false",
        },
        maps, {"INSTANCE_CAPACITY_KEYS": ["cpu", "disk"]},
    )  # fmt: skip
    for resource, partitions in (("db", 20), ("index", 12)):
        helix.resource(
            name, resource, partitions,
            REBALANCER_CLASS_NAME=f"{REBALANCER}.waged.WagedRebalancer",
        )  # fmt: skip
    unassigned = ek.read([helix.settled(name, quiet=1.0)])
    helix.do("control", name)
    with Pipeline("helix_waged", workers=InlineWorkers()) as pipeline:

        def step(cluster: ek.Cluster, what: str) -> ek.Cluster:
            foreseen = where(cluster, pipeline.run(cluster).placement)
            seen = ek.read([helix.settled(name)])
            wrong = apart(where(seen), foreseen)
            say(f"{what}: {len(wrong)} of {len(foreseen)} otherwise than foreseen")
            assert not wrong
            return seen

        seen = step(unassigned, "WAGED from nothing")
        helix.leave(name, "h4_1")
        start, seen = seen.down("h4_1"), step(seen.down("h4_1"), "WAGED, h4_1 lost")
        beside(start, seen, "h4_1 lost")
        helix.join(name, "h4_1")
        start, seen = seen.up("h4_1"), step(seen.up("h4_1"), "WAGED, h4_1 back")
        beside(start, seen, "h4_1 back")


def test_a_folder_is_carried_out_in_semi_auto(helix, tmp_path):
    name = "semi"
    begin(helix, name)
    first = [*INSTANCES][::3][:3]
    lists = {f"books_{i}": first for i in range(12)}
    helix.resource(name, "books", 12, REBALANCE_MODE="SEMI_AUTO", lists=lists)
    helix.do("control", name)
    before = where(ek.read([helix.settled(name)]))

    def plan(folder: str, *words: object) -> Path:
        dump = helix.settled(name, quiet=1.0)
        return folders.plan([dump], tmp_path / folder, "--protocol", "helix", *words)

    def run(folder: Path, *words: str) -> None:
        command = [folders.program(tmp_path), "run", folder, *words]
        say(call(command, env=helix.env(name), timeout=300).strip())

    folder = plan("move", "--level", "0.1", "--leaders", "0.1")
    folders.killed(
        folder, helix.env(name), lambda: apart(where(ek.read([helix.dump(name)[0]])), before)
    )
    dump, rest = helix.settled(name, quiet=1.0), tmp_path / "rest"
    call([folders.program(tmp_path), "resume", folder / "plan.json", dump, "-o", rest])
    run(rest)
    target = ek.read_plan(folder / "plan.json")
    until(
        "as planned",
        lambda: (
            not apart(
                where(ek.read([helix.settled(name, quiet=1.0)])), where(target.cluster, target.end)
            )
        ),
        timeout=60,
    )
    again = ek.solve(ek.read([helix.settled(name)]), goals=ek.Goals(level=0.1, leaders=0.1))
    assert (len(again.moves), len(again.leader_changes)) == (0, 0)
    run(folder / "undo")
    assert not apart(where(ek.read([helix.settled(name)])), before)
