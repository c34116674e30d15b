"""Arrays where a text, a number or a flag belongs are faults with a path, and no bare errors."""

import numpy as np
import pytest

import evenkeel as ek

ARRAY = np.array([1, 2])
CLUSTER = ek.Cluster.from_arrays(
    capacity=[[10.0]] * 4, load=[[1.0]] * 8, placement=[[0, 1]] * 8,
    domains={"zone": ["a", "b", "c", "d"]},
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("dimension", lambda _: ek.hottest(CLUSTER, 0, dimension=ARRAY)),
        ("overwrite", lambda folder: ek.write(CLUSTER, folder / "c.npz", overwrite=ARRAY)),
        ("with_cluster", lambda folder: ek.write_plan(
            ek.solve(CLUSTER).plan(), folder / "p.json", with_cluster=ARRAY)),
        ("limits", lambda _: ek.sweep(CLUSTER, "node", limits=ARRAY)),
        ("grows, loss", lambda _: ek.headroom(CLUSTER).reach(ARRAY)),
        ("points", lambda _: ek.frontier(CLUSTER, points=2**31)),
        ("crossing", lambda _: ek.Cluster.from_arrays(
            capacity=[[1.0]], load=[[1.0]], domains={"zone": ["a"]}, crossing=[ARRAY])),
    ],
)  # fmt: skip
def test_what_is_no_text_is_a_fault(tmp_path, path, call):
    with pytest.raises(ek.InvalidInput) as error:
        call(tmp_path)
    assert path in [fault.path for fault in error.value.faults]
