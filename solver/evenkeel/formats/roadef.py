"""Machine-reassignment files (ROADEF/EURO challenge 2012): model and assignment, in and out.

A process is a partition with one replica, a service is a group, a machine a node; neighbourhood and
location are levels, safety capacity is a watermark. The integers of both files travel along as
``cluster.native``, so that nothing is lost on the way back.

References
----------
ROADEF/EURO challenge 2012, problem statement, input and output format: integers between white
space; line breaks carry no meaning.
"""

import gzip
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.reassignment import MoveDistance, RoadefModel
from evenkeel.model.arrays import check_range
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.goals import Cost, Proportion
from evenkeel.model.placement import Placement
from evenkeel.model.rules import Rule

NAME = "roadef"
LEVELS = ("neighbourhood", "location")
MODEL_NAME = re.compile(r"model.*\.txt(\.gz)?")
WORD_LIMIT = 2**32
"""Values are unsigned 32-bit integers."""


class _Truncated(Exception):
    """The file ended before its model did; the fault is noted already."""


class _Words:
    """The integers of one file, taken from the front."""

    def __init__(self, faults: FaultList, path: Path) -> None:
        self.faults = faults
        self.name = path.name
        self.at = 0
        self.words = _integers(faults, path)

    def take(self, count: int, what: str) -> NDArray[np.int64]:
        """Take ``count`` integers; ``what`` names them for the message."""
        there = len(self.words) - self.at
        if count > there:
            self.faults.add(f"{self.name}: {what}", there, f"the file ends; needs {count} integers")
            raise _Truncated
        taken = self.words[self.at : self.at + count]
        self.at += count
        return taken

    def count(self, what: str) -> int:
        """Take one integer that says how many records follow."""
        return int(self.take(1, what)[0])

    def finish(self) -> None:
        """Note what is left over."""
        if self.at < len(self.words):
            self.faults.add(self.name, len(self.words) - self.at, "integers after the end")


def read(path: str | Path, assignment: str | Path | None = None) -> Cluster:
    """Read a model and the assignment that stands now.

    Parameters
    ----------
    path : str or Path
        The model file, or a folder that holds one ``model_*.txt`` with its ``assignment_*.txt``.
        Files may end in ``.gz``.
    assignment : str or Path, optional
        The assignment file; by default the one beside the model, of the same name with
        ``assignment`` for ``model``.

    Returns
    -------
    Cluster
        Its ``native`` is the ``RoadefModel``; ``cost_of`` returns what to minimise.

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
    <Cluster: 1 nodes, 1 partitions, 1 replicas wanted, 1 dimension>
    """
    faults = FaultList()
    model_path, assignment_path = _pair(Path(path), assignment)
    initial = _integers(faults, assignment_path)
    model = _read_model(faults, model_path, initial, assignment_path.name)
    faults.raise_if_any()
    if model is None:
        raise AssertionError("a model that could not be read left no fault")
    return cluster_of(model)


def read_assignment(path: str | Path, cluster: Cluster) -> Placement:
    """Read another assignment of the same processes.

    Parameters
    ----------
    path : str or Path
        The file.
    cluster : Cluster
        What it assigns.

    Returns
    -------
    Placement
        Where every process stands.

    Raises
    ------
    InvalidInput
        If it has another number of processes or names unknown machines.
    """
    faults = FaultList()
    file = Path(path)
    at = _integers(faults, file)
    _check_assignment(faults, file.name, at, len(cluster.partitions), len(cluster.nodes))
    faults.raise_if_any()
    return cluster.placement.replaced(at.astype(np.int32), cluster.placement.leader)


def write(cluster: Cluster, placement: Placement, path: str | Path) -> None:
    """Write an assignment: the machine of each process, on one line.

    Parameters
    ----------
    cluster : Cluster
        What it assigns; every partition has one replica.
    placement : Placement
        Where they are.
    path : str or Path
        The file; compressed if its name ends in ``.gz``.

    Raises
    ------
    InvalidInput
        If some partition does not have exactly one placed replica.
    """
    if placement.slots not in (1, None) or (np.diff(placement.first) != 1).any():
        raise InvalidInput([Fault("placement", placement.slots, "needs one replica per partition")])
    if (placement.node < 0).any():
        lost = int(np.argmax(placement.node < 0))
        raise InvalidInput([Fault(f"placement[{lost}]", -1, "is on no machine")])
    if len(placement) != len(cluster.partitions):
        raise InvalidInput([Fault("placement", len(placement), "is of another cluster")])
    _write_text(Path(path), " ".join(map(str, placement.node.tolist())) + "\n")


def write_model(cluster: Cluster, path: str | Path) -> None:
    """Write the model file that the cluster was read from: the same integers, one record per line.

    Parameters
    ----------
    cluster : Cluster
        One that ``read`` or ``cluster_of`` made.
    path : str or Path
        The file; compressed if its name ends in ``.gz``.

    Raises
    ------
    InvalidInput
        If the cluster came from elsewhere.
    """
    _write_text(Path(path), "\n".join(_model_lines(native_of(cluster))) + "\n")


def native_of(cluster: Cluster) -> RoadefModel:
    """Return the integers that the cluster was read from.

    Parameters
    ----------
    cluster : Cluster
        One that ``read`` or ``cluster_of`` made.

    Returns
    -------
    RoadefModel
        Its ``native``.

    Raises
    ------
    InvalidInput
        If the cluster came from elsewhere.
    """
    if not isinstance(cluster.native, RoadefModel):
        raise InvalidInput(
            [Fault("cluster.native", cluster.native_format, "is not of the format 'roadef'")]
        )
    return cluster.native


def cost_of(cluster: Cluster) -> Cost:
    """Return what the challenge charges, to hand to ``solve`` as goals.

    Parameters
    ----------
    cluster : Cluster
        One that ``read`` or ``cluster_of`` made.

    Returns
    -------
    Cost
        Load above safety capacity, balance, and the three costs of moving.

    Raises
    ------
    InvalidInput
        If the cluster came from elsewhere.
    """
    model = native_of(cluster)
    names = cluster.dimensions
    return Cost(
        watermark=dict(zip(names, map(float, model.load_weight.tolist()), strict=True)),
        proportion=tuple(
            Proportion(names[a], names[b], float(target), float(weight))
            for a, b, target, weight in model.balance.tolist()
        ),
        moves=float(model.process_weight),
        group_moves=float(model.service_weight),
        distance=float(model.machine_weight),
    )


def cluster_of(model: RoadefModel) -> Cluster:
    """Build the cluster that an instance describes.

    Parameters
    ----------
    model : RoadefModel
        The instance.

    Returns
    -------
    Cluster
        A location nests in its neighbourhood where the data says so, and crosses it otherwise.

    Raises
    ------
    InvalidInput
        As ``Cluster.from_arrays``.
    """
    place = np.unique(np.stack([model.location, model.neighbourhood]), axis=1)
    nests = len(np.unique(place[0])) == place.shape[1]
    names = tuple(f"r{i}" for i in range(len(model.transient)))
    rules, group_rule = _service_rules(model)
    matrix = model.distance.matrix
    return Cluster.from_arrays(
        capacity=model.capacity.astype(np.float64),
        watermark=model.safety.astype(np.float64),
        load=model.requirement.astype(np.float64),
        dimensions=names,
        transient=[names[i] for i in np.flatnonzero(model.transient).tolist()],
        domains=dict(zip(LEVELS, (model.neighbourhood, model.location), strict=True)),
        crossing=() if nests else (LEVELS[1],),
        level_distance=np.array(model.distance.by_class if matrix is None else matrix, np.float64),
        placement=model.initial.astype(np.int32)[:, None],
        group=model.service.astype(np.int32),
        group_names=[f"s{i}" for i in range(len(model.spread))],
        rules=rules,
        rule=-1,
        group_rule=group_rule,
        depends=[(a, b, LEVELS[0]) for a, b in model.needs.tolist()],
        move_cost=model.move_cost.astype(np.float64),
        native=model,
        native_format=NAME,
    )


def _service_rules(model: RoadefModel) -> tuple[list[Rule], NDArray[np.int32]]:
    """Return one rule per number of locations asked for; services that nothing binds have none."""
    members = np.bincount(model.service, minlength=len(model.spread))
    spread = np.maximum(model.spread, 1)
    bound = (members > 1) | (spread > 1)
    amounts = np.unique(spread[bound])
    group_rule = np.full(len(spread), -1, np.int32)
    group_rule[bound] = np.searchsorted(amounts, spread[bound])
    rules = [
        Rule(spread={"node": 1}, min_domains={LEVELS[1]: amount} if amount > 1 else {})
        for amount in amounts.tolist()
    ]
    return rules, group_rule


def _models(folder: Path) -> list[Path]:
    return sorted(f for f in folder.iterdir() if MODEL_NAME.fullmatch(f.name))


def _pair(path: Path, assignment: str | Path | None) -> tuple[Path, Path]:
    """Find the two files."""
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


def _integers(faults: FaultList, path: Path) -> NDArray[np.int64]:
    """Read all integers of a file; what is none of them is a fault."""
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        decoded = text.decode("ascii")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        faults.add(path.name, type(error).__name__, f"cannot be read: {error}")
        return np.zeros(0, np.int64)
    if not decoded.strip():
        return np.zeros(0, np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            words = np.fromstring(decoded, np.int64, sep=" ")
        except (DeprecationWarning, ValueError):
            return _fault_words(faults, path.name, decoded)
    check_range(faults, path.name, words, 0, WORD_LIMIT, "must be an unsigned 32-bit integer")
    return words


def _fault_words(faults: FaultList, name: str, text: str) -> NDArray[np.int64]:
    """Note each word that is no integer; the others keep their places."""
    values = []
    for i, word in enumerate(text.split()):
        whole = re.fullmatch(r"\d{1,18}", word)
        if not whole:
            faults.add(f"{name}[{i}]", word, "must be an unsigned 32-bit integer")
        values.append(int(word) if whole else 0)
    return np.array(values, np.int64)


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
    words = _Words(faults, path)
    try:
        resources = words.count("resources")
        kinds = words.take(2 * resources, "resources").reshape(-1, 2)
        check_range(faults, f"{path.name}: transient", kinds[:, 0], 0, 2, "must be 0 or 1")

        machines = words.count("machines")
        width = 2 + 2 * resources + machines
        table = words.take(machines * width, "machines").reshape(machines, width)
        services = words.count("services")
        spread, needs = _read_services(words, services)
        processes = words.count("processes")
        rows = words.take(processes * (resources + 2), "processes").reshape(processes, -1)
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
    except _Truncated:
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


def _read_services(words: _Words, services: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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


def _write_text(path: Path, text: str) -> None:
    data = text.encode("ascii")
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
