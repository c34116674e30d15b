"""Forecast: the expected growth of a cluster, and the grown cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.changes import Changes, NewPartitions, by_dimension, multiplied
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.reading.arrays import entries_of
from evenkeel.model.reading.keywords import did_you_mean, known_fields

# what all loads are multiplied by, or those of each dimension by name
Factor = float | Mapping[str, float]


@known_fields
@dataclass(frozen=True, eq=False)
class Forecast:
    """How a cluster is expected to grow: first partitions join, then loads are multiplied.

    Parameters
    ----------
    load : float or mapping of str to float
        Factor on all loads, or on those of some dimensions.
    groups : mapping of str to (float, or mapping of str to float)
        The same for the partitions of single groups, in place of ``load``.
    partitions : NewPartitions or None
        Partitions that join, as ``Changes`` takes them; their loads are what they will be, and are
        not multiplied.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[10.0]] * 3, load=[[2.0]] * 6, placement=[[0], [1], [2]] * 2,
    ...     group=["orders"] * 3 + ["logs"] * 3)
    >>> forecast = ek.Forecast(load=1.5, groups={"logs": 4.0})
    >>> ek.size(cluster, forecast).price                      # 33 in all, on nodes of 10
    1.0
    """

    load: Factor = 1.0
    groups: Mapping[str, Factor] = field(default_factory=dict)
    partitions: NewPartitions | None = None


def read_forecast(
    faults: FaultList, cluster: Cluster, given: "Forecast | Factor | Cluster | None"
) -> Cluster:
    """Return the cluster that a forecast makes of another; note what is wrong with it."""
    if isinstance(given, Cluster):
        if given.dimensions != cluster.dimensions:
            faults.add("forecast", given.dimensions, f"must have dimensions {cluster.dimensions}")
        return given
    forecast = given if isinstance(given, Forecast) else Forecast(1.0 if given is None else given)
    path = "forecast.load" if isinstance(given, Forecast) else "forecast"
    count = len(cluster.partitions)
    factor = np.tile(by_dimension(faults, path, cluster.dimensions, forecast.load), (count, 1))
    names = cluster.partitions.group_names
    for name, one in entries_of(faults, "forecast.groups", forecast.groups).items():
        at = f"forecast.groups[{name!r}]"
        of_group = by_dimension(faults, at, cluster.dimensions, one)
        if name in names:
            factor[cluster.partitions.group == names.index(name)] = of_group
        else:
            faults.add(at, name, f"unknown group{did_you_mean(str(name), [*names])}")
    if forecast.partitions is not None:
        try:
            cluster = cluster.apply(Changes(partitions=forecast.partitions))
        except InvalidInput as error:
            faults.take(error, "forecast.")
        more = len(cluster.partitions) - count
        factor = np.vstack([factor, np.ones((more, len(cluster.dimensions)))])
    return cluster if faults else grown_by(faults, path, cluster, factor)


def grown_by(
    faults: FaultList, path: str, cluster: Cluster, factor: NDArray[np.float64]
) -> Cluster:
    """Return a cluster with its loads multiplied by factors, (P, D) or what broadcasts to it."""
    if (factor == 1.0).all():
        return cluster
    placement = replace(cluster.placement)  # what was counted of it was counted of other loads
    load = multiplied(faults, path, cluster.partitions.load, factor)
    partitions = replace(cluster.partitions, load=load)
    return replace(cluster, partitions=partitions, placement=placement)


def read_shares(
    faults: FaultList, path: str, cluster: Cluster, given: Factor
) -> NDArray[np.float64]:
    """Read how full a node may be, as one share or by dimension; (D,), 1 where none is given."""
    share = by_dimension(faults, path, cluster.dimensions, given)
    for d in np.flatnonzero((share <= 0.0) | (share > 1.0)).tolist():
        if not faults.about(path):
            faults.add(path, float(share[d]), "must be a share of capacity, above 0, at most 1")
    return share
