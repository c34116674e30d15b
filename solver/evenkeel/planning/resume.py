"""Resume: a plan from an intermediate state of another, whose copies in flight continue."""

from dataclasses import replace

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement
from evenkeel.planning.changes.transition_table import check_target, in_place
from evenkeel.planning.in_flight import Arrived, Flights, Settled, serving, settled
from evenkeel.planning.observed import as_described, in_slots
from evenkeel.planning.plan import Plan
from evenkeel.planning.planner import gone_on_with


def resumed_plan(
    plan: Plan,
    observed: Cluster | Placement,
    target: Placement,
    arrived: Arrived | None = None,
    towards: Placement | None = None,
) -> Plan:
    """Plan from what is observed to a target, all of which may name slots in another order."""
    faults = FaultList()
    check_target(faults, plan.cluster, target)
    faults.raise_if_any()
    now = in_slots(plan.cluster, plan.target, plan.steps, observed)
    cluster = replace(as_described(plan.cluster, observed), placement=now)
    flights = Flights.of(cluster, now, arrived)

    def planned_from(state: Settled) -> Plan:
        """Return the plan from a state; what no step goes on with is cancelled first."""
        while True:
            found = gone_on_with(
                replace(cluster, placement=state.begin), target, plan.throttle, plan.protocol,
                state.flights, towards,
            )  # fmt: skip
            left = state.without(state.forgotten(found.steps), cluster)
            if left is state:
                return replace(found, cancelled=state.cancelled)
            state = left

    at_home = serving(plan.cluster.placement, plan.steps, now)
    if at_home is now:  # nothing is on its way
        return planned_from(Settled(now, flights, ()))
    wanted, _ = in_place(replace(cluster, placement=at_home), target, plan.protocol)
    state = settled(cluster, at_home, flights, wanted)
    found = planned_from(state)
    if state.cancelled:
        # a copy to where something waits on its way goes on, if that is its way again
        again = settled(cluster, at_home, flights, wanted, found.steps)
        if len(again.cancelled) < len(state.cancelled):
            other = planned_from(again)
            if again.first_to_arrive(other.steps) and len(other.blocked) <= len(found.blocked):
                return other
    return found
