"""The ``roadef`` format: read and write the files of the machine-reassignment problem."""

import gzip
import re
import warnings
import zlib
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.goals import Cost, Proportion
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import LISTED_FAULTS, check_range
from evenkeel.model.rules import Rule
from evenkeel.model.runtime.atomic import write_atomically
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.registry import Format, note_sources
from evenkeel.systems.roadef.reassignment import MoveDistance, RoadefModel

WORD_LIMIT = 2**32  # values are unsigned 32-bit integers
BAD_WORD = re.compile(r"(?<!\S)(?![0-9]{1,18}(?!\S))\S+", re.ASCII)


class Truncated(Exception):
    """The file ended before its model did; the fault is noted already."""


class Words:
    """The integers of one file, taken from the front."""

    def __init__(self, faults: FaultList, path: Path) -> None:
        self.faults = faults
        self.name = path.name
        self.at = 0
        self.words = integers(faults, path)

    def take(self, count: int, what: str) -> NDArray[np.int64]:
        """Take ``count`` integers; ``what`` names them for the message."""
        there = len(self.words) - self.at
        if count > there:
            self.faults.add(f"{self.name}: {what}", there, f"the file ends; needs {count} integers")
        if not 0 <= count <= there:
            raise Truncated  # that a number is negative is noted already
        taken = self.words[self.at : self.at + count]
        self.at += count
        return taken

    def count(self, what: str) -> int:
        """Take one integer, the number of records that follow."""
        count = int(self.take(1, what)[0])
        if count < 0:
            raise Truncated  # that it is negative is noted already
        return count

    def records(self, what: str, width: int) -> int:
        """Take the number of records that follow; each takes at least ``width`` integers."""
        count = self.count(what)
        there = len(self.words) - self.at
        if count * width > there:
            needed = f"the file ends; needs {count * width} integers"
            self.faults.add(f"{self.name}: {what}", there, needed)
            raise Truncated
        return count

    def finish(self) -> None:
        """Note what is left over."""
        if self.at < len(self.words):
            self.faults.add(self.name, len(self.words) - self.at, "integers after the end")


def integers(faults: FaultList, path: Path) -> NDArray[np.int64]:
    """Return all integers of a file; what is none of them is a fault."""
    try:
        data = path.read_bytes()
        # rows of distances shrink as far as anything can: no size is suspicious
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        decoded = text.decode("ascii")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        faults.add(path.name, type(error).__name__, f"cannot be read: {error}")
        return np.zeros(0, np.int64)
    if not decoded.strip():
        return np.zeros(0, np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            words = np.fromstring(decoded, np.int64, sep=" ")
        except (DeprecationWarning, ValueError):
            words = np.fromstring(_cleaned(faults, path.name, decoded), np.int64, sep=" ")
    check_range(faults, path.name, words, 0, WORD_LIMIT, "must be an unsigned 32-bit integer")
    return words


def _cleaned(faults: FaultList, name: str, text: str) -> str:
    """Note words that are no integers and put 0 in their places, so that the others keep theirs."""
    cleaned, count = BAD_WORD.subn("0", text)
    for one in islice(BAD_WORD.finditer(text), min(count, LISTED_FAULTS)):
        at = len(re.findall(r"\S+", text[: one.start()], re.ASCII))
        faults.add(f"{name}[{at}]", quoted(one[0]), "must be an unsigned 32-bit integer")
    if count > LISTED_FAULTS:
        more = count - LISTED_FAULTS
        faults.add(name, more, "more words are not unsigned 32-bit integers")
    return cleaned


MODEL_NAME = re.compile(r"model.*\.txt(\.gz)?")


def read(path: str | Path, assignment: str | Path | None = None) -> Cluster:
    """Read a model and the assignment that stands now."""
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
    """Reduce the machine move costs to three numbers where these suffice."""
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


NAME = "roadef"
LEVELS = ("neighbourhood", "location")


def native_of(cluster: Cluster) -> RoadefModel:
    """Return the integers that the cluster was read from; ``InvalidInput`` if there are none."""
    if not isinstance(cluster.native, RoadefModel):
        raise InvalidInput(
            [Fault("cluster.native", cluster.native_format, "is not of the format 'roadef'")]
        )
    return cluster.native


def cost_of(cluster: Cluster) -> Cost:
    """Return what the challenge charges for such a cluster, to hand to ``solve`` as goals."""
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
    """Build the cluster of an instance; locations cross neighbourhoods if they do not nest."""
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
        tier_distance=np.array(model.distance.by_class if matrix is None else matrix, np.float64),
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


MODEL = re.compile(r"model.*\.txt(\.gz)?")
EITHER = re.compile(r"(model|assignment).*\.txt(\.gz)?")


def read_documents(documents: Sequence[Document]) -> Cluster:
    """Read an instance from its folder, its model file, or its model and its assignment."""
    paths = [document.path for document in documents if document.path is not None]
    if len(paths) != len(documents) or len(paths) > 2:
        names = [document.name for document in documents]
        raise InvalidInput([Fault("source", names, "needs a folder, or one or two files")])
    paths.sort(key=lambda path: not MODEL.fullmatch(path.name))
    files = pair(*paths)
    cluster = read(*files)
    note_sources(*files)
    return cluster


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return an assignment, or if the path is a model's, the model with its assignment beside."""
    placement = cluster.placement if placement is None else placement
    if not MODEL.fullmatch(path.name):
        return {path: encoded_assignment(cluster, placement, path)}
    beside = path.with_name("assignment" + path.name.removeprefix("model"))
    model = encoded_model(cluster, path)
    return {path: model, beside: encoded_assignment(cluster, placement, beside)}


def _recognises(document: Document) -> str:
    path = document.path
    if path is None:
        return ""
    if path.is_dir():
        return "instance" if any(MODEL.fullmatch(file.name) for file in path.iterdir()) else ""
    plain = re.fullmatch(rb"[\d\s]+", document.data[:4096])
    named = EITHER.fullmatch(path.name)
    return named[1] if plain and named else ""


FORMAT = Format(
    name=NAME,
    summary="machine reassignment: model_*.txt with assignment_*.txt",
    suffixes=(),
    recognises=_recognises,
    read=read_documents,
    encode=encode,
)
