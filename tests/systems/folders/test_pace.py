"""A folder names the setting of its system that limits how fast copies are made."""

import pytest

import evenkeel as ek
from tests.support import places

PLACED = places.DATA / "formats"
LIMITS = {"elasticsearch": "indices.recovery.max_bytes_per_sec", "ceph": "osd_mclock_profile"}


def files_of(system):
    if system != "ceph":
        return [one for one in sorted((PLACED / system).iterdir()) if one.suffix == ".json"]
    return [PLACED / system / name for name in ("osd_dump.json", "crush_dump.json", "pg_dump.json")]


@pytest.mark.parametrize("system", LIMITS)
def test_a_throttle_of_bytes_names_what_enforces_it(system, tmp_path):
    cluster = ek.read(files_of(system))
    result = ek.solve(cluster.drain([0]), goals=ek.Goals(level=None))
    for name, throttle in (("paced", ek.Throttle(node_bandwidth=2.0**27)), ("free", ek.Throttle())):
        folder = ek.write_plan_folder(result.plan(throttle=throttle), tmp_path / name)
        assert (LIMITS[system] in (folder / "README.md").read_text()) == (name == "paced")
