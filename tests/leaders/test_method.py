"""The leaders method: proven least on the fullest node, by flow, against trying everything."""

import itertools

import numpy as np
import pytest

import evenkeel as ek


def least(placement, weight, may, fits=lambda led: True):
    """Least (ratio of the fullest node, changes) over all choices of leaders, slot 0 leading now.

    The ratio is of leaders to the share by weight, over nodes that may lead. Only choices that
    ``fits`` admits count.
    """
    share = np.where(may, weight, 0.0)
    choices = [[i for i, n in enumerate(row) if may[n]] for row in placement]
    asked = [one for one in choices if one]
    if not asked:
        return None, len(placement)
    share = share * (len(asked) / share.sum()) if share.any() else share
    best = None
    for chosen in itertools.product(*asked):
        if not fits([row[slot] for row, slot in zip(placement, chosen, strict=False)]):
            continue
        count = np.zeros(len(weight))
        rows = [row for row, one in zip(placement, choices, strict=True) if one]
        for row, slot in zip(rows, chosen, strict=True):
            count[row[slot]] += 1
        ratio = max(count[n] / share[n] for n in range(len(weight)) if count[n])
        key = round(ratio, 9), sum(slot != 0 for slot in chosen)
        best = key if best is None or key < best else best
    return best, len(placement) - len(asked)


@pytest.mark.parametrize("seed", range(8))
def test_it_is_equal_to_trying_every_choice(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        nodes, partitions = int(rng.integers(2, 6)), int(rng.integers(1, 7))
        replicas = int(rng.integers(1, min(nodes, 3) + 1))
        placement = [rng.choice(nodes, replicas, replace=False).tolist() for _ in range(partitions)]
        weight = rng.choice([1.0, 1.0, 2.0, 0.5], nodes)
        may = rng.random(nodes) > 0.15
        cluster = ek.Cluster.from_arrays(
            capacity=[[99.0]] * nodes, load=[[1.0]] * partitions, placement=placement,
            lead_weight=weight, leads=may,
        )  # fmt: skip
        result = ek.solve(cluster, method="leaders")
        best, leaderless = least(placement, weight, may)
        proof = result.native
        assert proof.leaderless == leaderless
        assert result.comparison.moves == 0
        if best is None:
            continue
        assert (round(proof.ratio, 9), proof.changes) == best
        led = result.placement.leader_node
        able = [row for row in range(partitions) if any(may[n] for n in placement[row])]
        count = np.bincount(led[able], minlength=nodes)
        assert (count <= proof.most).all()


@pytest.mark.parametrize("seed", range(4))
def test_no_node_or_zone_is_given_more_than_it_has_room_for(seed):
    rng = np.random.default_rng(seed)
    reached = []
    for _ in range(25):
        nodes, partitions = int(rng.integers(2, 6)), int(rng.integers(2, 7))
        replicas = int(rng.integers(2, min(nodes, 3) + 1))
        placement = [rng.choice(nodes, replicas, replace=False).tolist() for _ in range(partitions)]
        extra = rng.integers(-1 if seed == 3 else 1, 4, (partitions, 2)).astype(float)
        carried = np.full((nodes, 2), 1.0)
        np.add.at(carried, [row[0] for row in placement], extra)
        np.add.at(carried, np.ravel(placement), 2.0)
        capacity = carried + rng.integers(-1, 4, carried.shape)
        zone = np.arange(nodes) % 2
        shared = np.array([carried[zone == z].sum(axis=0) + rng.integers(0, 3) for z in range(2)])
        cluster = ek.Cluster.from_arrays(
            capacity=capacity, load=[[2.0] * 2] * partitions, leader_load=2.0 + extra,
            placement=placement, domains={"zone": [f"z{z}" for z in zone]},
            tier_capacity={"zone": shared},
        )  # fmt: skip

        def fits(
            led, extra=extra, capacity=capacity, placement=placement, zone=zone, shared=shared
        ):
            load = np.zeros(capacity.shape)
            np.add.at(load, np.ravel(placement), 2.0)
            came = load.copy()
            np.add.at(load, led, extra)
            np.add.at(came, [row[0] for row in placement], extra)
            zones = np.array([load[zone == z].sum(axis=0) for z in range(2)])
            before = np.array([came[zone == z].sum(axis=0) for z in range(2)])
            return bool(
                (load <= np.maximum(capacity, came)).all()
                and (zones <= np.maximum(shared, before)).all()
            )

        result = ek.solve(cluster, method="leaders")
        assert not result.regressions
        assert fits(result.placement.leader_node.tolist())
        best, _ = least(placement, np.ones(nodes), np.ones(nodes, bool), fits)
        proof = result.native
        assert proof.bound <= best[0] + 1e-9
        assert round(proof.ratio, 9) >= best[0]
        reached.append(round(proof.ratio, 9) == best[0])
        if result.stop_reason == "optimum":
            assert (round(proof.ratio, 9), proof.changes) == best
    assert np.mean(reached) > 0.9


def test_a_leader_is_not_preferred_where_it_has_no_room():
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0], [9.0]], load=[[1.0]] * 2, leader_load=[[3.0]] * 2,
        placement=[[1, 0]] * 2, domains={"zone": ["a", "b"]}, rules=[ek.Rule(lead=["zone=a"])],
        rule=[0] * 2,
    )  # fmt: skip
    for options in (None, ek.options.Leaders(by="load")):
        result = ek.solve(cluster, method="leaders", options=options)
        assert not result.regressions
        assert result.levelness.leaders.tolist() == [1, 1]
        assert "1 partitions keep their leader" in " ".join(result.warnings)


def test_preferences_come_before_levelness():
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 2, load=[[1.0]] * 4, placement=[[0, 1]] * 4,
        domains={"zone": ["a", "b"]}, rules=[ek.Rule(lead=["zone=a"])], rule=[0] * 4,
    )  # fmt: skip
    result = ek.solve(cluster, method="leaders")
    assert result.levelness.leaders.tolist() == [4, 0]
    assert result.audit.counts["lead"] == 0


def test_solving_again_changes_nobody():
    rng = np.random.default_rng(1)
    placement = [rng.choice(20, 3, replace=False).tolist() for _ in range(400)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[999.0]] * 20, load=[[1.0]] * 400, placement=placement
    )  # fmt: skip
    once = ek.solve(cluster, method="leaders")
    assert once.levelness.leaders.max() == 20
    twice = ek.solve(cluster.with_placement(once.placement), method="leaders")
    assert twice.native.changes == 0


def test_a_cluster_without_leaders_is_refused():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]], load=[[1.0]], placement=[[0]], leader=[-1]
    )  # fmt: skip
    with pytest.raises(ek.InvalidInput, match="with leaders"):
        ek.solve(cluster, method="leaders")


def test_who_led_nothing_before_is_no_change():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[[0, 1]] * 3, leader=[0, 0, -1]
    )
    result = ek.solve(cluster, "leaders")
    changes = result.comparison.leader_changes
    assert f"none as level change fewer than {changes}. 1 partition had no" in result.message
    assert result.native.changes == changes


@pytest.mark.parametrize("by", ["number", "load"])
@pytest.mark.parametrize("state", ["down", "drain"])
def test_it_tells_as_many_changes_as_the_result_counts(by, state):
    rng = np.random.default_rng(3)
    rows = [rng.choice(6, 3, replace=False).tolist() for _ in range(60)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[999.0]] * 6, load=[[1.0]] * 60, leader_load=rng.integers(2, 9, (60, 1)),
        placement=rows,
    )  # fmt: skip
    result = ek.solve(getattr(cluster, state)(0), "leaders", options=ek.options.Leaders(by=by))
    changes, lost = result.comparison.leader_changes, sum(row[0] == 0 for row in rows)
    assert result.native.changes == changes
    told = f"fewer than {changes}." if by == "number" else f"{changes} leaders changed."
    assert told in result.message
    over = f"{lost} partitions had no leader that lives."
    assert (over in result.message) == (state == "down")


def test_what_is_proven_of_changes_is_proven_from_where_the_search_began():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 4, placement=[[0, 1]] * 4
    )  # fmt: skip
    start = cluster.with_placement(ek.solve(cluster, "leaders").placement).placement
    result = ek.solve(cluster, "leaders", start=start)
    assert result.comparison.leader_changes == 2
    assert "change fewer than 0 of where the search began." in result.message


def test_preferred_leaders_come_first_and_the_proof_counts_from_there():
    flags = [[ek.Flag.PREFERRED, 0]] * 2 + [[0, 0]] * 4
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 6, placement=[[0, 1]] * 4 + [[0, 2]] * 2,
        leader=[1, 1, 0, 0, 0, 0], flags=flags,
    )  # fmt: skip
    result = ek.solve(cluster, "leaders")
    assert result.comparison.leader_changes == 6
    proven = "change fewer than 4 after the election of 2 preferred leaders."
    assert proven in result.message


@pytest.mark.parametrize("by", ["number", "load"])
@pytest.mark.parametrize("leads", [1.0, 3.0])  # what leading weighs; at 3.0 some nodes lack room
@pytest.mark.parametrize("state", ["", "down", "drain"])
def test_leader_changes_are_limited(by, leads, state):
    rng = np.random.default_rng(45)
    for _ in range(8):
        rows = [sorted(rng.choice(4, 2, replace=False).tolist()) for _ in range(7)]
        cluster = ek.Cluster.from_arrays(
            capacity=[[99.0], [99.0], [9.0], [99.0]], load=[[1.0]] * 7,
            leader_load=[[leads]] * 7, placement=rows,
        )  # fmt: skip
        if state:
            cluster = getattr(cluster, state)(1)
        free = ek.solve(cluster, "leaders", options=ek.options.Leaders(by=by))
        for most in range(free.comparison.leader_changes + 1):
            result = ek.solve(
                cluster, "leaders", limits=ek.Limits(leader_changes=most),
                options=ek.options.Leaders(by=by),
            )  # fmt: skip
            assert result.comparison.leader_changes <= most
            if by == "number" and not state and result.stop_reason == "optimum":
                least = min(
                    np.bincount(np.array(led), minlength=4).max()
                    for led in itertools.product(*rows)
                    if sum(n != row[0] for n, row in zip(led, rows, strict=True)) <= most
                )
                assert result.levelness.leaders.max() == least
            at_least = result.native.bound * (1.0 - 1e-9)
            assert getattr(result.native, "ratio", getattr(result.native, "level", 0)) >= at_least


def test_leader_changes_are_not_limited_beside_goals_of_groups():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 4, placement=[[0, 1]] * 4, group=[0] * 4
    )
    goals, limits = ek.Goals(level=None, group_leaders=0.0), ek.Limits(leader_changes=1)
    with pytest.raises(ek.InvalidInput, match="balance keeps this"):
        ek.solve(cluster, "leaders", goals=goals, limits=limits)


def test_goals_of_groups_fill_no_node_beyond_its_capacity() -> None:
    """Leading weighs, and n1 has no room to lead what its group asks of it."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[30.0], [12.0]], load=[[1.0]] * 8, leader_load=[[3.0]] * 8,
        placement=[[0, 1]] * 8, leader=[0] * 8, group=[0] * 8,
    )  # fmt: skip
    result = ek.solve(cluster, "leaders", goals=ek.Goals(level=None, group_leaders=0.0))
    assert result.audit.hard == 0
    assert np.bincount(result.placement.leader_node).tolist() == [6, 2]
    assert result.stop_reason == "exhausted"
    assert "no room for the leaders that are nearest to the goals of groups" in result.message


@pytest.mark.parametrize("seed", range(40))
def test_goals_of_groups_break_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = rng.uniform(1.0, 3.0, (24, 1))
    rows = [rng.permutation(5)[:3] for _ in range(24)]
    leader = rng.integers(0, 3, 24)
    held = np.zeros(5)
    for row, slot, (one,) in zip(rows, leader, load, strict=True):
        held[row] += one
        held[row[slot]] += one
    cluster = ek.Cluster.from_arrays(
        capacity=held[:, None] * rng.uniform(0.95, 1.1, (5, 1)), load=load, leader_load=2.0 * load,
        placement=rows, leader=leader, group=rng.integers(0, 3, 24),
    )  # fmt: skip
    result = ek.solve(cluster, "leaders", goals=ek.Goals(level=None, group_leaders=0.1))
    assert not result.regressions
