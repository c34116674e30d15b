"""Tuples that kernels take as a pointer hold what Python put into them, and hold it no longer."""

import gc
import os
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

from evenkeel_kernels.build.jit import (
    backend,
    by_reference,
    device_function,
    inline_only,
    jit,
    no_alloc,
)

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1" or not hasattr(backend, "TuplePointer"),
    reason="nothing is compiled, or numba's version is not known",
)


@by_reference
class Inner(NamedTuple):
    matrix: np.ndarray
    factor: float
    switch: bool


@by_reference
class Outer(NamedTuple):
    count: int
    inner: Inner
    row: np.ndarray
    plain: tuple


class ByValue(NamedTuple):
    outer: Outer
    more: int


def outer(rows=3, factor=2.0, switch=True):
    matrix = np.arange(4.0 * rows).reshape(rows, 4)
    return Outer(rows, Inner(matrix, factor, switch), np.arange(rows, dtype=np.int32), (5, 0.25))


@device_function
def add_to(inner, row, n):
    """Write through a tuple within a tuple, and read it again."""
    inner.matrix[n, 0] += row[n] * inner.factor
    return inner.matrix[n, 0]


@inline_only
def least(outer):
    return outer.plain[0] + outer.plain[1]


def total_of(outer):
    """Do in Python what `total` does."""
    total = sum(outer.plain)
    for n in range(outer.count):
        outer.inner.matrix[n, 0] += outer.row[n] * outer.inner.factor
        total += outer.inner.matrix[n, 0]
    return total if outer.inner.switch else -total


@no_alloc
def total(outer):
    """Sum what each row comes to."""
    found = least(outer)
    for n in range(outer.count):
        found += add_to(outer.inner, outer.row, n)
    return found if outer.inner.switch else -found


@jit
def doubled(outer):
    """Create an array from what a pointer leads to."""
    held = outer.inner.matrix
    return held * np.float64(outer.count), held[1:], held


@no_alloc
def through_value(by_value):
    return by_value.more + total(by_value.outer)


@no_alloc
def inner_alone(inner, row):
    return add_to(inner, row, 1)


@no_alloc
def written_then_read(outer):
    """Read an entry again after it was written through another name."""
    row, before = outer.row, outer.row[0]
    row[0] = before + 7
    return outer.row[0]


@pytest.mark.parametrize("rows", [0, 1, 3, 1_000])
@pytest.mark.parametrize("switch", [False, True])
def test_every_kind_of_field_is_read_as_python_reads_it(rows, switch):
    ours, theirs = outer(rows, 0.5, switch), outer(rows, 0.5, switch)
    assert total(ours) == total_of(theirs)
    np.testing.assert_array_equal(ours.inner.matrix, theirs.inner.matrix)


def test_a_part_can_be_given_alone_and_within_a_tuple_by_value():
    given = outer()
    assert inner_alone(given.inner, given.row) == 4.0 + 2.0
    assert through_value(ByValue(outer(), 10)) == 10 + total(outer())


def test_what_is_written_is_read_again():
    assert written_then_read(outer()) == 7


def test_arrays_outlive_the_call_and_the_tuple():
    given = outer(50)
    expected = given.inner.matrix.copy()
    made, tail, whole = doubled(given)
    del given
    gc.collect()
    [np.full(200, -1.0) for _ in range(100)]  # whatever was freed too early is written over
    np.testing.assert_array_equal(made, 50.0 * expected)
    np.testing.assert_array_equal(tail, expected[1:])
    np.testing.assert_array_equal(whole, expected)


@pytest.mark.parametrize("kernel", [total, doubled])
def test_no_reference_is_kept(kernel):
    given = outer()
    kernel(given)
    before = [sys.getrefcount(each) for each in (given.inner.matrix, given.row)]
    for _ in range(100):
        kernel(given)
    gc.collect()
    assert [sys.getrefcount(each) for each in (given.inner.matrix, given.row)] == before


def test_arrays_of_another_kind_are_another_form():
    given = outer()
    other = given._replace(row=given.row.astype(np.int16))
    known = len(total.signatures)
    assert total(other) == total(outer())
    assert len(total.signatures) == known + 1


def test_what_numba_has_no_type_for_is_refused_as_ever():
    with pytest.raises(numba.errors.TypingError):
        total(outer()._replace(row=object()))


def test_a_field_that_is_not_there_is_an_error_as_it_compiles():
    @no_alloc
    def wrong(inner):
        return inner.matrx[0, 0]

    with pytest.raises(numba.errors.TypingError, match="matrx"):
        wrong(outer().inner)


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_after_compiling_as_it_was_before(collects):
    def nothing(x):
        return x.nothing

    if not collects:
        gc.disable()
    try:
        assert no_alloc(lambda x: x + collects)(1) == 1 + collects
        with pytest.raises(numba.TypingError):
            no_alloc(nothing)(1)
        assert gc.isenabled() is collects
    finally:
        gc.enable()
