"""Every reader holds against damaged files; ``python -m tests.support.fuzzing`` reads more."""

import pytest

from tests.support.effort import mostly_long
from tests.support.fuzzing.fuzz import fuzz, mutated
from tests.support.fuzzing.samples import readers

READERS = {reader.name: reader for reader in readers()}


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
