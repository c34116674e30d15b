"""Dumps of broken clusters: read, noted, what cannot be judged left alone, the rest solved."""

import random
import re

import pytest

import evenkeel as ek
from evenkeel.systems import registry
from evenkeel.systems.ceph.crush.placement import up
from tests.support.crush_judge import NONE, judge
from tests.support.dumps import ceph


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


@pytest.mark.parametrize(("begin", "end"), seeds(60, 2000))
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
