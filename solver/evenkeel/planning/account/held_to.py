"""What a plan is held to, in words."""

from evenkeel.model.runtime.figures import quantity
from evenkeel.planning.plan import Plan
from evenkeel.planning.throttle import BY_TIER, COUNTS, RATES, RATES_BY_TIER


def held_to(plan: Plan) -> str:
    """Return the protocol and the throttle in words."""
    throttle = plan.throttle
    told = [f"protocol {plan.protocol.name}"]
    told += [
        f"{name} {quantity(value)}"
        for name in (*COUNTS, "group_copies", *RATES)
        if (value := getattr(throttle, name)) is not None
    ]  # fmt: skip
    for name in (*BY_TIER, *RATES_BY_TIER):
        told += [
            f"{name} {tier} {quantity(most)}" for tier, most in getattr(throttle, name).items()
        ]
    if throttle.windows is not None:
        told.append("in windows of time")
    if throttle.recovery_first:
        told.append("recovery first")
    return " · ".join(told)
