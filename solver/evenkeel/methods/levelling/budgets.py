"""Which budget has stopped a search that is not done."""

from evenkeel.methods.levelling.run_state import Run


def is_spent(run: Run) -> bool:
    """Whether some budget leaves no room for one more of what it counts."""
    budgets, state = run.problem.budgets, run.state
    if not budgets.binds:
        return False
    moves, data, changes = state.spent.tolist()
    domains = (state.came >= budgets.into) | (state.went >= budgets.out_of)
    return bool(
        moves >= budgets.moves
        or changes >= budgets.leader_changes
        or (state.moved_of >= budgets.of_partition).any()
        or domains.any()
        or data + _largest(run) > budgets.data
    )


def moves_spent(run: Run) -> bool:
    """Whether no replica may move any more."""
    budgets, state = run.problem.budgets, run.state
    return budgets.binds and bool(
        state.spent[0] >= budgets.moves
        or state.spent[1] >= budgets.data
        or budgets.of_partition == 0
        or _all_closed(run)
    )


def _all_closed(run: Run) -> bool:
    """Whether no node that accepts replicas may take one more."""
    budgets, state, nodes = run.problem.budgets, run.state, run.problem.nodes
    for tier in budgets.tiers.tolist():
        where = run.problem.domains.domain[tier][nodes.accepts]
        if (where >= 0).all() and (state.came[where] >= budgets.into[where]).all():
            return True
    return False


def _largest(run: Run) -> float:
    """What the largest replica weighs in the dimension that moves."""
    dimension = run.problem.budgets.data_dimension
    if dimension < 0:
        return 0.0
    load = run.problem.partitions
    return max(
        float(table[:, dimension].max(initial=0.0))
        for table in (load.leader_load, load.voter_load, load.non_voter_load)
    )
