"""The covering program, against trying every number of nodes."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from evenkeel.studies.growth.shortages import Rows, cheapest, whole_prices

MOST = 4


@pytest.mark.parametrize("seed", range(100))
def test_the_cheapest_is_that_of_trying_all(seed):
    rng = np.random.default_rng(seed)
    kinds, needs = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    holds = rng.integers(0, 6, (needs, kinds)) * 0.7
    spare = rng.integers(0, 2, needs)
    lacking = rng.integers(-2, 14, needs) * 0.7
    rows = Rows(holds, np.stack([lacking, lacking], 1), spare)
    price = rng.choice([0.35, 1.0, 2.5, 7.0], kinds).tolist()
    found = cheapest(
        rows, price, np.full(kinds, MOST), even=np.zeros(kinds, np.int64),
        standing=np.zeros(1, np.int64),
    )  # fmt: skip

    def enough(count):
        left = holds @ count
        lost = [left - holds[:, j] for j in range(kinds) if count[j]]
        met = (left >= lacking - 1e-6).all()
        return met and all((one >= lacking - 1e-6)[spare > 0].all() for one in lost)

    counts = map(np.array, product(range(MOST + 1), repeat=kinds))
    least = min((float(one @ price) for one in counts if enough(one)), default=np.inf)
    assert found.at_least == pytest.approx(least)
    assert (found.count is None) == np.isinf(least)
    if found.count is not None:
        assert enough(found.count)
        assert float(found.count @ price) == pytest.approx(least)


@pytest.mark.parametrize("seed", range(40))
def test_whole_prices_are_ordered_as_prices_are(seed):
    rng = np.random.default_rng(seed)
    price = rng.choice([0.0, 5e-324, 1e-300, 0.1, 0.3, 7.0, 1e9, 1e9 + 2, 1e300], 3).tolist()
    most = rng.integers(0, 4, 3).tolist()
    whole = whole_prices(price, most)
    counts = [*product(*(range(n + 1) for n in most))]
    exact = [sum(Fraction(str(p)) * n for p, n in zip(price, one, strict=True)) for one in counts]
    total = [sum(p * n for p, n in zip(whole.each, one, strict=True)) for one in counts]
    for a, b in combinations(range(len(counts)), 2):
        assert (exact[a] < exact[b]) == (total[a] < total[b])
    assert [whole.least(one) for one in total] == [*map(float, exact)]


@pytest.mark.parametrize(
    ("price", "most"),
    [
        ([1e-7 / 3, 1000.0], [9, 9]),
        ([0.1234567890123, 1 / 3, 1e300], [100_000] * 3),
        ([1 / 7, 1e5 / 7, 1e10 / 7, 1e15 / 7], [100_000] * 4),
    ],
)
def test_prices_that_are_too_long_are_rounded_down(price, most):
    whole = whole_prices(price, most)
    assert sum(p * n for p, n in zip(whole.each, most, strict=True)) < 2**53
    for each, one in zip(whole.each, price, strict=True):
        assert 0.0 <= whole.least(each) <= one
    assert whole.least(max(whole.each)) >= 0.9 * max(price)
