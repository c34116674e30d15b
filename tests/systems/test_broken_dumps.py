"""Dumps of broken clusters: read, noted, what cannot be judged left alone, the rest solved."""

import random
import re

import pytest

import evenkeel as ek
from evenkeel.systems import registry
from evenkeel.systems.ceph.crush.placement import up
from tests.support.crush_judge import NONE, judge
from tests.support.dumps import ceph
from tests.support.dumps.broken import WAYS, Told


def seeds(few, many):
    """Return how many dumps every run has, and how many a long one."""
    return [pytest.param(0, few), pytest.param(few, many, marks=pytest.mark.long)]


def ups_of(files):
    """Return where groups are up, as ``pg dump`` prints it."""
    cluster = registry.read(files, format="ceph")
    native, found = cluster.native, {}
    for pool in native.pools:
        rows = up(native.rows(pool, native.reweight), pool, cluster.nodes.alive).tolist()
        for pg, row in enumerate(rows):
            held = [osd for osd in row if osd != NONE]
            found[f"{pool.id}.{pg:x}"] = held if pool.kind == "replicated" else row
    return found


@pytest.mark.parametrize(("begin", "end"), seeds(60, 700))
def test_ceph(begin, end, tmp_path):
    changed = 0
    for seed in range(begin, end):
        given = ceph.broken(random.Random(seed), ups_of)
        cluster = registry.read(given.files, format="ceph")
        notes = " ".join(registry.find("ceph").left_out(cluster))
        assert [name for name in given.named if name not in notes] == [], seed
        osd_map = next(one for one in given.files if one.startswith(b'{"max_osd"'))
        crush = next(one for one in given.files if one.startswith(b'{"devices"'))
        usable = {
            int(osd) for osd in re.findall(rb'"osd": (\d+), "up": 1, "in": 1,', osd_map)
        }  # fmt: skip
        ignored = [*cluster.native.known]
        before = judge(osd_map, crush, "", *ignored).rows
        for method in ("balance", "ceph_upmap"):
            result = ek.solve(cluster, method=method)
            registry.write(cluster, tmp_path / "plan.sh", "ceph", result, overwrite=True)
            commands = (tmp_path / "plan.sh").read_text()
            judged = judge(osd_map, crush, commands, *ignored)
            where = (seed, method)
            assert judged.broken == [], where
            assert judged.dropped == [], where
            assert given.still.isdisjoint(judged.changed), where
            for group, row in judged.rows.items():
                holes = [osd == NONE for osd in before[group]]
                assert [osd == NONE for osd in row] == holes, (where, group)
                stays = {*before[group], *judged.mapped[group]}
                assert {*row} <= stays | usable, (where, group)
            changed += len(judged.changed)
    assert changed > 5 * (end - begin)


def notes_of(cluster):
    return " ".join(registry.find(cluster.native_format).left_out(cluster))


def held(placement, names, which):
    return {name: placement.nodes[p].tolist() for p, name in enumerate(names) if name in which}


@pytest.mark.parametrize(
    ("system", "name"), [(system, name) for system in WAYS for name in WAYS[system][2]]
)
def test_each_way_is_noted_and_what_it_concerns_stays(system, name):
    made, files, ways = WAYS[system]
    documents = made()
    told = ways[name](documents)
    cluster = registry.read(files(documents), format=system)
    assert_told(cluster, [told])


@pytest.mark.parametrize("system", WAYS)
@pytest.mark.parametrize(("begin", "end"), seeds(10, 150))
def test_several_ways_at_once(system, begin, end):
    made, files, ways = WAYS[system]
    for seed in range(begin, end):
        draw = random.Random(seed)
        documents, told = made(), []
        for name in draw.sample(sorted(ways), draw.randint(2, 5)):
            try:
                told.append(ways[name](documents))
            except (KeyError, IndexError, TypeError):  # another way took away what it changes
                continue
        cluster = registry.read(files(documents), format=system)
        assert_told(cluster, [])


def assert_told(cluster, told):
    """Solve a cluster; what is told to be named is named, and what must stay stays."""
    found = [one for one in told if isinstance(one, Told)]
    notes = notes_of(cluster)
    assert [name for one in found for name in one.named if name not in notes] == [], notes
    result = ek.solve(cluster)
    still = {name for one in found for name in one.still}
    names = [*cluster.partitions.names]
    assert still <= {*names}, names
    assert held(result.placement, names, still) == held(cluster.placement, names, still)


@pytest.mark.parametrize(
    ("system", "name"),
    [
        ("kafka", "a rack of nobody"), ("kafka", "a warning of Java"),
        ("kafka", "lines of Windows"), ("kafka", "a new field"),
        ("elasticsearch", "an excluded node that is gone"),
        ("elasticsearch", "a setting that is null"), ("elasticsearch", "new columns"),
        ("elasticsearch", "settings of an index that is gone"),
        ("elasticsearch", "room of what has no node"),
        ("rabbitmq", "a policy that is a list"), ("rabbitmq", "a zone of a node that is gone"),
        ("swift", "a hole in the list"), ("swift", "no address for replication"),
        ("swift", "no region"), ("swift", "fields of newer versions"),
    ],
)  # fmt: skip
def test_what_concerns_nothing_changes_nothing(system, name):
    made, files, ways = WAYS[system]
    healthy, broken = made(), made()
    ways[name](broken)
    one, other = (registry.read(files(each), format=system) for each in (healthy, broken))
    answers = [ek.solve(each).placement for each in (one, other)]
    names = [*one.partitions.names]
    assert held(answers[1], [*other.partitions.names], {*names}) == held(
        answers[0], names, {*names}
    )
