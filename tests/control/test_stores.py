"""What a pipeline keeps: nothing is lost, nothing goes back, and names are what counts."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from evenkeel.control.store import Damaged, DiskStore, Kind, MemoryStore, Stale
from tests.support import places
from tests.support.pipeline.crash import record


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else DiskStore(tmp_path / "state")


def same(one, other):
    return (
        one.version == other.version
        and one.assignment.same_as(other.assignment)
        and one.nodes == other.nodes
        and one.partitions == other.partitions
        and np.array_equal(one.known, other.known)
        and dict(one.digests) == dict(other.digests)
    )


class TestBoth:
    def test_what_was_written_is_read(self, store):
        assert store.read(Kind.BASELINE) is None
        store.write(Kind.BASELINE, record(1))
        store.write(Kind.BASELINE, record(4, partitions=0))
        assert same(store.read(Kind.BASELINE), record(4, partitions=0))
        assert store.read(Kind.BEST_POSSIBLE) is None

    def test_versions_never_go_back(self, store):
        store.write(Kind.BASELINE, record(5))
        for version in (4, 5):
            with pytest.raises(Stale, match="version 5 is there already"):
                store.write(Kind.BASELINE, record(version))
        store.write(Kind.BEST_POSSIBLE, record(1))
        assert store.read(Kind.BASELINE).version == 5


class TestDisk:
    def test_another_process_is_noticed(self, tmp_path):
        one, two = DiskStore(tmp_path), DiskStore(tmp_path)
        one.write(Kind.BASELINE, record(1))
        two.write(Kind.BASELINE, record(2))
        with pytest.raises(Stale):
            one.write(Kind.BASELINE, record(2))
        assert one.read(Kind.BASELINE).version == 2

    def test_a_crash_at_any_line_loses_nothing(self, tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.pipeline.crash", str(tmp_path)],
            capture_output=True, text=True, cwd=places.ROOT, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        versions = [int(line.split()[1]) for line in done.stdout.splitlines()]
        assert len(versions) > 30  # lines of the writing code
        assert set(versions) == {2, 3} and versions == sorted(versions)

    def test_damage_to_the_newest_file_costs_one_version(self, tmp_path, caplog):
        store = DiskStore(tmp_path)
        store.write(Kind.BASELINE, record(1))
        store.write(Kind.BASELINE, record(2))
        newest = tmp_path / "baseline.0"
        whole = newest.read_bytes()
        for length in range(len(whole)):
            newest.write_bytes(whole[:length])
            assert same(store.read(Kind.BASELINE), record(1))
        assert "is damaged" in caplog.text
        store.write(Kind.BASELINE, record(2))  # it is written anew, over the damage
        assert same(store.read(Kind.BASELINE), record(2))

    @settings(max_examples=40, deadline=None)
    @given(data=st.data())
    def test_any_flipped_bit_is_noticed(self, tmp_path_factory, data):
        folder = tmp_path_factory.mktemp("flipped")
        store = DiskStore(folder)
        store.write(Kind.BASELINE, record(1))
        store.write(Kind.BASELINE, record(2))
        newest = folder / "baseline.0"
        content = bytearray(newest.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        newest.write_bytes(content)
        assert same(store.read(Kind.BASELINE), record(1))

    def test_damage_to_all_files_is_told(self, tmp_path):
        store = DiskStore(tmp_path)
        store.write(Kind.BASELINE, record(1))
        (tmp_path / "baseline.1").write_bytes(b"EVENKEEL")
        with pytest.raises(Damaged, match="no record of the baseline"):
            store.read(Kind.BASELINE)

    def test_a_disk_that_is_full_changes_nothing(self, tmp_path, monkeypatch):
        store = DiskStore(tmp_path)
        store.write(Kind.BASELINE, record(1))

        def full(descriptor):
            raise OSError("no space left")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space left"):
            store.write(Kind.BASELINE, record(2))
        assert same(store.read(Kind.BASELINE), record(1))
        assert not list(tmp_path.glob("*.part"))


class Versions(RuleBasedStateMachine):
    """Two processes share a folder and write in any order; both see one history."""

    def __init__(self):
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.stores = [DiskStore(self.folder.name) for _ in range(2)]
        self.newest = dict.fromkeys(Kind, 0)

    @rule(who=st.integers(0, 1), kind=st.sampled_from(Kind), step=st.integers(-2, 3))
    def write(self, who, kind, step):
        version = max(1, self.newest[kind] + step)
        if version > self.newest[kind]:
            self.stores[who].write(kind, record(version))
            self.newest[kind] = version
        else:
            with pytest.raises(Stale):
                self.stores[who].write(kind, record(version))

    @rule(who=st.integers(0, 1))
    def restart(self, who):
        self.stores[who] = DiskStore(self.folder.name)

    @rule(kind=st.sampled_from(Kind), length=st.integers(0, 60))
    def leave_half_a_file_behind(self, kind, length):
        Path(self.folder.name, f".{kind.value}.0.99-1.part").write_bytes(b"x" * length)

    @invariant()
    def both_read_the_newest(self):
        for store in self.stores:
            for kind in Kind:
                found = store.read(kind)
                assert (found.version if found else 0) == self.newest[kind]

    def teardown(self):
        self.folder.cleanup()


TestVersions = Versions.TestCase
TestVersions.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
