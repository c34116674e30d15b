"""Pages of plans, sweeps and frontiers: true, well-formed, escaped, small, and repeatable."""

import re
from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.runtime.figures import duration
from evenkeel.simulate.generators import expansion
from evenkeel.view.charts import axis_of
from evenkeel.view.histories import history_page
from evenkeel.view.html import UNSEEN
from evenkeel.view.plans import SHOWN_STEPS, STRETCHES, Copies, plan_page
from evenkeel.view.studies import frontier_page, sweep_page
from tests.planning.test_plan import drawn
from tests.view.test_page import HOSTILE, cards, read, said, table_of


@pytest.fixture(scope="module")
def plan():
    result = ek.solve(expansion(600, 40, 4, seed=3), goals=ek.Goals(level=0.1))
    return result.plan(throttle=ek.Throttle(node_in=2))


@pytest.fixture(scope="module")
def found():
    """A sweep whose scenarios lose much, little and nothing."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 9, placement=[[n % 6, (n + 2) % 6] for n in range(9)],
        domains={"zone": [*"aabbcc"]}, bytes="d0",
    )  # fmt: skip
    asked = ["zone", "zone pairs", ek.Changes(name="nothing")]
    return ek.sweep(cluster, asked, recovery=ek.Throttle(node_in=1))


def test_a_plan_is_told_as_it_is(plan):
    root = read(plan_page(plan))
    assert "safe at every step" in said(next(root.iter("h1")))
    shown = cards(root)
    assert shown["copies"] == f"{plan.copies:,}"
    assert shown["waves"] == f"{len(plan.waves):,}"
    assert shown["blocked"] == "0"
    steps = table_of(root, "In their order")
    assert [row[3] for row in steps] == [row.partition for row in plan.rows()[:SHOWN_STEPS]]
    assert [*table_of(root, "Protocol plain")] == [["node in", "2"]]
    points = {row[0] for row in table_of(root, "Where the plan comes closest")}
    assert points == {f"{one.kind} {one.of}".strip() for one in plan.check().tightest}
    waves = table_of(root, "Strip: its share")
    assert sum(int(row[2].replace(",", "")) for row in waves) == plan.copies


def test_copies_under_way_are_those_of_the_steps(plan):
    copies = Copies.of(plan)
    rows = copies.under_way(np.arange(len(copies.start)))
    edges = np.linspace(0.0, plan.makespan, STRETCHES + 1)
    for k in range(0, STRETCHES, 17):
        share = np.minimum(copies.finish, edges[k + 1]) - np.maximum(copies.start, edges[k])
        wanted = np.maximum(share, 0.0).sum() / (edges[k + 1] - edges[k])
        assert rows[k] == pytest.approx(wanted, abs=1e-9)
    assert rows.sum() * plan.makespan / STRETCHES == pytest.approx(plan.copies)


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_any_plan_has_a_page(seed):
    _, plan = drawn(seed)
    page = plan_page(plan)
    root = read(page)
    assert page == plan_page(plan, plan.check())
    assert cards(root)["blocked"] == f"{len(plan.blocked):,}"
    assert not re.search(r"\bnan\b|\binf\b", "".join(root.find("body/main").itertext()))
    if plan.blocked:
        assert [row[0] for row in table_of(root, "Moves with")] == [
            one.partition for one in plan.blocked
        ]


def test_a_plan_that_is_not_safe_says_what_breaks_first(plan):
    hurried = ek.plan(plan.cluster, plan.target)
    limited = hurried.check()
    assert limited.ok
    worse = replace(hurried, throttle=ek.Throttle(copies=1))
    certificate = worse.check()
    root = read(plan_page(worse))
    assert "not safe" in said(next(root.iter("h1")))
    assert str(certificate.breach) in said(root.find("body/header"))
    assert [row[:2] for row in table_of(root, "How often each kind")] == [
        [kind, f"{n:,}"] for kind, n in certificate.counts.items()
    ]


def test_large_plans_have_small_pages():
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((400, 1), 9e9), load=np.ones((40_000, 1)),
        placement=np.arange(40_000)[:, None] % 200, domains={"zone": np.arange(400) % 80},
    )  # fmt: skip
    node = cluster.placement.node + np.int32(200)
    plan = ek.plan(cluster, cluster.placement.replaced(node, cluster.placement.leader))
    assert plan.copies == 40_000
    page = plan_page(plan)
    read(page)
    assert len(page.encode()) < 300 * 1024
    assert "more nodes are left out" in page
    assert f"{len(plan) - SHOWN_STEPS:,} more steps" in page


def test_a_sweep_is_told_as_it_is(found):
    root = read(sweep_page(found))
    shown = cards(root)
    assert shown["scenarios"] == f"{len(found.results)}"
    assert shown["fit after the repair"] == f"{int(found.fits.sum())}"
    assert shown["lose partitions"] == f"{int((found.lost[:, 0] > 0).sum())}"
    rows = table_of(root, "The worst first")
    assert [row[0] for row in rows] == [row.scenario for row in found.worst(99)]
    pairs = {row[0]: row[1:] for row in table_of(root, "Partitions lost with the zone")}
    assert set(pairs) == {"a", "b", "c"}
    at = [*pairs]
    lost = dict(zip(found.names, found.lost[:, 0].tolist(), strict=True))
    for one in at:
        for other in at:
            name = f"zone {' + '.join(sorted({one, other}))}"
            assert pairs[one][at.index(other)] == f"{lost[name]}"
    named = {row[0]: row[2] for row in table_of(root, "Those first that lose most")}
    for scenario, names in named.items():
        assert names.split(", ")[0] in found.lost_partitions(scenario)
    assert "seconds until the repair is done" in said(root)


def test_sweeps_that_were_ended_or_have_no_scenario_have_a_page(found):
    def stop(done, of):
        raise StopIteration

    ended = ek.sweep(found.cluster, "node", callback=stop)
    assert "not run" in said(read(sweep_page(ended)))
    assert "There is no scenario" in said(read(sweep_page(ek.sweep(found.cluster, []))))


def test_a_frontier_is_told_as_it_is():
    found = ek.frontier(expansion(300, 20, 5, seed=3), points=4)
    root = read(frontier_page(found))
    rows = table_of(root, "The cheapest first")
    assert [int(row[1]) for row in rows] == found.moves.tolist()
    assert [row[3] for row in rows] == [f"{one:.4f}" for one in found.level]
    points = next(one for one in root.iter("path") if one.get("class") == "mark now").get("d")
    assert len(re.findall("h0", points)) == len(found.results)


def test_a_history_is_told_as_it_is():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 8, placement=[[n % 4, (n + 1) % 4] for n in range(8)],
        bytes="d0",
    )  # fmt: skip
    events = [ek.simulate.At(60.0, ek.Changes(down=[0]), dead_after=300.0)]
    history = ek.simulate.play(cluster, events, until=1200.0, every=60.0)
    page = history_page(history)
    root = read(page)
    assert cards(root)["moves"] == "4"
    under = history.astray("under")
    back = history.seconds[int(under.nonzero()[0][-1]) + 1]
    assert "whole at the end" in said(next(root.iter("h1")))
    assert f"At worst 4 partitions lacked a replica; from {duration(back)} on" in page
    assert table_of(root, "From outside") == [["60.00 s", "n0 down"], ["360.00 s", "n0 dead"]]
    assert len(table_of(root, "In the order")) == len(history.log)
    (row,) = (row for row in table_of(root, "Of all samples") if row[0] == "under")
    assert row[1:] == ["0", "4", "0", "partitions short of a live replica"]
    assert page == history_page(ek.simulate.play(cluster, events, until=1200.0, every=60.0))


def test_a_history_that_ends_short_says_so():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0, 1]])
    history = ek.simulate.play(cluster, [ek.simulate.At(0.0, ek.Changes(gone=[0]))], until=600.0)
    page = history_page(history)
    assert "short of replicas at the end" in said(next(read(page).iter("h1")))
    assert "1 partition lacked a replica, at the end 1 still" in page


@pytest.mark.parametrize("samples", [1, 2, 5_000])
def test_a_history_of_any_length_is_drawn(samples):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0]] * 2, dimensions=[HOSTILE[1]],
        node_names=[HOSTILE[0], HOSTILE[2]], partition_names=[HOSTILE[3], HOSTILE[4]],
    )  # fmt: skip
    until = max(0.5, samples - 1.0)
    page = history_page(ek.simulate.play(cluster, until=until, every=1.0))
    read(page)
    assert len(page) < 60_000
    assert not set(map(ord, page)) & set(UNSEEN)


def test_names_do_no_harm():
    names = [f"{name}{i}" for i, name in enumerate(HOSTILE)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0, 20.0]] * len(names), load=[[1.0, 2.0]] * 22, placement=[[0, 1]] * 22,
        node_names=names, partition_names=[f"{name}{i}" for name in HOSTILE for i in range(2)],
        domains={"<b>zone": names}, dimensions=(HOSTILE[0], HOSTILE[1]), bytes=HOSTILE[1],
    )  # fmt: skip
    goals = ek.Goals(level=0.2)
    throttle = ek.Throttle(domain_in={"<b>zone": 2})
    pages = [
        plan_page(ek.solve(cluster, goals=goals).plan(throttle=throttle)),
        sweep_page(ek.sweep(cluster, ["node", "<b>zone pairs"])),
        frontier_page(ek.frontier(cluster, points=2, goals=goals)),
    ]
    for page in pages:
        read(page)
        page.encode()
        assert "<img" not in page
        assert "<b>zone" not in page
        assert "alert(1)</script>" not in page
        assert not set(map(ord, page)) & set(UNSEEN)


def test_pages_are_written_as_a_whole(plan, found, tmp_path):
    for one, page in ((plan, plan_page(plan)), (found, sweep_page(found))):
        path = tmp_path / "out.html"
        assert one.report(path) == path
        assert path.read_bytes() == page.encode()
        assert [file.name for file in tmp_path.iterdir()] == ["out.html"]
        with pytest.raises(ek.InvalidInput, match="must end in one of"):
            one.report(tmp_path / "out.pdf")


@pytest.mark.parametrize("most", [0.0, 1e-9, 0.034, 1.0, 3.0, 9.9, 10.0, 11.0, 7e12])
def test_axes_end_above_what_they_show(most):
    axis = axis_of(most)
    assert most <= axis.top
    assert axis.ticks[-1] == axis.top


def test_the_curve_of_a_frontier_takes_the_whole_width():
    found = ek.frontier(expansion(300, 20, 5, seed=3), points=4)
    trail = re.search(r'class="trail" d="M(\d+) [^"]*"', frontier_page(found))
    across = [int(x) for x in re.findall(r"[MH](\d+)", trail[0])]
    assert across[0] >= 20
    assert max(across) >= 900
    assert max(across) - min(across) >= 400 or found.moves_at_least.min() < found.moves.min()
