"""What people get wrong is told as what it is, and never crashes from deep inside."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.methods.registry import METHODS
from tests.support.processes.output import without_progress


def cluster():
    """Four partitions on two of three nodes."""
    return ek.Cluster.from_arrays(
        capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4, domains={"zone": [*"abc"]}
    )


def level():
    """That cluster, levelled."""
    return ek.solve(cluster(), goals=ek.Goals(level=0.0))


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: ek.solve(cluster(), level=0.05), "write goals=evenkeel.Goals(level=...)"),
        (lambda: ek.solve(cluster(), moves=3), "write limits=evenkeel.Limits(moves=...)"),
        (lambda: level().plan(copies=1), "write throttle=evenkeel.Throttle(copies=...)"),
        (lambda: ek.frontier(cluster(), leaders=0.1), "write goals=evenkeel.Goals(leaders=...)"),
        (lambda: ek.solve(cluster(), sed=1), "did you mean 'seed'?"),
    ],
)
def test_a_field_of_an_argument_is_named_as_one(call, hint):
    with pytest.raises(ek.InvalidInput, match=re.escape(f"unknown argument; {hint}")):
        call()


MISTAKES = {
    "a method in a list": (lambda: ek.solve(cluster(), ["balance"]), "method"),
    "a seed of 70 bits": (lambda: ek.solve(cluster(), seed=2**70), "seed"),
    "a seed that is true": (lambda: ek.solve(cluster(), seed=True), "seed"),
    "half a step of work": (lambda: ek.solve(cluster(), work_limit=1.5), "work_limit"),
    "less than no time": (lambda: ek.solve(cluster(), time_limit=-1.0), "time_limit"),
    "less than no time for a proof": (lambda: level().proved(-1.0), "time_limit"),
    "a proof without end or number": (lambda: level().proved(float("nan")), "time_limit"),
    "half a partition": (lambda: level().explain(1.5), "partition"),
    "no partition": (lambda: level().explain(None), "partition"),
    "a number as throttle": (lambda: level().plan(throttle=2), "throttle"),
    "zero as throttle": (lambda: level().plan(throttle=0), "throttle"),
    "a number as protocol": (lambda: level().plan(protocol=5), "protocol"),
    "a plan of no cluster": (lambda: ek.plan(None, level()), "cluster"),
    "half a step": (lambda: level().plan().prefix(1.5), "count"),
    "a result in place of a cluster": (lambda: ek.write(level(), "placed.npz"), "cluster"),
    "nothing to read": (lambda: ek.read(None), "source"),
    "a file without a name": (lambda: ek.read(""), "source"),
    "a word of pin": (lambda: cluster().pin(topics="t"), "topics"),
    "a word of new nodes": (lambda: cluster().add_nodes([[1.0]], domain={"a": ["b"]}), "domain"),
    "a word of a plan": (lambda: ek.plan(cluster(), level(), throtle=2), "throtle"),
    "a word of changes": (lambda: ek.Changes(dwn="n0"), "dwn"),
    "a word of a frontier": (lambda: ek.frontier(cluster(), goal=ek.Goals()), "goal"),
    "rows of steps that there are not": (lambda: level().plan().rows_of([99]), "which[0]"),
    "rows of no list of steps": (lambda: level().plan().rows_of(3), "which"),
    "rows of half a step": (lambda: level().plan().rows_of([0.5]), "which[0]"),
    "a placement of lists": (lambda: cluster().with_placement([[0]] * 4), "placement"),
    "no placement": (lambda: cluster().with_placement(None), "placement"),
    "a cluster as placement": (lambda: cluster().with_placement(cluster()), "placement"),
    "a number as options": (lambda: ek.conflicts(cluster(), 3), "options"),
    "zero as options": (lambda: ek.conflicts(cluster(), 0), "options"),
    "a number as page": (lambda: level().report(3), "path"),
    "a number as page of a plan": (lambda: level().plan().report(3), "path"),
    "no page of a sweep": (lambda: ek.sweep(cluster(), "zone").report(None), "path"),
    "a number as file": (lambda: ek.write(cluster(), 3), "path"),
    "a file of no name": (lambda: ek.write(cluster(), ""), "path"),
    "a file named in bytes": (lambda: ek.write(cluster(), b"c.npz"), "path"),
    "a number as file of a plan": (lambda: ek.write_plan(level().plan(), 3), "path"),
    "a folder of no plan": (lambda: ek.write_plan_folder(cluster(), "x"), "plan"),
    "a number as folder": (lambda: ek.write_plan_folder(level().plan(), 3), "folder"),
    "a number as folder before": (
        lambda: ek.write_plan_folder(level().plan(), "x", after=3),
        "after",
    ),
    "more of a zone than a number holds": (
        lambda: cluster().replace(spread={"zone": 2**31}),
        "spread['zone']",
    ),
    "the same, softly": (
        lambda: cluster().replace(spread={"zone": (2**70, "soft")}),
        "spread['zone']",
    ),
    "a list as group": (lambda: cluster().pin(group=[["a"]]), "group"),
    "a placement as group": (lambda: cluster().unpin(group=cluster().placement), "group"),
    "a placement as disk": (lambda: cluster().fail_disks(cluster().placement), "fail_disks"),
    "a list as protocol": (lambda: ek.Protocol.named([]), "protocol"),
    "a word as moves": (lambda: ek.frontier(cluster(), 2).within("x"), "moves"),
    "no number of the worst": (lambda: ek.sweep(cluster(), "zone").worst(None), "count"),
    "a number as pace of repairs": (lambda: ek.sweep(cluster(), "zone", recovery=3), "recovery"),
    "what is usual of nothing": (lambda: ek.usual(None), "cluster"),
    "loads of no cluster": (lambda: ek.read_loads(None, b""), "cluster"),
    "labels in a list": (lambda: ek.read_loads(cluster(), b"", labels=["x"]), "labels"),
    "a label of a number": (lambda: ek.read_loads(cluster(), b"", labels={3: "x"}), "labels[3]"),
    "no sample to take": (lambda: ek.read_loads(cluster(), b"", take=None), "take"),
    "the hottest of nothing": (lambda: ek.hottest(None, 0), "cluster"),
    "the hottest of a list": (lambda: ek.hottest(cluster(), 0, placement=[0]), "placement"),
    "a number as bounds": (lambda: ek.relaxation(cluster(), proven=3), "proven"),
    "shrinking by a number": (lambda: ek.size(cluster(), shrink=2), "shrink"),
    "a word of a way on": (lambda: level().plan().resume(0, arived={}), "arived"),
}


@pytest.mark.parametrize("tier", ["", "zone=a"])
def test_a_tier_has_a_name_that_rules_can_write(tier):
    with pytest.raises(ek.InvalidInput, match="needs a name without '='"):
        ek.Cluster.from_arrays(
            capacity=[[4.0]] * 2, load=[[1.0]], placement=[[0, 1]], domains={tier: ["a", "b"]}
        )


def test_an_unknown_word_hides_nothing_else_that_is_wrong():
    for make, paths in (
        (lambda: ek.Cluster.from_arrays(capacity=[[-1.0]], load=[], placment=[[0]]),
         ["placment", "capacity[0, 0]"]),
        (lambda: ek.Cluster.from_arrays(capcity=[[1.0]]), ["capcity"]),
        (lambda: cluster().replace(capacity=[[-1.0]] * 3, acepts=[True] * 3),
         ["acepts", "capacity[0, 0]", "capacity[1, 0]", "capacity[2, 0]"]),
        (lambda: cluster().add_nodes([[-1.0]], nmaes=["x"]), ["nmaes", "capacity[3, 0]"]),
        (lambda: ek.Goals(levl=1, leaders=-1), ["levl", "goals.leaders"]),
        (lambda: ek.Cost(move=1, distance="far"), ["move", "goals.distance"]),
        (lambda: ek.options.Exact(larges=1, workers=0), ["larges", "options.workers"]),
    ):  # fmt: skip
        with pytest.raises(ek.InvalidInput) as raised:
            make()
        assert [fault.path for fault in raised.value.faults] == paths


def test_a_value_is_told_in_a_line_however_long_it_is():
    with pytest.raises(ek.InvalidInput) as raised:
        ek.Cluster.from_arrays(
            capacity=[[1.0]], load=[[1.0]], replicas=1, placment=[[0, 1, 2]] * 25_000
        )
    assert len(str(raised.value)) < 400
    assert str(raised.value).endswith("characters more)")
    assert len(raised.value.faults[0].value) == 25_000
    with pytest.raises(ek.InvalidInput) as raised:
        ek.Cluster.from_arrays(
            capacity=[[1.0]], load=[[1.0]], replicas=1, placment=np.zeros((50, 3))
        )
    assert "\n" not in str(raised.value)


def test_of_many_names_that_are_none_a_few_are_told():
    with pytest.raises(ek.InvalidInput) as raised:
        cluster().down(*[f"x{i}" for i in range(950)])
    assert len(raised.value.faults) == 950
    assert str(raised.value).splitlines()[-1].startswith("  ... and 930 more: is neither a node")
    assert len(str(raised.value).splitlines()) == 22


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_by_its_place(mistake):
    wrong, path = MISTAKES[mistake]
    with pytest.raises(ek.InvalidInput) as raised:
        wrong()
    assert [fault.path for fault in raised.value.faults] == [path]


@pytest.mark.parametrize("method", ["balance", "exact", "leaders", "helix_waged", "cockroach"])
@pytest.mark.parametrize("seed", [-(2**62), 2**62 - 1])
def test_any_seed_of_the_range_does(method, seed):
    assert method in METHODS
    assert ek.solve(cluster(), method, seed=seed).method == method


@pytest.mark.parametrize("seed", [-(2**62), -(2**61), -1, 2**62 - 1])
def test_a_long_search_takes_any_seed(seed):
    random = np.random.default_rng(0)
    hard = ek.Cluster.from_arrays(
        capacity=random.uniform(8.0, 12.0, (6, 2)), load=random.uniform(0.5, 3.0, (14, 2)),
        placement=[random.choice(6, 2, replace=False) for _ in range(14)],
    )  # fmt: skip
    assert ek.solve(hard, goals=ek.Goals(level=0.01), seed=seed).audit.ok


def test_a_result_may_be_kept_and_sent():
    result = level()
    back = pickle.loads(pickle.dumps(result))
    assert (back.placement.node == result.placement.node).all()
    assert back.gap.leader_changes == result.gap.leader_changes


def test_a_single_copy_is_not_told_as_many():
    before = cluster()
    node = np.array([0, 1] * 3 + [0, 2], np.int32)
    plan = ek.plan(before, before.placement.replaced(node, before.placement.leader))
    assert str(plan).startswith("1 copy in 1 wave of ")


class TestCommandLine:
    def test_a_command_almost_named_is_guessed(self, capsys):
        assert main(["slove", "cluster.npz"]) == 2
        assert "did you mean 'solve'?" in capsys.readouterr().err

    def test_a_run_wants_the_folder_of_a_plan(self, tmp_path, capsys):
        file = tmp_path / "plan.json"
        file.write_text("{}")
        assert main(["run", str(file)]) == 2
        assert "must be a folder that a plan was written to" in capsys.readouterr().err

    def test_a_folder_stands_for_the_plan_in_it(self, tmp_path, capsys):
        ek.write(cluster(), tmp_path / "c.npz")
        (tmp_path / "move").mkdir()
        into = str(tmp_path / "move" / "plan.json")
        assert main(["plan", str(tmp_path / "c.npz"), "--level", "0", "-o", into, "--quiet"]) == 0
        assert main(["check", str(tmp_path / "move")]) == 0
        assert "safe at every step" in capsys.readouterr().out

    def test_a_closed_output_is_no_crash(self, tmp_path):
        ek.write(cluster(), tmp_path / "c.npz")
        ran = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m evenkeel check c.npz >&-"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (ran.returncode, without_progress(ran.stderr)) == (0, "")


def test_a_start_on_nodes_that_there_are_not():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[[0, 1]] * 3)
    larger = ek.Cluster.from_arrays(capacity=[[9.0]] * 9, load=[[1.0]] * 3, placement=[[7, 8]] * 3)
    with pytest.raises(ek.InvalidInput, match=r"start\.node: unknown node; there are 2 .*7, 8"):
        ek.solve(cluster, start=larger.placement)


def test_the_face_shows_only_what_is_public():
    shown = {name for name in dir(ek) if not name.startswith("_")}
    assert shown == {*ek.__all__, "control", "simulate"}
    rooms = {name for name in vars(ek) if name[0] != "_"} - shown
    assert all(f"evenkeel.{name}" in sys.modules for name in rooms)
