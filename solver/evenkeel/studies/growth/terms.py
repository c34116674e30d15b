"""Terms: when a cluster counts as large enough, read from what a person writes."""

from collections.abc import Sequence

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals, check_goals
from evenkeel.model.limits import Limits, check_limits
from evenkeel.model.reading.containers import items_of
from evenkeel.model.reading.quantities import is_real, is_whole
from evenkeel.studies.growth.fitting import Terms
from evenkeel.studies.growth.forecast import Factor, read_shares
from evenkeel.studies.scenario import read_scenarios


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
        faults.add("after_loss", after.tolist(), "must not be below at_most")
    if goals is not None and not isinstance(goals, Goals):
        faults.add("goals", goals, "must be Goals")
    elif goals is not None:
        check_goals(faults, cluster, goals)
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
        usual,
        after,
        tuple(dict.fromkeys(texts)),
        recover,
        goals,
        time_limit,
        seed,
        decided,
        limits,
    )
