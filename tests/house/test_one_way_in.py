"""One way into a method: requests are made in one place, and one table says everything."""

import re

from evenkeel.install.warmup_cases import CASES
from evenkeel.methods.registry import METHODS
from evenkeel.model.limits import Limits
from evenkeel.model.runtime.later import imported
from tests.support import places


def test_requests_are_made_in_one_place():
    made = [
        f"{file.relative_to(places.ROOT)}:{number}"
        for folder in ("solver", "kernels", "tests", "bench", "notebooks")
        for file in sorted((places.ROOT / folder).rglob("*.py"))
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"\bRequest\($", line.strip()) or re.search(r"\bRequest\(\w", line)
    ]
    here = [one for one in made if not one.startswith("solver/evenkeel/methods/run.py")]
    assert len(made) == len(here) + 1, made
    assert not here


def test_everything_that_the_table_names_is_there():
    for method in METHODS.values():
        assert callable(method.load())
        assert method.warmup in {"", *CASES}
        assert set(method.limits) <= set(Limits.__dataclass_fields__)
        kind = method.options_class()
        assert kind is None or isinstance(kind(), kind)
        assert method.refresher() is None or callable(method.refresher())
        assert not method.decider or callable(imported(method.decider))


def test_solve_and_pipelines_have_the_same_default():
    import inspect

    from evenkeel.control.pipeline import Pipeline
    from evenkeel.simulate.controllers.pipeline import pipeline
    from evenkeel.simulate.play import play
    from evenkeel.solving import solve
    from evenkeel.studies.sweep import sweep

    defaults = {inspect.signature(door).parameters["method"].default
                for door in (solve, sweep, play, Pipeline, pipeline)}  # fmt: skip
    assert defaults == {"balance"}
