"""Test by solves whether a load fits on given nodes, also after each loss to survive."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.needs import Case
from evenkeel.methods.exact.stages import Proof
from evenkeel.methods.options import Exact
from evenkeel.methods.registry import MethodName
from evenkeel.methods.shared.size import size_of
from evenkeel.model.changes import Changes
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals, check_goals
from evenkeel.model.limits import Limits, check_limits
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import ROUNDING, items_of, read_only
from evenkeel.model.reading.quantities import is_real, is_whole
from evenkeel.result import Result
from evenkeel.session import HeldCluster
from evenkeel.solving import solve
from evenkeel.studies.growth.forecast import Factor, read_shares
from evenkeel.studies.scenario import (
    PAIRS,
    ScenarioResult,
    Study,
    changed,
    read_scenarios,
    result_now,
)
from evenkeel.studies.sweep import Sweep, play

SECONDS = 0.5  # what CP-SAT may take where it decides, in deterministic seconds
# work of a step, at least and for each partition: a few rounds of relief, after which it goes on
# better from there anew
STEP, STEP_PER_PARTITION = 1_000_000, 30

MUCH_LESS = 2 / 3  # part of the broken rules that a step may leave, for another one to follow
ANY = Goals(level=None)  # goals where it only matters that everything has its place
LEVEL = Goals(level=0.02)  # goals where more has its place if nodes are level
# why something does not fit: the search found no place, there is none, or rules forbid too little
# for nodes to be of any help; empty if it fits
Cause = Literal["", "search", "impossible", "rules"]


class Terms(NamedTuple):
    """When a cluster counts as large enough. D dimensions."""

    # at_most, after_loss: (D,) how full a node may be, always and after a loss
    at_most: NDArray[np.float64]
    after_loss: NDArray[np.float64]
    survive: tuple[str, ...]  # what may be lost, as ``sweep`` names it
    recover: bool  # whether what is lost gets another place, or only the leaders do
    goals: Goals | None  # tolerances to meet
    time_limit: float | None  # seconds for each solve
    seed: int  # all randomness comes from it
    decided: int  # replicas x nodes up to which CP-SAT decides where the search finds no place
    limits: Limits | None = None  # budgets for what moves before a loss


def read_terms(
    faults: FaultList,
    cluster: Cluster,
    *,
    survive: str | Sequence[str],
    recover: bool,
    at_most: Factor,
    after_loss: Factor,
    goals: Goals | None,
    time_limit: float | None,
    seed: int,
    decided: int,
    limits: Limits | None = None,
) -> Terms | None:
    """Read terms; note what is wrong with them, and return None if anything is."""
    inside = FaultList()
    texts = [survive] if isinstance(survive, str) else items_of(inside, "survive", survive)
    if all(isinstance(one, str) for one in texts):
        read_scenarios(inside, cluster, texts)
    else:
        inside.add("scenarios", texts, "must be names of tiers")
    for one in inside.faults:
        faults.add(one.path.replace("scenarios", "survive", 1), one.value, one.message)
    usual = read_shares(faults, "at_most", cluster, at_most)
    after = read_shares(faults, "after_loss", cluster, after_loss)
    if not faults.about("at_most", "after_loss") and (after < usual).any():
        message = "must not be below what a node may be filled to without a loss, 1 by default"
        faults.add("after_loss", after_loss, message)
    if goals is not None and not isinstance(goals, Goals):
        faults.add("goals", goals, "must be Goals")
    elif goals is not None:
        check_goals(faults, cluster, goals)
        # these say when and what to move, not what fits
        goals = replace(goals, act_above=None, worth={}, move_cost={})
    if limits is not None and not isinstance(limits, Limits):
        faults.add("limits", limits, "must be Limits")
    elif limits is not None:
        check_limits(faults, cluster, limits)
    if time_limit is not None and (not is_real(time_limit) or time_limit <= 0.0):
        faults.add("time_limit", time_limit, "must be a number of seconds, above 0")
    if not is_whole(seed) or seed < 0:
        faults.add("seed", seed, "must be a whole number, 0 or more")
    if not isinstance(recover, bool):
        faults.add("recover", recover, "must be True or False")
    if faults:
        return None
    return Terms(
        usual, after, tuple(dict.fromkeys(texts)), recover, goals, time_limit, seed, decided, limits
    )  # fmt: skip


class Fit(NamedTuple):
    """What came of an attempt to place everything."""

    result: Result  # of the solve, with capacities as full as they may be
    # what becomes of each loss; None if none may happen or it did not come to that
    losses: Sweep | None
    cause: Cause  # why it does not fit; empty if it does
    why: str  # the same in a sentence


def cases_of(cluster: Cluster, terms: Terms) -> Iterator[Case]:
    """Yield what a cluster has to bear: first nothing, then every loss."""
    no_nodes = np.zeros(len(cluster.nodes), bool)
    yield Case("", no_nodes, terms.at_most)
    for text in terms.survive:
        if text in ("node", f"node{PAIRS}"):
            spare = _several(text)
            name = "loss of a node" if spare == 1 else f"loss of {spare} nodes"
            yield Case(name, no_nodes, terms.after_loss, spare, terms.recover)
            continue
        for change in _losses(cluster, text):
            lost = no_nodes.copy()
            lost[np.asarray(change.down)] = True
            yield Case(f"loss of {change.name}", lost, terms.after_loss, 0, terms.recover)


def _losses(cluster: Cluster, text: str) -> list[Changes]:
    """Return each loss that a text such as "zone" or "rack pairs" stands for."""
    return read_scenarios(FaultList(), cluster, text)


def _several(text: str) -> int:
    """Return how many domains are lost at once."""
    return 2 if text.endswith(PAIRS) else 1


def fitted(cluster: Cluster, terms: Terms, start: Placement | None = None) -> Fit:
    """Place everything, and lose what may be lost; level only where nothing less suffices."""
    # with a ``start``, from there, and in steps: each continues where the last one ended
    filled = filled_to(cluster, terms.at_most)
    small = 0 < size_of(cluster) <= terms.decided
    if small or terms.goals is not None or terms.limits is not None:
        start = None
    best = None
    for goals in (ANY, LEVEL) if terms.goals is None else (terms.goals,):
        result = _placed(filled, goals, terms, start)
        if missed := _what_is_missed(result, terms):
            cause: Cause = "impossible" if result.status == "infeasible" else "search"
            fit = Fit(result, None, cause, missed)
        else:
            fit = _bearing(cluster, result, terms, LEVEL if goals == LEVEL else ANY)
        if fit.cause != "search":
            return fit
        best = best or fit
        if missed:
            break
        start = start and result.placement
    assert best is not None
    asked = ANY if terms.goals is None else terms.goals
    proves = asked.floor is None and asked.disks is None and not asked.soft_yield
    if not small or not proves or terms.limits is not None:
        return best
    result = best.result
    if best.losses is None:
        result, impossible = _decided(filled, terms, asked)
        if missed := _what_is_missed(result, terms):
            return Fit(result, None, "impossible" if impossible else "search", missed)
    return _bearing(cluster, result, terms, ANY, "exact" if terms.recover else "balance")


def _placed(cluster: Cluster, goals: Goals, terms: Terms, start: Placement | None) -> Result:
    """Place everything; from a start, in steps, as long as each leaves much less broken."""
    work = max(STEP, STEP_PER_PARTITION * len(cluster.partitions)) if start is not None else None
    most = np.inf
    while True:
        result = solve(
            cluster, goals=goals, limits=terms.limits, start=start, time_limit=terms.time_limit,
            work_limit=work, seed=terms.seed,
        )  # fmt: skip
        goes_on = result.status == "partial" and result.stop_reason in ("work", "exhausted")
        if work is None or not goes_on or result.audit.hard > most:
            return result
        start, most = result.placement, MUCH_LESS * result.audit.hard


def _bearing(
    cluster: Cluster, result: Result, terms: Terms, goals: Goals, method: MethodName = "balance"
) -> Fit:
    """Lose what may be lost of what was placed."""
    if not terms.survive:
        return Fit(result, None, "", "")
    stands = filled_to(cluster.with_placement(replace(result.placement)), terms.after_loss)
    changes = read_scenarios(FaultList(), stands, terms.survive)
    study = Study(HeldCluster(stands), method, {
        "goals": goals, "seed": terms.seed, "time_limit": terms.time_limit,
        "options": Exact(largest=terms.decided, effort=SECONDS) if method == "exact" else None,
        "limits": None if terms.recover else Limits(moves=0),
    })  # fmt: skip
    found = play(
        study, result_now(study, changes), changes,
        ends=lambda one: terms.recover and not (isinstance(one, ScenarioResult) and one.fits),
    )  # fmt: skip
    return Fit(result, found, *_not_borne(found, terms))


def filled_to(cluster: Cluster, share: NDArray[np.float64]) -> Cluster:
    """Return a cluster of which nodes hold a share of what they hold, (D,)."""
    if (share == 1.0).all():
        return cluster
    capacity = read_only(np.ascontiguousarray(cluster.nodes.capacity * share))
    nodes = replace(cluster.nodes, capacity=capacity)
    return replace(cluster, nodes=nodes, placement=replace(cluster.placement))


def _decided(cluster: Cluster, terms: Terms, goals: Goals) -> tuple[Result, bool]:
    """Let CP-SAT place everything, and say whether it is proven that nothing does."""
    found = solve(
        cluster, "exact", goals=goals, options=Exact(largest=terms.decided, effort=SECONDS),
        seed=terms.seed, time_limit=terms.time_limit,
    )  # fmt: skip
    proof = found.native
    assert isinstance(proof, Proof)
    first = proof.stages[0] if proof.stages else None
    missing = first is not None and first.name == "missing" and first.bound >= 1.0
    return found, missing or proof.status == "infeasible"


def _what_is_missed(result: Result, terms: Terms) -> str:
    """Say what a result falls short of; empty if nothing."""
    missed = terms.goals is not None and result.status == "missed"
    return result.message if result.audit.hard or missed else ""


def _not_borne(found: Sweep, terms: Terms) -> tuple[Cause, str]:
    """Say which loss a placement does not bear, and why; empty if it bears all."""
    cluster, now = found.cluster, found.now
    several = [_several(text) for text in terms.survive for _ in _losses(cluster, text)]
    for change, one, domains in zip(found.changes, found.results, several, strict=True):
        # what has no more replicas than domains are lost, no rule could keep
        kept = cluster.partitions.replicas > domains
        lost = int(kept[np.setdiff1d(one.before.lost, now.before.lost)].sum())
        if lost:
            message = f"{lost:,} partition{'s' * (lost != 1)} would be lost with {change.name}"
            return "rules", f"{message}: no rule keeps their replicas apart"
        if terms.recover and not one.fits:
            impossible = one.status == "infeasible"
            if not impossible and found.method == "exact":
                _, impossible = _decided(changed(cluster, change), terms, ANY)
            cause: Cause = "impossible" if impossible else "search"
            return cause, f"after the loss of {change.name}: {one.message}"
        if not terms.recover:
            voting = cluster.partitions.voters > 2 * domains
            before = np.setdiff1d(one.before.without_quorum, now.before.without_quorum)
            if voting[before].any():
                message = f"{int(voting[before].sum()):,} partitions would have no quorum"
                return "rules", f"{message} without {change.name}: no rule keeps their voters apart"
            if (one.fullest > 1.0 + ROUNDING).any():
                return "search", f"leaders do not fit after the loss of {change.name}"
    return "", ""
