"""Model and assignment, out."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.atomic import write_atomically
from evenkeel.systems.roadef.cluster import native_of
from evenkeel.systems.roadef.reassignment import RoadefModel


def write(cluster: Cluster, placement: Placement, path: str | Path) -> None:
    """Write the machine of each process on one line; compressed if the name ends in ``.gz``."""
    write_atomically(path, encoded_assignment(cluster, placement, Path(path)))


def encoded_assignment(cluster: Cluster, placement: Placement, path: Path) -> bytes:
    """Return the content of an assignment file."""
    if placement.slots not in (1, None) or (np.diff(placement.first) != 1).any():
        raise InvalidInput([Fault("placement", placement.slots, "needs one replica per partition")])
    if (placement.node < 0).any():
        lost = int(np.argmax(placement.node < 0))
        raise InvalidInput([Fault(f"placement[{lost}]", -1, "is on no machine")])
    if len(placement) != len(cluster.partitions):
        raise InvalidInput([Fault("placement", len(placement), "is of another cluster")])
    return _packed(path, " ".join(map(str, placement.node.tolist())) + "\n")


def write_model(cluster: Cluster, path: str | Path) -> None:
    """Write the integers that the cluster was read from, one record per line."""
    write_atomically(path, encoded_model(cluster, Path(path)))


def encoded_model(cluster: Cluster, path: Path) -> bytes:
    """Return the content of a model file."""
    return _packed(path, "\n".join(_model_lines(native_of(cluster))) + "\n")


def _model_lines(model: RoadefModel) -> Iterable[str]:
    """Yield the six sections, one record per line."""

    def line(*values: object) -> str:
        return " ".join(map(str, values))

    resources = len(model.transient)
    yield str(resources)
    for flag, weight in zip(model.transient.tolist(), model.load_weight.tolist(), strict=True):
        yield line(int(flag), weight)
    machines = len(model.capacity)
    yield str(machines)
    others = np.arange(machines)
    for m in range(machines):
        far = model.distance.between(
            np.full(machines, m), others, model.neighbourhood, model.location
        )
        yield line(
            model.neighbourhood[m], model.location[m], *model.capacity[m].tolist(),
            *model.safety[m].tolist(), *far.tolist(),
        )  # fmt: skip
    yield str(len(model.spread))
    first = np.searchsorted(model.needs[:, 0], np.arange(len(model.spread) + 1)).tolist()
    for s, amount in enumerate(model.spread.tolist()):
        needed = model.needs[first[s] : first[s + 1], 1].tolist()
        yield line(amount, len(needed), *needed)
    yield str(len(model.service))
    rows = np.column_stack([model.service, model.requirement, model.move_cost])
    yield from (line(*row) for row in rows.tolist())
    yield str(len(model.balance))
    for *pair, weight in model.balance.tolist():
        yield line(*pair)
        yield str(weight)
    yield line(model.process_weight, model.service_weight, model.machine_weight)


def _packed(path: Path, text: str) -> bytes:
    data = text.encode("ascii")
    return gzip.compress(data, mtime=0) if path.suffix == ".gz" else data
