"""Run Helix's WAGED in each of its four rebalance scopes as a step of a pipeline."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.engines.engine import (
    Answer,
    CalculationFailed,
    Cancelled,
    FailureKind,
    Scope,
    Task,
    alike,
)
from evenkeel.methods.contract import Outcome, Progress, Watch
from evenkeel.methods.run import run_method
from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import InvalidInput
from evenkeel.systems.helix.options import Waged
from evenkeel.systems.helix.resources import states_by_group


@dataclass(frozen=True)
class WagedEngine:
    """An engine over the method ``helix_waged``; it keeps nothing between two calls.

    WAGED places a replica after the other and gives up altogether at the first one that finds no
    node. In a partial run it leaves out what the baseline does not know: partitions that are held
    and that no baseline has seen yet stay where they are.

    Parameters
    ----------
    options : options.Waged
        States, fault zones and preferences; its scope and what belongs to one task are not read.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], replicas=1)
    >>> WagedEngine().one_leads(c).tolist()
    [True]
    """

    options: Waged = field(default_factory=Waged)

    def __post_init__(self) -> None:
        if not isinstance(self.options, Waged):
            raise TypeError(f"needs options.Waged, not {type(self.options).__name__}")

    def one_leads(self, cluster: Cluster) -> NDArray[np.bool_]:
        """Return which partitions may have one replica in the top state at most, (P,) bool."""
        options, partitions = self.options, cluster.partitions
        own = states_by_group(cluster, options)
        if not own:
            return np.full(len(partitions), next(iter(options.states.values())) == 1)
        models = [own.get(name, options.states) for name in partitions.group_names]
        alone = np.array([next(iter(model.values())) == 1 for model in models])
        return np.asarray(alone[partitions.group])

    def __call__(self, task: Task) -> Answer:
        """Calculate in any scope."""
        outcome = self._outcome(task)
        found = outcome.native
        if isinstance(found, Assignment):
            if task.scope is Scope.PARTIAL:
                found = _with_unknown(found, task)
            stayed = alike(found, task.current, states=False)
            placed = len(stayed) - int(np.count_nonzero(stayed))
            return Answer(found, placed=placed, timings=outcome.timings)
        if found is None or task.stop():
            raise Cancelled
        raise CalculationFailed(FailureKind(found.kind), found.message)

    def _outcome(self, task: Task) -> Outcome:
        """Run the strategy, which asks between slices of work whether to go on."""

        def ask(progress: Progress) -> None:
            if task.stop():
                raise StopIteration

        cluster = task.cluster
        names = cluster.partitions.group_names
        options = replace(
            self.options,
            scope=task.scope.value,
            current=task.current,
            baseline=task.baseline,
            changes=frozenset(change.value for change in task.changes),
            changed_groups=[names[group] for group in task.groups],
            merge=True,
        )
        try:
            return run_method(
                "helix_waged", cluster, options=options, watch=Watch(None, None, ask),
                seed=task.seed,
            ).outcome  # fmt: skip
        except InvalidInput as error:
            raise CalculationFailed(FailureKind.INVALID_INPUT, f"{error}.") from error


def _with_unknown(found: Assignment, task: Task) -> Assignment:
    """Keep the rows of partitions that are held and that the baseline does not know."""
    current, baseline = task.current, task.baseline
    if baseline is None:
        return found
    unknown = np.diff(baseline.first) == 0
    unknown &= np.diff(found.first) == 0
    kept = unknown[current.owner]
    return found.joined(current.kept(kept)) if kept.any() else found
