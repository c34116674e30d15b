"""Answers of the corpus: each by its name, as a digest of what it consists of."""

import contextlib
import gzip
import hashlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

import evenkeel as ek
from evenkeel.cli import main
from evenkeel_kernels.build.shipped import COMPILING
from tests.conformance.__main__ import AGREES, known_schemas, replay_all
from tests.corpus.inputs import (
    Input,
    dumps,
    expansions,
    grouped,
    on_disks,
    small_clusters,
    whole_clusters,
)
from tests.support import places

Answer = tuple[str, str]
COMMAND = re.compile(r"^    ([a-z]+)(?:$|  )", re.M)

SMALL = ("balance", "exact", "leaders")
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "helix_crush": ("Crush", {}),
    "helix_multiround": ("MultiRound", {}),
    "helix_multiround mended": ("MultiRound", {"repaired": True}),
    "helix_crushed": ("Crushed", {}),
    "helix_crushed mended": ("Crushed", {"repaired": True}),
    "helix_crushed multiround": ("Crushed", {"base": "multiround"}),
    "helix_auto": ("Auto", {}),
    "cockroach": ("Cockroach", {}),
    "cockroach leases": ("Cockroach", {"mode": "leases"}),
    "cockroach bold": ("Cockroach", {"aggressiveness": 3.0, "load_threshold": 0.05}),
}
"""Methods of systems on any cluster, with the class and the values of their options."""

WAGED: dict[str, dict[str, Any]] = {
    "helix_waged": {},
    "helix_waged overwrite": {"scope": "overwrite"},
    "helix_waged states": {"states": {"LEADER": 1, "STANDBY": 1, "OFFLINE": "R"}},
    "helix_waged moving": {"evenness": 3, "less_movement": 0},
}
DUMPED: dict[str, dict[str, dict[str, Any]]] = {
    "ceph": {"ceph_crush": {}, "ceph_upmap": {}},
    "cockroach": {"cockroach": {}},
    "longhorn": {
        "longhorn": {},
        "longhorn best-effort": {"replica_auto_balance": "best-effort"},
        "longhorn cluster": {"replica_auto_balance": "best-effort", "scope": "cluster"},
    },
}
"""Methods on what was read from a system, with the values of their options."""


def answers() -> Iterator[Answer]:
    """Yield every answer of the corpus with its digest."""
    for one in (*small_clusters(), *expansions()):
        yield from _of_methods(one)
        yield from _of_plan(one)
        yield from _of_session(one)
    for name, cluster, goals, limits in grouped():
        for method in ("balance", "leaders"):
            answer = _solved(cluster, method, goals=goals, limits=limits)
            yield f"{name} {method}", answer
    for name, cluster, goals, limits in on_disks():
        yield f"{name} balance", _solved(cluster, "balance", goals=goals, limits=limits)
    for one in whole_clusters():
        yield from _of_waged(one)
    yield from _of_dumps()
    yield from _of_golden_files()
    yield from _of_the_face()


def digest(*parts: Any) -> str:
    """Return twelve hexadecimal digits that stand for arrays, numbers and texts."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            array = np.ascontiguousarray(part)
            found.update(repr((array.shape, array.dtype.str)).encode())
            found.update(array.tobytes())
        else:
            found.update(part if isinstance(part, bytes) else repr(part).encode())
        found.update(b"\0")
    return found.hexdigest()[:12]


def _refusal(refused: ek.InvalidInput) -> str:
    """Return the digest of where an input is wrong, whatever folder the checkout is in."""
    return digest(sorted(fault.path.replace(str(places.ROOT), "") for fault in refused.faults))


def _solved(cluster: ek.Cluster, method: str, **given: Any) -> str:
    try:
        return _of_result(ek.solve(cluster, method, seed=5, **given))
    except ek.InvalidInput as refused:
        return _refusal(refused)


def _of_result(found: ek.Result) -> str:
    placed = found.placement
    bounds = found.bounds
    return digest(
        placed.node, placed.role, placed.leader, found.status, str(found.stop_reason),
        len(found.moves), len(found.leader_changes), len(found.unplaced), len(found.violations),
        None if bounds is None else (bounds.forced, bounds.moves_feasible, bounds.moves_level),
        *([] if placed.disk is None else [placed.disk]),
    )  # fmt: skip


def _of_methods(one: Input) -> Iterator[Answer]:
    name, cluster, goals, limits = one
    small = cluster.placement.node.size * len(cluster.nodes) <= 200
    for method in SMALL:
        if method == "exact" and not small:
            continue
        asked = {} if method == "leaders" else {"goals": goals, "limits": limits}
        yield f"{name} {method}", _solved(cluster, method, **asked)
    options: Any = ek.options
    for variant, (kind, values) in VARIANTS.items():
        chosen = getattr(options, kind)(**values)
        yield f"{name} {variant}", _solved(cluster, variant.split()[0], options=chosen)


def _of_waged(one: Input) -> Iterator[Answer]:
    name, cluster, *_ = one
    came = cluster.placement
    partial = {"scope": "partial", "baseline": came}
    emergency = {"scope": "emergency", "current": came}
    variants = WAGED | {"helix_waged partial": partial, "helix_waged emergency": emergency}
    for variant, values in variants.items():
        options = ek.options.Waged(**values)
        yield f"{name} {variant}", _solved(cluster, "helix_waged", options=options)


def _of_plan(one: Input) -> Iterator[Answer]:
    name, cluster, goals, limits = one
    result = ek.solve(cluster, goals=goals, limits=limits, seed=5)
    for protocol, node_in in (("kafka", 2), ("ceph", 3)):
        try:
            plan = ek.plan(
                cluster, result, protocol=protocol, throttle=ek.Throttle(node_in=node_in)
            )
        except ek.InvalidInput as refused:
            found = _refusal(refused)
        else:
            steps = (getattr(plan.steps, one.name) for one in fields(plan.steps))
            found = digest(*steps, plan.waves, len(plan.blocked))
        yield f"{name} plan {protocol}", found


def _of_session(one: Input) -> Iterator[Answer]:
    name, cluster, goals, _ = one
    session = ek.Session(cluster)
    session.solve(goals=goals)
    session.apply(ek.Changes(down=[cluster.nodes.names[len(cluster.nodes) // 2]]))
    yield f"{name} session", _of_result(session.solve(goals=goals))


def _of_dumps() -> Iterator[Answer]:
    for name, files in dumps():
        try:
            cluster = ek.read(*files)
        except ek.InvalidInput as refused:
            yield f"{name} read", _refusal(refused)
            continue
        placed = cluster.placement
        yield (
            f"{name} read",
            digest(
                cluster.nodes.names, cluster.partitions.names, cluster.nodes.capacity,
                placed.node, placed.role, placed.leader,
            ),
        )  # fmt: skip
        yield f"{name} balance", _solved(cluster, "balance")
        for variant, values in DUMPED.get(name.split("/")[1], {}).items():
            method = variant.split()[0]
            chosen = {"options": ek.options.Longhorn(**values)} if values else {}
            yield f"{name} {variant}", _solved(cluster, method, **chosen)


def _of_golden_files() -> Iterator[Answer]:
    known = known_schemas()
    golden, worked = places.DATA / "golden", places.DATA / "roadef" / "worked"
    with tempfile.TemporaryDirectory() as written:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = replay_all([worked], known, Path(written))
            with _compiling_allowed():
                status = max(status, replay_all([golden], known, Path(written)))
        assert status == AGREES, said.getvalue()
        for file in sorted(Path(written).rglob("*")):
            if file.is_file():
                place = file.relative_to(written).as_posix()
                yield f"golden {place}", digest(_unpacked(file))


@contextlib.contextmanager
def _compiling_allowed() -> Iterator[None]:
    """Let kernels compile that replays call by themselves, which no wheel contains."""
    forbidden = os.environ.pop(COMPILING, None)
    try:
        yield
    finally:
        if forbidden is not None:
            os.environ[COMPILING] = forbidden


def _unpacked(file: Path) -> bytes:
    data = file.read_bytes()
    return gzip.decompress(data) if file.suffix == ".gz" else data


def _of_the_face() -> Iterator[Answer]:
    for name in sorted(ek.__all__):
        public = getattr(ek, name)
        # later versions of Python give numbers more methods
        inherited = dir(int) if isinstance(public, type) and issubclass(public, int) else ()
        own = {*dir(public)}.difference(inherited)
        inside = sorted(one for one in own if not one.startswith("_"))
        yield f"name {name}", digest(inside)
    top = _help()
    yield "help", digest(_words(top))
    for command in COMMAND.findall(top):
        yield f"help {command}", digest(_words(_help(command)))


def _words(text: str) -> str:
    """Return a help text as every Python prints it: margins, and what follows a name, differ."""
    return " ".join(re.sub(r"(-[-\w]+) [A-Z]+, (?=-)", r"\1, ", text).split())


def _help(*command: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main([*command, "--help"])
    return out.getvalue()
