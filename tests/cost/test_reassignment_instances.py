"""Machine-reassignment instances from a seed: feasible at first, and in the shape asked for."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from bench.experiments.reassignment import main
from bench.experiments.reassignment_instances import SHAPES, Shape, reassignment
from evenkeel.model.errors import InvalidInput
from evenkeel.systems import roadef
from evenkeel.systems.roadef.reassignment import check

SMALL = Shape(
    processes=300, machines=20, resources=4, transient=2, services=120, shared=40, spread=30,
    neighbourhoods=3, locations=7, dependencies=50, balances=1, utilisation=0.85,
)  # fmt: skip


def integers(model):
    """All that a model holds, by name."""
    return {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}


def shape_of(model):
    """Count what a shape says."""
    members = np.bincount(model.service, minlength=len(model.spread))
    return Shape(
        processes=len(model.service),
        machines=len(model.capacity),
        resources=len(model.transient),
        transient=int(model.transient.sum()),
        services=len(model.spread),
        shared=int((members > 1).sum()),
        spread=int((model.spread > 1).sum()),
        neighbourhoods=len(np.unique(model.neighbourhood)),
        locations=len(np.unique(model.location)),
        dependencies=len(np.unique(model.needs, axis=0)),
        balances=len(model.balance),
        utilisation=float((model.requirement.sum(axis=0) / model.capacity.sum(axis=0)).max()),
    )


@pytest.mark.parametrize("name", SHAPES)
def test_set_b(name):
    model = reassignment(SHAPES[name], seed=5)
    verdict = check(model, model.initial)
    assert verdict.feasible, str(verdict)
    assert shape_of(model) == dataclasses.replace(
        SHAPES[name], utilisation=pytest.approx(SHAPES[name].utilisation, abs=1e-4)
    )
    assert np.bincount(model.service).min() == 1
    # a wide spread of sizes, and no room to spare on most machines
    assert (np.quantile(model.requirement, 0.95, axis=0) > 50 * model.requirement.min(axis=0)).all()
    use = np.zeros_like(model.capacity)
    np.add.at(use, model.initial, model.requirement)
    assert np.median((use / model.capacity).max(axis=1)) > 0.95


@given(st.data())
@settings(deadline=None)
def test_any_shape_is_feasible_and_as_asked(data):
    draw = data.draw
    machines = draw(st.integers(1, 12))
    locations = draw(st.integers(1, machines))
    services = draw(st.integers(1, 12))
    shared = draw(st.integers(0, services)) if machines > 1 else 0
    least = services + shared
    resources = draw(st.integers(1, 6))
    shape = Shape(
        processes=draw(st.integers(least, least + (machines - 2) * shared)) if shared else services,
        machines=machines,
        resources=resources,
        transient=draw(st.integers(0, resources)),
        services=services,
        shared=shared,
        spread=draw(st.integers(0, shared)) if locations > 1 else 0,
        neighbourhoods=draw(st.integers(1, locations)),
        locations=locations,
        dependencies=0,
        balances=draw(st.integers(0, resources - 1)),
        utilisation=draw(st.floats(0.05, 1.0)),
    )
    model = reassignment(shape, draw(st.integers(0, 2**63)))
    assert check(model, model.initial).feasible
    assert dataclasses.replace(shape_of(model), utilisation=0.0) == dataclasses.replace(
        shape, utilisation=0.0
    )
    assert model.capacity.max() < 2**32
    roadef.cluster_of(model)


def test_the_seed_decides_every_integer():
    one, same, other = (integers(reassignment(SMALL, seed)) for seed in (3, 3, 4))
    for name, value in one.items():
        if isinstance(value, np.ndarray):
            assert value.dtype == same[name].dtype
            assert (value == same[name]).all()
    assert (one["requirement"] != other["requirement"]).any()


def test_dependencies_bind():
    """Some answer that keeps everything else breaks them, so they are not there for show."""
    model = reassignment(SMALL, 1)
    at = model.initial.copy()
    broken, wanted = set(), {"capacity", "conflict", "spread", "dependency", "transient"}
    for p in range(len(at)):
        if broken == wanted:
            return
        for m in range(len(model.capacity)):
            at[p] = m
            broken |= {breach.constraint for breach in check(model, at).breaches}
        at[p] = model.initial[p]
    assert broken == wanted


def test_every_impossible_figure_is_named():
    wrong = dataclasses.replace(
        SMALL, processes=2, transient=5, locations=2, balances=4, utilisation=1.5
    )
    with pytest.raises(InvalidInput) as caught:
        reassignment(wrong, -1)
    paths = {fault.path for fault in caught.value.faults}
    assert paths == {
        "processes", "transient", "neighbourhoods", "balances", "utilisation", "seed",
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="pairs of shared services"):
        reassignment(dataclasses.replace(SMALL, dependencies=40 * 40), 1)


def test_files_hold_the_same_integers(tmp_path):
    model = reassignment(SMALL, 2)
    written = ek.write(roadef.cluster_of(model), tmp_path / "model_small.txt", format="roadef")
    assert [path.name for path in written] == ["model_small.txt", "assignment_small.txt"]
    again = integers(roadef.native_of(ek.read(written[0])))
    for name, value in integers(model).items():
        if isinstance(value, np.ndarray):
            assert (value == again[name]).all(), name
        elif name != "distance":
            assert value == again[name], name
    assert model.distance.by_class == again["distance"].by_class


def test_it_is_solved(tmp_path):
    cluster = roadef.cluster_of(reassignment(SMALL, 2))
    model = roadef.native_of(cluster)
    result = ek.solve(cluster, goals=roadef.cost_of(cluster), work_limit=200_000)
    verdict = check(model, np.asarray(result.placement)[:, 0])
    assert verdict.feasible
    assert verdict.cost < check(model, model.initial).cost


def test_on_the_command_line(tmp_path, capsys):
    asked = ["--processes", "4000", "--seed", "9"]
    main([str(tmp_path / "made"), *asked])
    assert "feasible" in capsys.readouterr().out
    made = roadef.native_of(ek.read(tmp_path / "made"))
    same = reassignment(dataclasses.replace(SHAPES["b_1"], processes=4000), 9)
    assert (made.requirement == same.requirement).all()
    assert (made.initial == same.initial).all()
    for wrong in (["--shape", "c_1"], ["--machines", "1"]):
        with pytest.raises(SystemExit):
            main([str(tmp_path), *wrong])
        assert wrong[0].removeprefix("--") in capsys.readouterr().err
