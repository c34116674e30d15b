"""Jenkins' hash, Java's string hash, and the order of Java's collections."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.systems.helix.crush.tree import (
    HashedNames,
    copied_capacity,
    map_order,
    shuffled_lists,
    text_order,
)
from evenkeel_kernels.core import jenkins_hash as hashing
from tests.naive.core import jenkins_hash as naive

words = st.integers(0, 2**32 - 1)
texts = st.text(st.characters(codec="utf-16", exclude_categories=()), max_size=12)
hash_kernels = (hashing.hash1, hashing.hash2, hashing.hash3, hashing.hash4, hashing.hash5)


@settings(deadline=None)
@given(st.lists(words, min_size=5, max_size=5))
def test_hashes_of_one_to_five_words_equal_the_naive_ones(values):
    given_words = [np.uint32(value) for value in values]
    for count, kernel in enumerate(hash_kernels, 1):
        assert int(kernel(*given_words[:count])) == naive.jenkins(*values[:count])


@pytest.mark.parametrize("count", [0, 1, 15, 64, 200])
def test_hashes_of_many_words_equal_the_single_ones(count):
    given_words = np.random.default_rng(count).integers(0, 2**32, count, dtype=np.uint32)
    hashed = np.empty(count + 1, np.uint32)
    hashing.hash3_lanes(given_words, np.uint32(7), np.uint32(2**32 - 1), count, hashed)
    assert hashed[:count].tolist() == [naive.jenkins(word, 7, -1) for word in given_words.tolist()]


@settings(deadline=None)
@given(st.lists(texts, max_size=6))
def test_java_hashes_equal_the_naive_ones(names):
    assert HashedNames.of(names).hash.tolist() == [naive.java_hash(name) for name in names]


@pytest.mark.parametrize(("text", "expected"), [("", 0), ("hello", 99162322), ("Aa", 2112)])
def test_java_hashes_known_by_heart(text, expected):
    assert HashedNames.of([text]).hash.tolist() == [expected]


def test_hash_of_names_put_together_follows_from_the_hashes_of_both():
    first, second = HashedNames.of(["orders_17"]), HashedNames.of(["nöde-𝄞4"])
    joined = first.word * second.power + second.word
    assert joined.view(np.int32).tolist() == HashedNames.of(["orders_17nöde-𝄞4"]).hash.tolist()


@settings(deadline=None)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=60, unique=True))
def test_map_order_equals_the_naive_one(keys):
    hashes = np.array(keys, np.int32)
    in_order = [keys[i] for i in map_order(hashes)]
    assert in_order == naive.java_order(keys, lambda key: key)


@pytest.mark.parametrize("count", [1, 11, 12, 23, 24, 25])
def test_map_order_with_the_capacity_of_a_copy_equals_the_naive_one(count):
    keys = np.random.default_rng(count).integers(-(2**31), 2**31, count).tolist()
    copied = naive.JavaMap(lambda key: key, int(count / 0.75) + 1)
    copied.update(dict.fromkeys(keys))
    order = map_order(np.array(keys, np.int32), copied_capacity(count))
    assert [keys[i] for i in order] == list(iter(copied))


@settings(deadline=None)
@given(st.lists(texts, max_size=8))
def test_text_order_is_that_of_code_units(names):
    assert [names[i] for i in text_order(names)] == sorted(names, key=naive.utf16)


def test_text_order_differs_from_that_of_code_points_above_the_surrogates():
    assert text_order(["\uffee", "\U0001d11e"]).tolist() == [1, 0]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(-(2**31), 2**31 - 1)), max_size=5))
def test_shuffles_equal_the_naive_ones(lists):
    first = np.cumsum([0, *(length for length, _ in lists)])
    seeds = np.array([seed for _, seed in lists], np.int32)
    expected = []
    for start, (length, seed) in zip(first, lists, strict=False):
        expected += naive.java_shuffle(range(start, start + length), seed)
    assert shuffled_lists(first, seeds).tolist() == expected
