"""Rows that are the same: as ``np.unique`` finds them, whatever numbers they hold."""

import numpy as np
import pytest

from evenkeel.measure.rows import distinct_rows


@pytest.mark.parametrize("most", [1, 7, 2**40, 2**62])
@pytest.mark.parametrize("columns", [1, 3, 6])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_rows_are_told_apart_as_numpy_does(count: int, columns: int, most: int) -> None:
    rng = np.random.default_rng(count + columns)
    table = rng.integers(-most, most, (count, columns), endpoint=True)
    table[count // 2 :] = table[: count - count // 2]
    rows, index = distinct_rows(table)
    expected, inverse = np.unique(table, axis=0, return_inverse=True)
    assert np.array_equal(rows, expected)
    assert np.array_equal(index, inverse.reshape(-1))
    assert np.array_equal(rows[index], table)
