"""Machine reassignment: a folder of ``model_*.txt`` with ``assignment_*.txt``, or one model file.

There are no expected answers. A case agrees when the answer keeps all five constraints and costs no
more than the assignment that stands now; both are judged by the exact checker.
"""

import os
import tempfile
from pathlib import Path

from tests.conformance.protocol import Case, Document, Replay

NAME = "machine reassignment"
SECONDS = "EVENKEEL_REPLAY_SECONDS"
"""Environment variable: wall seconds for each instance; 10 by default."""


def recognises(path: Path, document: Document) -> bool:
    """Whether a folder holds models with their assignments, or a file is such a model."""
    if isinstance(document, dict):
        return bool(_pairs(document))
    return (
        isinstance(document, str)
        and path.name.startswith("model")
        and path.name.endswith(".txt")
        and _assignment_of(path).is_file()
    )


def replay(path: Path, document: Document) -> Replay:
    """Solve every instance; the answers are the new assignments under their old names."""
    if isinstance(document, dict):
        texts = {name: str(text) for name, text in document.items()}
        answers: dict[str, str] = {}
        cases, figures = [], []
        for model, assignment in _pairs(document):
            case, figure, answer = _solved(model, texts[model], texts[assignment])
            cases.append(case)
            figures.append(figure)
            answers[assignment] = answer
        return Replay(cases, answers, figures)
    text = _assignment_of(path).read_text()
    case, figure, answer = _solved(path.name, str(document), text)
    return Replay([case], answer, [figure])


def _pairs(document: dict[str, object]) -> list[tuple[str, str]]:
    models = sorted(name for name in document if name.startswith("model"))
    pairs = [(name, "assignment" + name.removeprefix("model")) for name in models]
    return [pair for pair in pairs if pair[1] in document]


def _assignment_of(model: Path) -> Path:
    return model.with_name("assignment" + model.name.removeprefix("model"))


def _solved(name: str, model_text: str, assignment_text: str) -> tuple[Case, str, str]:
    """Return the verdict, the figures of one instance, and its new assignment."""
    import evenkeel as ek
    from evenkeel.systems import roadef
    from evenkeel.systems.roadef.reassignment import check

    seconds = float(os.environ.get(SECONDS, "10"))
    with tempfile.TemporaryDirectory() as folder:
        model, old, new = (Path(folder) / part for part in ("model.txt", "old.txt", "new.txt"))
        model.write_text(model_text)
        old.write_text(assignment_text)
        cluster = roadef.read(model, old)
        cost = roadef.cost_of(cluster)
        ek.solve(cluster, goals=cost, work_limit=1)  # compiles the kernels outside of the time
        result = ek.solve(cluster, goals=cost, time_limit=seconds)
        roadef.write(cluster, result.placement, new)
        answer = new.read_text()
    before = check(cluster.native, cluster.placement.node)
    after = check(cluster.native, result.placement.node)
    short = name.removeprefix("model_").removesuffix(".txt")
    agrees = after.feasible and after.cost <= before.cost
    figure = f"{short}: initial {before.cost:,}, final {after.cost:,}, {after}"
    return Case(short, agrees, "" if agrees else str(after)), figure, answer
