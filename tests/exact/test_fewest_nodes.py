"""The covering program, against trying every number of nodes."""

from itertools import product

import numpy as np
import pytest

from evenkeel.studies.growth.fewest_nodes import Rows, cheapest, whole_prices

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


def test_prices_without_a_small_unit_are_rounded_down():
    whole, unit = whole_prices([1e-7 / 3, 1000.0])
    assert all(w * unit <= p for w, p in zip(whole, [1e-7 / 3, 1000.0], strict=True))
