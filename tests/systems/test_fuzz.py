"""Every reader holds against damaged files; ``python -m tests.support.fuzzing`` reads more."""

import time
from contextlib import suppress

import pytest

import evenkeel as ek
from tests.support.effort import mostly_long
from tests.support.fuzzing.fuzz import fuzz, mutated
from tests.support.fuzzing.samples import readers

READERS = {reader.name: reader for reader in readers()}

# what stands on one long line of a dump: keys, prompts, borders, addresses, blanks
LONG = [
    "aGVsbG8x", "ab ", "0", "-", " ", "\t", "\n", '{"', "a (", "1,", "[", "| ", "/a.b-c", '"a",',
    '\\"', "a: ", "a@b:", "# NAME x",
]  # fmt: skip


@pytest.mark.parametrize("mutants", mostly_long([100, 300], [100]))
@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused(name, mutants):
    report = fuzz(READERS[name], mutants, seed=1)
    assert [wrong for wrong, _ in report.escapes] == []
    assert report.outcomes.keys() == {"read", "refused"}, "too much or too little is damaged"


@pytest.mark.parametrize("name", READERS)
def test_samples_are_read(name, tmp_path):
    for files in READERS[name].samples:
        READERS[name].read(files, tmp_path)


def test_the_same_seed_damages_the_same(tmp_path):
    reader = READERS["native-npz"]
    assert [*mutated(reader, 20, seed=5)] == [*mutated(reader, 20, seed=5)]
    assert [*mutated(reader, 20, seed=5)] != [*mutated(reader, 20, seed=6)]


@pytest.mark.parametrize("name", [one for one in READERS if not one.startswith("native")])
def test_the_time_to_read_grows_no_faster_than_long_lines_do(name, tmp_path):
    def took(length, part):
        texts = [*files[:-1], files[-1] + b"\n" + (part * (length // len(part))).encode()]
        seconds = []
        for _ in range(3):
            started = time.thread_time()
            with suppress(ek.InvalidInput):
                READERS[name].read(tuple(texts), tmp_path)
            seconds.append(time.thread_time() - started)
        return min(seconds)

    files = READERS[name].samples[0]
    for part in LONG:
        # four times the length: four times as long at most where it is linear, else sixteen
        assert took(40_000, part) < 8 * took(10_000, part), part
