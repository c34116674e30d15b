"""In which order Helix's ideal states name instances: as they were listed, who joins last."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.systems.helix.format import held_by, in_order, key_in, preferences_of, unlike

NODES = 5
SLOTS = st.lists(st.integers(0, NODES - 1), max_size=4, unique=True)
STRANGER = "ANY_LIVEINSTANCE"  # what a list may name though it is no instance


@st.composite
def worlds(draw):
    """Rows of who holds partitions, who leads them, and the lists that stood before."""
    rows = draw(st.lists(SLOTS, min_size=1, max_size=6))
    led = [draw(st.integers(-1, len(row) - 1)) for row in rows]
    names = st.sampled_from([f"n{n}" for n in range(NODES)] + [STRANGER])
    lists = [draw(st.none() | st.lists(names, max_size=5)) for _ in rows]
    return rows, led, lists


def cluster_of(rows, led):
    first = np.append(0, np.cumsum([len(row) for row in rows]))
    return ek.Cluster.from_arrays(
        capacity=np.ones((NODES, 1)), load=np.ones((len(rows), 1)), first=first, leader=led,
        placement=np.array([n for row in rows for n in row], np.int64),
    )  # fmt: skip


def expected(row, listed, leader):
    names = [f"n{n}" for n in row]
    found = sorted((one for one in names if one in listed), key=listed.index)
    found += [one for one in names if one not in listed]
    return sorted(found, key=lambda one: one != leader)


@given(worlds())
def test_who_stays_keeps_its_place_and_who_leads_stands_in_front(world):
    rows, led, lists = world
    cluster = cluster_of(rows, led)
    told = {f"p{p}": one for p, one in enumerate(lists) if one is not None}
    records = {"g0": {"id": "g0", "listFields": told, "mapFields": {}}}
    found = preferences_of(cluster, records)
    held = held_by(cluster.placement, np.arange(len(rows)))
    leaders = ["" if slot < 0 else f"n{row[slot]}" for row, slot in zip(rows, led, strict=True)]
    listed = [one or [] for one in lists]
    wanted = [expected(*one) for one in zip(rows, listed, leaders, strict=True)]
    assert in_order(cluster, found, held) == wanted
    assert unlike(found, cluster.placement).tolist() == [
        [f"n{n}" for n in row] != one or leader not in ("", *one[:1])
        for row, one, leader in zip(rows, listed, leaders, strict=True)
    ]


@pytest.mark.parametrize(("partition", "key"), [("g/p0", "p0"), ("p1", "p1"), ("g/p2", "g/p2")])
def test_a_name_that_comes_twice_is_told_apart_by_its_resource(partition, key):
    record = {"id": "g", "listFields": {"g/p2": []}, "mapFields": {"p1": {}}}
    assert key_in(record, partition) == key
