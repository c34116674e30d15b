"""Writing a plan as a folder, wave by wave: put in place as a whole, or not at all."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import rows_alone
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.runtime.collecting import collector_held
from evenkeel.planning.plan import Plan
from evenkeel.planning.planner import planned
from evenkeel.planning.steps import outcome
from evenkeel.systems.folders import held
from evenkeel.systems.folders.carrier import Carrier, Change, Wave, comers
from evenkeel.systems.folders.form import (
    FILE,
    VERSION,
    Expected,
    Form,
    WaveForm,
    encoded,
    settings_of,
)
from evenkeel.systems.folders.guarding import PLAN, STATE, State, encoded_state
from evenkeel.systems.folders.outside import digest_of, has_room_for_both
from evenkeel.systems.folders.readme import (
    left_of_plan,
    left_of_way_back,
    readme,
    readme_of_way_back,
)
from evenkeel.systems.one_way import left_disabled
from evenkeel.systems.plans.writing import encoded_beside, encoded_cluster
from evenkeel.systems.registry import find, is_known

Row = tuple[tuple[int, ...], int]
"""The nodes of a partition by slot, and the one that leads; -1 for none."""


def waves_of(plan: Plan, original: Placement) -> list[list[Change]]:
    """Return what each wave changes, by partition; those that change nothing are left out.

    ``original`` is how everything was before any plan: where a plan begins, and its undo leads.
    """
    names = [*plan.cluster.partitions.names]
    # of the others nothing changes: rows of those that are touched are all there is to follow
    touched = np.unique(plan.steps.partition)
    start, target, origin = (
        rows_alone(one, touched) for one in (plan.cluster.placement, plan.target, original)
    )
    place = np.searchsorted(touched, plan.steps.partition).astype(np.int32)
    moved = start.first[place] - plan.cluster.placement.first[plan.steps.partition]
    replica = (plan.steps.replica + moved).astype(np.int32)
    steps = replace(plan.steps, partition=place, replica=replica)
    at, first = listed(start), listed(origin)
    waves: list[list[Change]] = []
    done = np.zeros(0, np.intp)
    for wave in plan.waves:
        done = np.sort(np.concatenate([done, wave]))
        own = np.unique(place[wave])
        changes = []
        after = listed(rows_alone(outcome(start, steps, target, done), own))
        for r, row in zip(own.tolist(), after, strict=True):
            if row != (was := at[r]):
                p = int(touched[r])
                restored = row[0] == first[r][0] and row[1] in (first[r][1], -1)
                joins = comers(was[0], row[0])
                changes.append(Change(p, names[p], was[0], row[0], was[1], row[1], restored, joins))
                at[r] = row
        if changes:
            waves.append(changes)
    return waves


def listed(placement: Placement) -> list[Row]:
    """Return the rows of a placement one by one."""
    first, nodes = placement.first.tolist(), placement.node.tolist()
    led = placement.leader_node.tolist()
    return [
        (tuple(nodes[begin:end]), leads)
        for begin, end, leads in zip(first, first[1:], led, strict=False)
    ]


CLUSTER: Literal["cluster.npz"] = "cluster.npz"
"""The cluster, once for both ways."""

RUN = b"""#!/bin/sh
exec "${EVENKEEL:-evenkeel}" run "$(dirname -- "$0")" "$@"
"""


@known_keywords
def write_plan_folder(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    after: str | os.PathLike[str] | None = None,
) -> Path:
    r"""Write a plan as a folder that an operator reviews, and runs on the real system.

    It holds ``README.md``; ``waves.json``, the commands of each wave and what they expect of the
    system; the files that these name, in ``waves``; ``run.sh``, which calls ``evenkeel run``;
    ``plan.json``, and the cluster, ``cluster.npz``; and in ``undo`` the same for the way back.

    Parameters
    ----------
    plan : Plan
        What ``plan`` returned, for a cluster that was read from a system.
    folder : str or path
        Where it goes. It is made beside that and put in place when it is complete.
    overwrite : bool, optional
        Whether a folder of another plan may be replaced; what else stands there never is.
    after : str or path, optional
        The folder whose run was stopped, where this plan goes on from there: a setting of the
        system that it still holds is given back at the end of this one, as it was at first.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InvalidInput
        If the cluster's system cannot carry out a plan by commands, a name cannot stand in them, or
        something else stands there.
    OSError
        If it cannot be written.

    Examples
    --------
    >>> import tempfile, evenkeel as ek
    >>> described = (
    ...     "Topic: t\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: \n"
    ...     "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    ...     "\tTopic: t\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    ... )
    >>> c = ek.read(described.encode(), b"broker,rack\n1,a\n2,b\n")
    >>> plan = ek.solve(c, goals=ek.Goals(level=0.0)).plan(protocol="kafka")
    >>> with tempfile.TemporaryDirectory() as there:
    ...     sorted(file.name for file in write_plan_folder(plan, f"{there}/move").iterdir())
    ['README.md', 'cluster.npz', 'plan.json', 'run.sh', 'state.json', 'undo', 'waves', 'waves.json']
    """
    target = Path(os.path.realpath(folder))
    holder = None if after is None else held.holding([Path(after, held.HELD)])
    check_folder(target, overwrite=overwrite, holder=holder)
    with collector_held():
        _put_in_place(target, _whole_folder(plan), holder)
    return Path(folder)


def _whole_folder(plan: Plan) -> dict[Path, bytes]:
    """Return the files of a folder, by their paths in it."""
    carrier = carrier_of(plan.cluster.native_format)
    _check_steps(plan)
    original = plan.cluster.placement
    given_up = carrier.gives_up(plan.cluster)
    disabled = left_disabled(plan.cluster, plan.end)
    back = plan.undo()
    if disabled.any() or not given_up.all():
        back = _back_but_for_repairs(plan, given_up, disabled)
    there = plan.cluster.placement
    waves, ways_back = (
        carrier.stages(plan.cluster, waves_of(way, original)) for way in (plan, back)
    )
    files = {
        Path(CLUSTER): encoded_cluster(plan.cluster),
        Path(PLAN): encoded_beside(plan, CLUSTER, there),
        Path(held.UNDO, PLAN): encoded_beside(back, "../cluster.npz", there),
    }
    undo, form = _files(back, carrier, ways_back, "..", left_of_way_back(plan, back, ways_back))
    files |= {Path(held.UNDO, name): data for name, data in undo.items()}
    files[Path(held.UNDO, "README.md")] = readme_of_way_back(plan, carrier, back, ways_back, form)
    own, form = _files(plan, carrier, waves, ".", left_of_plan(plan))
    files |= own
    files[Path("README.md")] = readme(plan, carrier, waves, back, ways_back, form)
    return files


def _back_but_for_repairs(
    plan: Plan, given_up: NDArray[np.bool_], disabled: NDArray[np.bool_]
) -> Plan:
    """Return the way back on which partitions that were short of replicas stay as they are.

    Those of ``given_up (P,)`` do not; those that are ``disabled (P,)`` on a node they left do.
    """
    before, end = plan.cluster.placement, plan.end
    had, has = (_nodes_held(one, len(plan.cluster.nodes)) for one in (before, end))
    repaired = np.flatnonzero((has > had) & ~given_up | disabled)
    kept = np.isin(before.owner, repaired)
    leader = before.leader.copy()
    leader[repaired] = end.leader[repaired]
    target = before.replaced(np.where(kept, end.node, before.node), leader)
    cluster = replace(plan.cluster, placement=end)
    return planned(cluster, target, plan.throttle, plan.protocol, before)


def _nodes_held(placement: Placement, nodes: int) -> NDArray[np.intp]:
    """Return on how many nodes each partition stands, (P,) int."""
    held = placement.node >= 0
    pairs = np.unique(placement.owner[held].astype(np.int64) * nodes + placement.node[held])
    return np.bincount(pairs // nodes, minlength=len(placement))


def check_folder(
    folder: str | os.PathLike[str], *, overwrite: bool, holder: Path | None = None
) -> None:
    """Raise for a place where no folder of a plan can be put.

    ``holder`` is the folder whose run was stopped, and which this one goes on after.
    """
    target = Path(folder)
    message = ""
    if target.is_dir():
        if any(target.iterdir()) and not held.holds_folder(target):
            message = "is a folder of something else: choose another"
        elif any(target.iterdir()) and not overwrite:
            message = "is the folder of a plan already: choose another, or overwrite it"
            message += " (overwrite=True, --force)"
        elif held.files(target) and target.resolve() != holder:
            message = "is the folder of a run that still holds a setting of its system: "
            message += "`sh run.sh --release` there gives it back"
    elif target.exists():
        message = "is a file: choose another"
    if message:
        raise InvalidInput([Fault("folder", os.fspath(folder), message)])


INSTEAD = (
    "; write the plan to a file that ends in .json, and its steps, wave by wave, to a table "
    "(write_plan; plan -o plan.json --table steps.csv)"
)
"""What to do where a system's commands cannot be written."""


def carrier_of(name: str) -> Carrier:
    """Return how a system carries out plans, by the name of its format."""
    if not name or not is_known(name):
        message = "is of no system: a folder holds the commands of the one that files were read of"
        raise InvalidInput([Fault("plan.cluster", name, message + INSTEAD)])
    system = find(name)
    if system.carrier is None:
        message = system.no_carrier or "has no commands that carry out a plan"
        raise InvalidInput([Fault("plan.cluster", name, message + INSTEAD)])
    return system.carrier


def _check_steps(plan: Plan) -> None:
    """Raise for a plan that changes roles in place: none of the systems has a command for that."""
    recast = np.flatnonzero(plan.steps.in_place)
    if len(recast):
        row = plan.rows_of(recast[:1])[0]
        step = f"{row.kind} of {row.partition} on {row.target}"
        message = f"changes roles in place, which {plan.cluster.native_format} has no command for"
        raise InvalidInput([Fault(f"plan.steps[{row.step}]", step, message)])


def _files(
    plan: Plan, carrier: Carrier, waves: Sequence[Wave], whole: str, left: str
) -> tuple[dict[Path, bytes], Form]:
    """Return the files of one way, by their paths in its folder; ``whole`` is that of both."""
    cluster = plan.cluster
    first = carrier.first(plan)
    orders = carrier.orders(cluster, waves)
    form = Form(
        version=VERSION,
        format=cluster.native_format,
        nodes=[*cluster.nodes.names],
        dead=np.flatnonzero(~cluster.nodes.alive).tolist(),
        in_any_order=has_room_for_both(cluster, waves),
        outside=digest_of(
            cluster, [one.partition for wave in waves for one in wave],
            lists_down=carrier.lists_down,
        ),
        left=left,
        whole=whole,
        still=carrier.still,
        settings=settings_of(carrier.settings, carrier.given(plan)),
        first=[*first.commands],
        look=[*carrier.look(plan)],
        hold=[*carrier.hold],
        waves=[
            WaveForm([*_expected(wave, carrier)], [*one.commands], [*one.ends])
            for wave, one in zip(waves, orders, strict=True)
        ],
    )  # fmt: skip
    files = {
        Path("run.sh"): RUN,
        Path(FILE): encoded(form),
        Path(STATE): encoded_state(State(len(waves))),
    }
    files |= {Path(name): data for one in (first, *orders) for name, data in one.files.items()}
    return files, form


def _expected(wave: Wave, carrier: Carrier) -> Iterator[Expected]:
    """Yield what is expected of each change that a look can see."""
    for one in wave:
        leads = carrier.leader(one)
        # no check sees whether a leader changed that the system chooses by itself, nor that a list
        # has its order back in which who leads now came first
        if leads not in (-1, one.led) or one.joins or {*one.before} != {*one.after}:
            before, after = ([n for n in row if n >= 0] for row in (one.before, one.after))
            yield Expected(one.name, before, after, one.led, leads)


def _put_in_place(target: Path, files: Mapping[Path, bytes], holder: Path | None) -> None:
    """Write files into a folder beside its place, with what another one holds, and rename that."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        part.mkdir(parents=True)
        for inner in dict.fromkeys(path.parent for path in files):
            (part / inner).mkdir(parents=True, exist_ok=True)
        for path, data in files.items():
            (part / path).write_bytes(data)
            if path.name == "run.sh":
                (part / path).chmod(0o755)
        if holder is not None:
            held.take_along(holder, part)
        if target.exists():
            target.rename(old)
        part.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
