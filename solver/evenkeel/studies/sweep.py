"""The sweep: one scenario after another, what each does to the cluster, and what repairs it."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Unpack

from evenkeel.methods.registry import MethodName, find
from evenkeel.model.changes import Changes
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.runtime.logs import log_event
from evenkeel.planning.throttle import Protocol, Throttle, check_throttle
from evenkeel.session import HeldCluster
from evenkeel.studies.fan_out import fan_out
from evenkeel.studies.scenario import (
    Asked,
    ScenarioResult,
    Study,
    loss_results,
    read_scenarios,
    result_now,
    result_of,
    unknown_result,
)
from evenkeel.studies.swept import Sweep

logger = logging.getLogger("evenkeel.sweep")


def sweep(
    cluster: Cluster,
    scenarios: str | Changes | Sequence[str | Changes],
    executor: Executor | None = None,
    *,
    method: MethodName = "balance",
    callback: Callable[[int, int], object] | None = None,
    recovery: Throttle | None = None,
    protocol: str | Protocol = "plain",
    **asked: Unpack[Asked],
) -> Sweep:
    """Ask of many scenarios what each would do to a cluster, and what would repair it.

    Every scenario starts from the cluster as it is; its repair is what a session answers, audited:
    where nodes are lost and nothing is wrong before, what they held goes elsewhere, if that is
    proven to be the best, and else the scenario is solved.

    Parameters
    ----------
    cluster : Cluster
        The snapshot; it is not changed.
    scenarios : str, Changes, or a sequence of them
        ``"node"`` loses each node, the name of a tier each of its domains, ``"node pairs"`` or
        ``"rack pairs"`` every two; ``Changes`` are a scenario of one's own, of the same partitions.
    executor : concurrent.futures.Executor, optional
        Executor, the calling thread by default; answers and their order are the same whichever it
        is. Threads share the cluster, and wait for each other's Python only: little of a loss that
        takes no search, most of what is solved for a small cluster. A process reads the cluster
        once, and starts in a second; Dask's workers (``client.get_executor()``) receive it with
        every batch.
    method : str, optional
        Who repairs.
    callback : callable, optional
        Receives how many scenarios are done, and of how many; raising StopIteration ends the sweep.
    recovery : Throttle, optional
        Under which each repair is planned too, for ``recovery`` and ``under_replicated``: how long
        it takes, and how long anything is short of live replicas.
    protocol : str or Protocol, optional
        What the system can do, for those plans.
    **asked : Asked
        ``goals``, ``limits``, ``options``, ``time_limit``, ``work_limit`` and ``seed`` as ``solve``
        takes them, for every scenario; the time limit is for each by itself.

    Returns
    -------
    Sweep
        Of all scenarios. One that cannot be solved is ``"failed"`` and says why; Ctrl-C and the
        callback leave the rest ``"not run"``.

    Raises
    ------
    InvalidInput
        If an argument cannot be used; every problem is named.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1], [1, 2], [2, 0], [0, 1]]
    ... )
    >>> with ThreadPoolExecutor(2) as threads:
    ...     print(ek.sweep(cluster, ["node", ek.Changes(load_factor=2.0)], threads))
    4 scenarios: 3 fit with nothing lost, 1 unfit with nothing lost
      scenario  status      broken  lost  quorum  short  max/mean  fullest  moves
      load x 2  infeasible       2     0       0      0    1.1250   150.0%      0
      ...
    """
    require_cluster(cluster)
    find(method)
    faults = FaultList()
    changes = read_scenarios(faults, cluster, scenarios)
    if executor is not None and not isinstance(executor, Executor):
        faults.add("executor", executor, "must be a concurrent.futures.Executor")
    if callback is not None and not callable(callback):
        faults.add("callback", callback, "must be callable")
    held = _protocol(faults, protocol)
    if recovery is not None:
        check_throttle(faults, cluster, recovery)
    # what was counted of the caller's own placement need not travel
    own = cluster.with_placement(replace(cluster.placement))
    study = Study(HeldCluster(own), method, asked, recovery, held)
    try:
        now = result_now(study._replace(recovery=None) if faults else study, changes)
    except InvalidInput as error:
        faults.faults += error.faults
    faults.raise_if_any()
    began = time.perf_counter()
    log_event(logger, "sweeping", scenarios=len(changes), method=method, seed=asked.get("seed", 0))
    answers = fan_out(result_of, study, changes, executor, callback, together=loss_results)
    results = tuple(
        unknown_result(cluster, one) if not isinstance(one, ScenarioResult) else one
        for one in answers
    )
    found = Sweep(cluster, now, tuple(changes), results, method, asked)
    log_event(
        logger, "swept", scenarios=len(changes),
        done=sum(one.status != "not run" for one in results),
        failed=sum(one.status == "failed" for one in results), fit=int(found.fits.sum()),
        stop_reason="done" if found.complete else "interrupted",
        seconds=time.perf_counter() - began,
    )  # fmt: skip
    return found


def _protocol(faults: FaultList, given: str | Protocol) -> Protocol:
    try:
        return given if isinstance(given, Protocol) else Protocol.named(given)
    except InvalidInput as error:
        faults.faults += error.faults
        return Protocol("plain")
