"""Damaged files for every reader: each must end in a cluster or in ``InvalidInput``, and soon.

``python -m tests.format_fuzzing --mutants 20000`` reads as many for every reader and prints what
became of them. The same seed makes the same files.
"""

import argparse
import io
import json
import random
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evenkeel.formats import registry
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import InvalidInput
from evenkeel.model.rules import Rule

DATA = next(parent / "data" for parent in Path(__file__).parents if (parent / "data").is_dir())

Files = tuple[bytes, ...]
"""Content of the files that are read together; the first of them is damaged."""

NUMBERS = (
    b"0", b"-1", b"1e999", b"-0.0", b"0.5", b"NaN", b"null", b"true", b"127", b"32767", b"65536",
    b"2147483648", b"4294967295", b"4294967296", b"9223372036854775808", b"9" * 25, b"9" * 400,
    b"1" * 4301, b"9" * 9000, b"1e308",
)  # fmt: skip
TEXTS = (
    b'""', b'"\\ud800"', b'"\\u0000"', b'"\xff\xfe"', b'"' + b"x" * 3000 + b'"', b'"node"',
    '"٣"'.encode(), b'"zone=a,zone!=a"', b'"' + b"a=b," * 600 + b'a=b"', b"null", b"7", b"{}", b"[]",
    b"[" * 40 + b"]" * 40, b"[" * 3000 + b"]" * 3000, b'{"a":' * 3000 + b"1" + b"}" * 3000,
    b'{"DISK":' * 2000 + b"1" + b"}" * 2000,
)  # fmt: skip
WORDS = (b" " * 2000, b"\t" * 2000, b"\x00", b"\n" * 50, b"\xef\xbb\xbf", b"\r\n", b"Topic: ", b"-")


@dataclass(frozen=True)
class Reader:
    """One reader: files that it can read, and how they are damaged and handed in.

    Parameters
    ----------
    name : str
        What to call it.
    samples : tuple of Files
        Files that are read without a fault.
    damage : callable
        ``damage(random, content) -> content``.
    read : callable
        ``read(files, folder)``; raises or returns a cluster.
    """

    name: str
    samples: tuple[Files, ...]
    damage: Callable[[random.Random, bytes], bytes]
    read: Callable[[Files, Path], Cluster]


@dataclass
class Report:
    """What became of damaged files.

    Parameters
    ----------
    outcomes : Counter of str
        How many were read, refused, or ended otherwise.
    escapes : list of (str, Files)
        What was wrong with each that ended otherwise, and its files.
    slowest : float
        Greatest CPU time of one, in seconds.
    slow : Files
        The files that took it.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    escapes: list[tuple[str, Files]] = field(default_factory=list)
    slowest: float = 0.0
    slow: Files = ()


def fuzz(reader: Reader, mutants: int, seed: int, most_memory: int = 100 << 20) -> Report:
    """Read damaged files; what is neither read nor refused, or takes much memory, is an escape."""
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        for files in mutated(reader, mutants, seed):
            held, began = _peak(), time.process_time()
            outcome, wrong = _outcome(reader, files, Path(folder))
            seconds = time.process_time() - began
            if _peak() - held > most_memory:
                wrong = f"took {(_peak() - held) >> 20} MiB ({outcome})"
            report.outcomes[outcome] += 1
            if wrong:
                report.escapes.append((wrong, files))
            if seconds > report.slowest:
                report.slowest, report.slow = seconds, files
    return report


def mutated(reader: Reader, mutants: int, seed: int) -> Iterator[Files]:
    """Yield damaged copies of a reader's samples, one after the other."""
    draw = random.Random(f"{reader.name} {seed}")
    for i in range(mutants):
        content, *others = reader.samples[i % len(reader.samples)]
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            content = reader.damage(draw, content)
        yield (content, *others)


def _outcome(reader: Reader, files: Files, folder: Path) -> tuple[str, str]:
    """Return what became of files, and what is wrong with that."""
    try:
        reader.read(files, folder)
    except InvalidInput as error:
        text = str(error)
        nameless = [
            one.path for one in error.faults if not re.match(r"<bytes>|source|\w*\.txt", one.path)
        ]
        if nameless:
            return "refused", f"names no file: {nameless[0][:80]}"
        return "refused", "" if len(text) < 10_000 + 10 * len(files[0]) else "says too much"
    except BaseException as error:  # noqa: BLE001 - whatever escapes is what we look for
        line = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(line.filename).name}:{line.lineno}"
        return type(error).__name__, f"{type(error).__name__} at {where}: {str(error)[:100]}"
    return "read", ""


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def damage_bytes(draw: random.Random, data: bytes) -> bytes:
    """Flip, drop, repeat or insert bytes, or cut the end off."""
    at = draw.randrange(len(data) + 1)
    end = min(at + draw.choice((1, 1, 2, 4, 8, 64, 500)), len(data))
    choice = draw.randrange(6)
    if choice == 0:
        return data[:at] + draw.randbytes(end - at) + data[end:]
    if choice == 1:
        return data[:at] + data[end:]
    if choice == 2:
        return data[:end] + data[at:end] * draw.choice((1, 2, 50)) + data[end:]
    if choice == 3:
        return data[:at] + draw.choice(WORDS) + data[at:]
    if choice == 4:
        start = draw.randrange(len(data) + 1)
        return data[:at] + data[start : start + end - at] + data[end:]
    return data[:at] if draw.random() < 0.3 else data[:at] + b"\xff" + data[end:]


def damage_text(draw: random.Random, data: bytes) -> bytes:
    """Put another number or value in the place of one, or damage bytes."""
    pattern, others = draw.choice(
        ((rb"-?\d+(\.\d+)?", NUMBERS), (rb'"[^"\\]*"|true|false|null', TEXTS), (rb"\w+", NUMBERS))
    )
    if draw.random() < 0.25 or not (found := [*re.finditer(pattern, data)]):
        return damage_bytes(draw, data)
    one = draw.choice(found)
    if draw.random() < 0.2:
        other = draw.choice(found)[0]  # what stands elsewhere
    else:
        other = draw.choice(others)
    return data[: one.start()] + other + data[one.end() :]


def damage_archive(draw: random.Random, data: bytes) -> bytes:
    """Damage the members of an archive, what its headers claim, or the archive itself."""
    if draw.random() < 0.25:
        return damage_bytes(draw, data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(one.filename, archive.read(one)) for one in archive.infolist()]
    except Exception:  # noqa: BLE001 - it is broken already
        return damage_bytes(draw, data)
    i, choice = draw.randrange(len(members)), draw.randrange(9)
    if choice > 6:
        i = max(range(len(members)), key=lambda j: members[j][0] == "meta.npy")
    name, content = members[i]
    if choice == 0:
        content = damage_bytes(draw, content)
    elif choice == 1:
        content = damage_header(draw, content)
    elif choice == 2:
        content = draw.choice(members)[1]
    elif choice == 3:
        name = draw.choice(members)[0]
    elif choice == 4:
        name = damage_bytes(draw, name.encode())[:300].decode("utf-8", "replace")
    elif choice == 5:
        content = npy(draw.choice(ARRAYS))
    elif choice > 6 and name == "meta.npy":
        content = npy(np.array(damage_text(draw, text_of(content)).decode("utf-8", "replace")))
    else:
        content = damage_header(draw, damage_header(draw, content))
    members[i] = (name, content)
    if draw.random() < 0.1:
        del members[draw.randrange(len(members))]
    file = io.BytesIO()
    kind = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", kind) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for member, inside in members:
            archive.writestr(zipfile.ZipInfo(member[:60_000] or "x"), inside, kind)
    return file.getvalue()


def damage_header(draw: random.Random, content: bytes) -> bytes:
    """Claim another type or shape in the header of an array."""
    found = [*re.finditer(rb"\d+|'[<>|][a-zA-Z]\d+'|True|False|\(|\)|\{", content[10:200])]
    if not found:
        return damage_bytes(draw, content)
    one = draw.choice(found)
    other = draw.choice(
        (b"0", b"1", b"10000000", b"9" * 18, b"9" * 5000, b"'|O'", b"'<U1'", b"'<U99999999'", b"'<f2'",
         b"'<c16'", b"'|S0'", b"'|V8'", b"True", b"(" * 90, b")", b"{", b"0, 99999999999", b"'<M8[ns]'")
    )  # fmt: skip
    header = content[: 10 + one.start()] + other + content[10 + one.end() :]
    if draw.random() < 0.8:  # with a length that fits
        size = int.from_bytes(content[8:10], "little") + len(other) - len(one[0])
        header = header[:8] + (size % 65536).to_bytes(2, "little") + header[10:]
    return header


def npy(array: np.ndarray) -> bytes:
    """Return the bytes of a ``.npy`` file, pickles included."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def text_of(content: bytes) -> bytes:
    """Return the text in a ``.npy`` file; nothing if there is none."""
    try:
        return str(np.load(io.BytesIO(content), allow_pickle=False)).encode("utf-8", "replace")
    except Exception:  # noqa: BLE001 - it is broken already
        return b"{}"


ARRAYS = (
    np.zeros(0), np.array(0), np.array(2**62), np.full(40, 32767), np.zeros((3, 0)), np.ones((2, 2, 2)),
    np.array([np.nan, np.inf, -1.0]), np.array(["a", ""]), np.array("text"), np.array([{"a": 1}], object),
    np.array([1 + 2j]), np.array([2**63], np.uint64), np.array([b"x"]), np.array(["2026-01-01"], "M8[D]"),
    np.array([True, False, True]), np.zeros(200_000, bool), np.array(32767), np.arange(6).reshape(2, 3),
)  # fmt: skip


def small_cluster() -> Cluster:
    """A small cluster with something in every part."""
    return Cluster.from_arrays(
        capacity=[[10.0, np.inf], [9.0, 5.0], [7.5, 2.0], [8.0, 3.0]],
        load=[[1.0, 0.1], [2.0, 0.2], [0.5, 0.3]],
        leader_load=[[1.5, 0.1], [2.5, 0.2], [0.5, 0.3]],
        dimensions=("cpu", "disk"), transient=["disk"], bytes="disk",
        domains={"zone": ["b", "a", "", "a"], "rack": [10, 9, -1, 8]},
        level_capacity={"zone": [[8.0, np.inf], [9.0, 1.0]]},
        level_distance=[3.0, 2.0, 0.0],
        watermark=[[8.0, np.inf], [0.0, 4.0], [7.0, 1.0], [7.0, 1.0]],
        alive=[True, False, True, True], since=[np.nan, 1.7e9, 0.0, np.nan],
        weight=[1.0, 0.5, 2.0, 1.0], max_replicas=[-1, 4, 0, -1], stands_for=[-1, -1, 1, -1],
        tags={"ssd": [True, False, False, True]}, attributes={"os": ["linux", "", "bsd", "bsd"]},
        node_names=["a", "b", "c", "d"], partition_names=["o-0", "o-1", "p-0"],
        group_names=["o", "p"], group=[0, 0, 1],
        placement=[0, 1, -1, 2, 3, 0], first=[0, 3, 4, 6], leader=[1, -1, 0],
        role=[0, 0, 1, 2, 0, 0], flags=[1, 24, 0, 128, 0, 0], replicas=[3, 2, 2], voters=[2, 1, 2],
        min_active=[1, 0, 1], move_cost=[1.0, 2.5, 1.0], attached=[2, -1, 0],
        forbidden=[[1, 0], [0, 2]], depends=[(0, 1, "zone")],
        rules=[Rule(require=["zone!=a", "+ssd"], spread={"zone": (1, "soft")}), Rule(skew={"rack": 2})],
        rule=[0, -1, 1], group_rule=[1, -1], native={"epoch": 7}, native_format="other",
    )  # fmt: skip


def instance() -> bytes:
    """A re-placement instance."""
    file = io.BytesIO()
    np.savez_compressed(
        file, capacity=np.ones((3, 2)), zone=np.arange(3), rack=np.arange(3) + 5,
        load=np.full((2, 2), 0.1), leader_extra_load=np.full((2, 2), 0.2),
        placement_before=np.array([[0, 1], [2, -1]], np.int32), dead=np.array([False, True, False]),
        new=np.zeros(3, bool), resource=np.array([0, 1], np.int32), meta=np.array("{}"),
    )  # fmt: skip
    return file.getvalue()


def from_bytes(name: str) -> Callable[[Files, Path], Cluster]:
    """Return what reads the contents of files in a format."""
    return lambda files, folder: registry.read([*files], format=name)


def from_folder(files: Files, folder: Path) -> Cluster:
    """Read a model and its assignment from files; those that start so are packed."""
    for file in folder.iterdir():
        file.unlink()
    names = []
    for kind, content in zip(("model", "assignment"), files, strict=True):
        packed = ".gz" if content.startswith(b"\x1f\x8b") else ""
        names.append(folder / f"{kind}_x.txt{packed}")
        names[-1].write_bytes(content)
    return registry.read(names, format="roadef")


def readers() -> list[Reader]:
    """All readers, with their samples."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c")
        registry.write(small_cluster(), path, "native-npz")
        npz = path.read_bytes()
        registry.write(small_cluster(), path, "native-rows")
        rows = path.read_bytes()
    kafka = {file.name: file.read_bytes() for file in (DATA / "formats").glob("kafka_*")}
    describe = kafka["kafka_describe.txt"]
    racks = [name for name in kafka if name.startswith("kafka_racks")]
    both = [
        (kafka[name], describe) for name in ("kafka_logdirs.txt", "kafka_capacity.json", *racks)
    ]
    alone = [
        (kafka[f"kafka_{name}"],)
        for name in ("describe.txt", "describe_old.txt", "generate.txt", "reassignment.json")
    ]
    worked = DATA / "roadef" / "worked"
    model, assignment = ((worked / f"{n}_worked.txt").read_bytes() for n in ("model", "assignment"))
    packed = tuple(
        (DATA / "roadef" / f"{n}_a1_1.txt.gz").read_bytes() for n in ("model", "assignment")
    )
    longhorn = json.loads((DATA / "longhorn" / "cluster.json").read_bytes())
    plain = io.BytesIO()
    np.savez(plain, capacity=np.ones((2, 1)), load=np.ones((3, 1)), replicas=np.array(2))
    return [
        Reader(
            "native-npz", ((npz,), (plain.getvalue(),)), damage_archive, from_bytes("native-npz")
        ),
        Reader("rebalancer-npz", ((instance(),),), damage_archive, from_bytes("rebalancer-npz")),
        Reader("native-rows", ((rows,),), damage_text, from_bytes("native-rows")),
        Reader("kafka", (*alone, *both), damage_text, from_bytes("kafka")),
        Reader(
            "longhorn", ((json.dumps(longhorn).encode(),),), damage_text, from_bytes("longhorn")
        ),
        Reader("roadef", ((model, assignment), packed), damage_text, from_folder),
    ]


def main() -> int:
    """Fuzz every reader, or those that are named, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", help="by name; all by default")
    parser.add_argument("--mutants", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files that escaped")
    arguments = parser.parse_args()
    escaped = 0
    for reader in readers():
        if arguments.readers and reader.name not in arguments.readers:
            continue
        report = fuzz(reader, arguments.mutants, arguments.seed)
        escaped += len(report.escapes)
        print(f"{reader.name}: {dict(report.outcomes)}, slowest {report.slowest:.3f} s", flush=True)
        for wrong, number in Counter(wrong for wrong, _ in report.escapes).most_common(12):
            print(f"  {number} {wrong}")
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            (arguments.keep / f"{reader.name}-slowest").write_bytes(report.slow[0])
            for i, (_, files) in enumerate(report.escapes[:20]):
                (arguments.keep / f"{reader.name}-{i}").write_bytes(files[0])
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
