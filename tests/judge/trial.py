"""One trial: a case is solved by a method and judged."""

import time
from dataclasses import dataclass, field

import evenkeel as ek
from tests.judge.beside import Beside, beside_the_best
from tests.judge.case import Case, build
from tests.judge.mending import left_undone
from tests.judge.studies import of_pipeline, of_sweep
from tests.judge.verdict import Finding, judged, on_the_way, standing_of
from tests.judge.world import Standing, World
from tests.support.stopping import stopping_after

SLOW = 2.0  # CPU seconds above which a solve is a finding
# methods that return what their originals return: only what they claim is judged
BIT_EXACT = frozenset(
    {"helix_crush", "helix_multiround", "helix_crushed", "helix_auto", "helix_waged"}
)

MENDING = frozenset({"balance", "exact"})  # methods that promise to mend whatever can be mended
PROTOCOLS = ("plain", "kafka", "helix")  # whose plans of a result are judged where nodes drain
# what is tried instead of a solve, by the name that stands for a method
STUDIES = {"sweep": of_sweep, "pipeline": of_pipeline}


@dataclass
class Tried:
    """What came of a trial, in plain values that travel between processes."""

    family: str
    seed: int
    method: str
    size: int
    findings: list[Finding] = field(default_factory=list)
    after: Standing | None = None
    said: str = ""
    beside: Beside | None = None
    solving: float = 0.0
    judging: float = 0.0


def world_of(case: Case) -> World:
    """Read a case without the library."""
    return World(case)


def try_one(
    case: Case, method: str = "balance", small: bool = False, work: int | None = None
) -> Tried:
    """Solve a case by a method, or put it to a sweep or pipeline, and judge what comes of it."""
    size = len(case.cluster["load"]) * len(case.cluster["capacity"])
    tried = Tried(case.family, case.seed, method, size)
    if method in STUDIES:
        return _studied(case, tried)
    cluster, goals, limits = build(case)

    def solved() -> ek.Result:
        began = time.process_time()
        result = ek.solve(
            cluster, method, goals=goals, limits=limits, seed=case.seed, work_limit=work,
            callback=None if case.calls is None else stopping_after(case.calls),
        )  # fmt: skip
        tried.solving = time.process_time() - began
        return result

    try:
        result = solved()
        if tried.solving > SLOW:
            result = solved()  # the first one of a process compiles
    except ek.InvalidInput as refused:
        tried.said = f"refused: {refused}"
        return tried
    except Exception as error:
        tried.findings.append(Finding(f"raised {type(error).__name__}", str(error)[:200]))
        return tried
    began = time.process_time()
    world = World(case)
    tried.after = standing_of(result.placement)
    tried.said = str(result)
    tried.findings += judged(world, result, claims_only=method in BIT_EXACT)
    if "keeps" in case.cluster and method in MENDING:
        for protocol in PROTOCOLS:
            tried.findings += on_the_way(world, result, protocol)
    if method in MENDING and case.calls is None:
        tried.findings += left_undone(world, tried.after)
        if small:
            tried.beside = beside_the_best(world, tried.after, result)
            tried.findings += tried.beside.findings
    tried.judging = time.process_time() - began
    return tried


def _studied(case: Case, tried: Tried) -> Tried:
    """Judge what a sweep or a pipeline makes of a case; solving and judging are timed as one."""
    began = time.process_time()
    try:
        tried.findings += STUDIES[tried.method](case)
    except ek.InvalidInput as refused:
        tried.said = f"refused: {refused}"
    except Exception as error:
        tried.findings.append(Finding(f"raised {type(error).__name__}", str(error)[:200]))
    tried.judging = time.process_time() - began
    return tried
