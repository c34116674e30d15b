"""Model and assignment, in."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import check_range
from evenkeel.systems.roadef.cluster import cluster_of
from evenkeel.systems.roadef.reassignment import MoveDistance, RoadefModel
from evenkeel.systems.roadef.words import Truncated, Words, integers

MODEL_NAME = re.compile(r"model.*\.txt(\.gz)?")


def read(path: str | Path, assignment: str | Path | None = None) -> Cluster:
    """Read a model and the assignment that stands now.

    Raises
    ------
    InvalidInput
        Naming every problem in both files: words that are no integers, a truncated file, counts
        that do not fit, ids out of range.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "model_x.txt").write_text("1 0 10 1 0 0 9 5 0 1 0 0 1 0 7 1 0 1 10 100")
    >>> _ = (folder / "assignment_x.txt").write_text("0")
    >>> read(folder)
    <Cluster: 1 node, 1 partition, 1 replica wanted, 1 dimension>
    """
    faults = FaultList()
    model_path, assignment_path = pair(Path(path), assignment)
    initial = integers(faults, assignment_path)
    model = _read_model(faults, model_path, initial, assignment_path.name)
    faults.raise_if_any()
    if model is None:
        raise AssertionError("a model that could not be read left no fault")
    try:
        return cluster_of(model)
    except InvalidInput as error:
        name = model_path.name
        raise InvalidInput(
            [Fault(f"{name}: {one.path}", one.value, one.message) for one in error.faults]
        ) from None


def read_assignment(path: str | Path, cluster: Cluster) -> Placement:
    """Read another assignment of the same processes."""
    faults = FaultList()
    file = Path(path)
    at = integers(faults, file)
    _check_assignment(faults, file.name, at, len(cluster.partitions), len(cluster.nodes))
    faults.raise_if_any()
    return cluster.placement.replaced(at.astype(np.int32), cluster.placement.leader)


def _models(folder: Path) -> list[Path]:
    return sorted(f for f in folder.iterdir() if MODEL_NAME.fullmatch(f.name))


def pair(path: Path, assignment: str | Path | None = None) -> tuple[Path, Path]:
    """Return the model file and its assignment, of which either may be found by the other."""
    if path.is_dir():
        found = _models(path)
        if len(found) != 1:
            names = [f.name for f in found]
            raise InvalidInput([Fault(str(path), names, "needs one model_*.txt in the folder")])
        path = found[0]
    if assignment is not None:
        return path, Path(assignment)
    if not path.name.startswith("model"):
        raise InvalidInput(
            [Fault(str(path), path.name, "is not named model*.txt: name both files")]
        )
    beside = path.with_name("assignment" + path.name.removeprefix("model"))
    for other in (beside, beside.with_name(beside.name + ".gz"), beside.with_suffix("")):
        if other.exists():
            return path, other
    return path, beside


def _check_assignment(
    faults: FaultList, name: str, at: NDArray[np.int64], processes: int, machines: int
) -> None:
    if len(at) != processes:
        faults.add(name, len(at), f"needs the machine of each of {processes} processes")
    check_range(faults, name, at, 0, machines, f"must be one of {machines} machines")


def _read_model(
    faults: FaultList, path: Path, initial: NDArray[np.int64], assignment: str
) -> RoadefModel | None:
    """Read the six sections; None after a fault that leaves nothing to build."""
    words = Words(faults, path)
    try:
        resources = words.count("resources")
        kinds = words.take(2 * resources, "resources").reshape(-1, 2)
        check_range(faults, f"{path.name}: transient", kinds[:, 0], 0, 2, "must be 0 or 1")

        machines = words.count("machines")
        width = 2 + 2 * resources + machines
        table = words.take(machines * width, "machines").reshape(machines, width)
        services = words.records("services", 2)
        spread, needs = _read_services(words, services)
        processes = words.count("processes")
        width = resources + 2
        rows = words.take(processes * width, "processes").reshape(processes, width)
        check_range(
            faults, f"{path.name}: service", rows[:, 0], 0, services,
            f"must be one of {services} services",
        )  # fmt: skip
        _check_assignment(faults, assignment, initial, processes, machines)
        balances = words.count("balance costs")
        balance = words.take(4 * balances, "balance costs").reshape(-1, 4)
        check_range(
            faults, f"{path.name}: balance cost", balance[:, :2], 0, resources,
            f"must be one of {resources} resources",
        )  # fmt: skip
        weights = words.take(3, "weights").tolist()
        words.finish()
    except Truncated:
        return None
    distance = _distance(faults, path.name, table[:, 2 + 2 * resources :], table[:, 0], table[:, 1])
    if faults:
        return None
    return RoadefModel(
        transient=_kept(kinds[:, 0] == 1),
        load_weight=_kept(kinds[:, 1]),
        neighbourhood=_kept(table[:, 0]),
        location=_kept(table[:, 1]),
        capacity=_kept(table[:, 2 : 2 + resources]),
        safety=_kept(table[:, 2 + resources : 2 + 2 * resources]),
        distance=distance,
        spread=_kept(spread),
        needs=_kept(needs),
        service=_kept(rows[:, 0]),
        requirement=_kept(rows[:, 1:-1]),
        move_cost=_kept(rows[:, -1]),
        balance=_kept(balance),
        process_weight=weights[0],
        service_weight=weights[1],
        machine_weight=weights[2],
        initial=_kept(initial),
    )


def _kept(values: NDArray[Any]) -> NDArray[Any]:
    """Copy out of the file's integers, read-only, so that the whole file need not stay."""
    own = np.array(values, order="C")
    own.flags.writeable = False
    return own


def _read_services(words: Words, services: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    spread = np.zeros(services, np.int64)
    needs = []
    for s in range(services):
        head = words.take(2, f"service {s}")
        spread[s] = head[0]
        others = words.take(int(head[1]), f"service {s} dependencies")
        check_range(
            words.faults, f"{words.name}: service {s} dependencies", others, 0, services,
            f"must be one of {services} services",
        )  # fmt: skip
        needs += [(s, other) for other in others.tolist()]
    return spread, np.array(needs, np.int64).reshape(-1, 2)


def _distance(
    faults: FaultList,
    name: str,
    matrix: NDArray[np.int64],
    neighbourhood: NDArray[np.int64],
    location: NDArray[np.int64],
) -> MoveDistance:
    """Put the machine move costs into three numbers where they say it all."""
    own = np.diagonal(matrix)
    if (own != 0).any():
        m = int(np.argmax(own != 0))
        faults.add(f"{name}: machine {m}", int(own[m]), "must cost 0 to stay where it is")
    classes = []
    for m in range(len(matrix)):
        far = neighbourhood != neighbourhood[m]
        apart = ~far & (location != location[m])
        classes += [(2, matrix[m][far]), (1, matrix[m][apart]), (0, matrix[m][~far & ~apart])]
    found: dict[int, int] = {}
    for kind, values in classes:
        if len(values) and (found.setdefault(kind, int(values[0])) != values).any():
            return MoveDistance((0, 0, 0), _kept(matrix.astype(np.uint32)))
    return MoveDistance((found.get(2, 0), found.get(1, 0), found.get(0, 0)), None)
