"""The ``exact`` method: CP-SAT on small clusters, started from the answer of ``balance``."""

import logging
from dataclasses import replace

from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.exact.rescue import rescued, with_last_steps
from evenkeel.methods.exact.stages import Proof, Search, in_stages, within_limits
from evenkeel.methods.exact.variables import missing, objective_tuple, regresses
from evenkeel.methods.levelling.run import searched, well_led
from evenkeel.methods.options import Exact
from evenkeel.methods.shared.leading_slots import leading_slots
from evenkeel.methods.shared.replica_counts import kept
from evenkeel.methods.shared.size import check_size
from evenkeel.methods.shared.stopping import StopReason
from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.logs import log_event

logger = logging.getLogger("evenkeel.exact")

OUTDONE = "What CP-SAT found would be worse than what the search before it did, which stands."


def exact(request: Request) -> Outcome:
    """Place all, level, and move little, each proven before the next is looked at."""
    options = request.options
    assert isinstance(options, Exact)
    cluster = request.cluster
    faults = FaultList()
    check_size(faults, cluster, options)
    faults.raise_if_any()
    begun = rescued(request, searched(replace(request, options=None)), searched)
    hint = cluster.placement.replaced(begun.node, begun.leader)
    search = Search(options.workers, options.effort, request.seed, request.watch)
    log_event(logger, "proving", logging.DEBUG, replicas=len(hint.node), effort=options.effort)
    found = in_stages(cluster, request.bounds, request.limits, hint, search)
    stop_reason: StopReason = (
        "optimum" if found.proof.status in ("optimal", "infeasible") else _cut_short(search)
    )
    log_event(
        logger, "proven", status=found.proof.status, stop_reason=stop_reason,
        stages={one.name: (one.value, one.bound) for one in found.proof.stages},
        effort=found.proof.effort,
    )  # fmt: skip
    if found.node is None or found.leader is None:
        return replace(begun, native=found.proof, message=_proof_text(request, begun, found.proof))
    node = kept(cluster, found.node)
    answer = Outcome(
        node=node,
        leader=leading_slots(cluster, node, found.leader),
        stop_reason=stop_reason,
        work=begun.work,
        timings=begun.timings,
        native=found.proof,
    )
    # CP-SAT counts what stays where it may not be as missing: that may lead, or be a surplus one
    answer = well_led(request, with_last_steps(request, answer))
    answer = replace(answer, message=_proof_text(request, answer, found.proof))
    own, other = objective_tuple(request, answer), objective_tuple(request, begun)
    # its model keeps rules that came broken, beside which the search may have placed more
    proven = found.proof.status == "optimal" and own[:2] <= other[:2]
    if (proven or own <= other) and not regresses(request, answer):
        return answer
    return replace(begun, native=found.proof, message=OUTDONE)


def _cut_short(search: Search) -> StopReason:
    return search.stopped or search.watch.reason or "work"


def _proof_text(request: Request, answer: Outcome, proof: Proof) -> str:
    """Return the sentence on the proof, within the limits and without broken hard rules."""
    within = within_limits(request)
    if proof.status == "infeasible":
        return f"Proven: no placement{within} keeps the hard rules."
    if proof.status == "unknown":
        return "CP-SAT proved nothing in the time given."
    lacking = int(proof.stages[0].bound)
    if lacking:
        text = f"find no node without breaking a hard rule, whatever is moved{within}."
        if missing(request, answer) == 0:  # rules may stay as broken as they came
            text += " All are placed, and no rule is broken further than it came."
        return f"Proven: at least {lacking:,} replicas or leaders {text}"
    if proof.status == "optimal":
        return f"Proven: none{within} is more level, and none as level moves less."
    gaps = ", ".join(f"{stage.name} within {stage.gap:.4g}" for stage in proof.stages)
    return f"Cut short: {gaps} of the proven least."
