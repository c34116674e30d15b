"""What the replicate queue does about one range, in plain Python: all that draws may bring."""

from dataclasses import dataclass, field

from tests.naive.cockroach.replicas import (
    CLOSE,
    DEAD,
    DECOMMISSIONING,
    action,
    pair,
    scored_rebalance,
    to_add,
    to_remove,
    value,
)

VOTER, NON_VOTER, LEARNER = range(3)
DONE, STUCK, ACTED, WITHHELD = range(4)
NOBODY = -1
REMEMBERED = 4


@dataclass
class Range:
    """A range: (store, role) of its replicas, slot by slot; stores it has left; what it carries."""

    slots: list
    left: list = field(default_factory=list)
    size: float = 0.0
    joint: bool = False

    def having(self, role):
        return [s for s, own in self.slots if own == role]


def decide(problem, one):
    """Everything that may be decided: a set of (what came, action, role, target, removed)."""
    voters, others = sorted(one.having(VOTER)), sorted(one.having(NON_VOTER))
    learners = one.having(LEARNER)
    status = [store.status for store in problem.stores]
    hosts = {store.host for store in problem.stores if store.status != DECOMMISSIONING}
    name, _ = action(
        status, voters, others, problem.replicas, problem.voters, len(hosts), len(learners),
        one.joint,
    )  # fmt: skip
    if name == "RangeUnavailable":
        return {(STUCK, name, VOTER, NOBODY, NOBODY)}
    if name == "FinalizeAtomicReplicationChange":
        return {(ACTED, name, VOTER, NOBODY, NOBODY)}
    if name == "RemoveLearner":
        return {(ACTED, name, LEARNER, NOBODY, learners[0])}
    if name == "ConsiderRebalance":
        return set(considered(problem, one, voters, others))
    role = NON_VOTER if name.endswith("NonVoter") else VOTER
    return set(mended(problem, one, name, role, voters, others))


def mended(problem, one, name, role, voters, others):
    """Whom to add, replace or remove."""
    state = DEAD if "Dead" in name else DECOMMISSIONING if "Decommissioning" in name else None
    going = [s for s in one.having(role) if problem.stores[s].status == state]
    going = going[0] if going else None
    if name.startswith("Remove"):
        gone = (
            [going] if going is not None else to_remove(problem, voters, others, role == VOTER)[1]
        )
        for s in gone:
            yield ACTED, name, role, NOBODY, s
        if not gone:
            yield STUCK, name, role, NOBODY, NOBODY
        return
    if role == VOTER and len(voters) == 1:
        going = None  # the last voter goes once another one is there
    _, targets = to_add(problem, voters, others, role == VOTER, going, recovers=going is not None)
    removed = NOBODY if going is None else going
    for s in targets:
        yield ACTED, name, role, s, removed
    if not targets:
        yield STUCK, name, role, NOBODY, removed


def considered(problem, one, voters, others):
    """Moves for the better: of a voter, or where none is made, of a non-voter."""
    came = {DONE}
    for role in (VOTER, NON_VOTER) if others else (VOTER,):
        passed = set()
        for found in scored_rebalance(problem, voters, others, role == VOTER)[1]:
            if found is None or not lasts(problem, one, voters, others, role, *found):
                passed |= came
            elif is_withheld(one, *found):
                passed.add(WITHHELD)
            else:
                yield ACTED, "ConsiderRebalance", role, *found[:2]
        came = passed
    for what in came:
        yield what, "ConsiderRebalance", VOTER, NOBODY, NOBODY


def is_withheld(one, target, removed, score):
    """Whether a wish would lead back, or the range has left as many stores as it remembers."""
    back = target in one.left and score < 350
    return back or (score < 250 and len(one.left) >= REMEMBERED)


def lasts(problem, one, voters, others, role, target, removed, score):
    """Whether a move would not be undone at once: by a full disk, diversity, or counts."""
    used = 100.0 * problem.stores[target].used
    if score < 600 and (used + one.size) / 100.0 >= 0.95:
        return False
    if score >= 350:
        return True

    def gain(among):
        rest = [problem.stores[s] for s in among if s != removed]
        here, there = problem.stores[removed], problem.stores[target]
        return sum(pair(there, other) - pair(here, other) for other in rest)

    everyone = [*voters, *others]
    if score >= 250:
        return gain(voters if role == VOTER else everyone) > CLOSE
    least = min(gain(voters if role == VOTER else everyone), gain(everyone))
    return least >= -CLOSE and value(problem, removed) >= value(problem, target) + 2.0
