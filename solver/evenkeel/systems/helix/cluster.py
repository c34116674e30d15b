"""Build a cluster from Helix's records: instances become nodes, resources groups."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain, repeat
from operator import itemgetter
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag
from evenkeel.model.rules import Amount, Rule, word
from evenkeel.systems.documents import Document, largest, quoted
from evenkeel.systems.helix import resources as instances
from evenkeel.systems.helix.pinot import CONSUMING, OTHER_KINDS, SEGMENTS
from evenkeel.systems.helix.records import NONE, Found, Records, gather, is_empty
from evenkeel.systems.helix.resources import (
    ALL_RESOURCES,
    DISABLED,
    LISTED,
    MODELS,
    MOST,
    PINNED,
    Resource,
    Row,
    mode_of,
    placed_elsewhere,
    resources,
)
from evenkeel.systems.native.arguments import attributes_of, build, check_slots
from evenkeel.systems.notes import noted

NAME = "helix"
# settings of the cluster that bound how many replicas an instance has
MOST_LIMITS = ("GLOBAL_MAX_PARTITIONS_ALLOWED_PER_INSTANCE", "MAX_PARTITIONS_PER_INSTANCE")

NO_RECORD = "no {}: as a target, the files change nothing"
NO_INSTANCE = "no InstanceConfig of {}: it counts as gone, and what it holds is placed anew"
MIRRORED = (
    "replicas on {}, swapped in beside the instance that it stands for: Helix mirrors them, and "
    "they do not count"
)
STALE_DISABLED = "no ideal state of {}, for which instances are disabled: that changes nothing"
NOT_WAGED = "no {} of all instances and partitions, and no resource uses WAGED: the key is left out"
NO_KEY = "no capacity of {} of any instance: the key is left out, and WAGED places nothing"
NO_LIVE = "no live instances: all count as alive; add LIVEINSTANCES"
SILENT = (
    "no live instances: all count as alive but those in lists that no external view shows ({}); "
    "add LIVEINSTANCES"
)
FEW = "no configuration of most instances that external views show: that of {} is left out"
BROKEN = (
    "replicas in the state ERROR ({}): Helix leaves them alone until they are reset, and they "
    "count as they are"
)
NO_VIEW = "no external view: replicas count as where ideal states have them; add EXTERNALVIEW"
NO_PLACE = (
    "no external view, and no instance in the ideal state of {}: its replicas count as placed "
    "nowhere; add EXTERNALVIEW, unless they never were placed"
)
NO_CONFIG = (
    "no configuration of instances: no zones, no tags{}; add CONFIGS/PARTICIPANT, or the answer on "
    "each instance"
)
DISKS = (
    "disks inside {} (Ambry): which of them takes a replica is Ambry's own decision, and their "
    "capacities do not count"
)
UNLED = "no state of a leader for {}: its first replicas count as leaders, and that is not written"
NO_CAPACITY = "no capacity by all keys of {}: it takes nothing new, and WAGED places nothing"
NO_WEIGHTS = "no weights by all keys of {}: it stays as it is, and WAGED places nothing"


def read(
    documents: Sequence[Document],
    *,
    now: float | None = None,
    spread: Mapping[str, Amount] | None = None,
) -> Cluster:
    """Read a cluster from ZNRecords: files of one or of many, a folder, or a zip."""
    # ``now`` is the time of the dump in seconds since 1970: with it, instances that are down within
    # their delay window keep their places. ``spread`` replaces the rule of the fault zones.
    faults = FaultList()
    records = gather(faults, documents)
    if all(map(is_empty, documents)):
        records.notes.add(NO_RECORD, "ideal state")
    elif not (records.ideal or records.view or faults):
        names = [document.name for document in documents]
        message = (
            "holds no ideal state and no external view: add IDEALSTATES, as zkCli.sh prints it"
        )
        faults.add("source", names, message)
    if records.ideal or records.view:
        _note_missing(records)
    if len(records.cluster) > 1:
        for second in [*records.cluster.values()][1:]:
            faults.add(
                f"{second.at}id", second.record.id, "is a second cluster: read one at a time"
            )
    names = instances_in(records)
    states = instances.states_of(faults, records, names, now)
    alive = dict(zip(names, states["alive"].tolist(), strict=True))
    found = resources(faults, records, alive)
    places = instances.stands_for(faults, records, names)
    _leave_out_mirrored(records, found, {
        name: names[place] for name, place in zip(names, places, strict=True) if place >= 0
    })  # fmt: skip
    given: dict[str, Any] = {"node_names": names, "native_format": NAME, **states}
    given |= _amounts(faults, records, names, found)
    given |= _topology_and_rules(faults, records, names, states["gone"].tolist(), found, spread)
    given |= _placement(records, found, names, alive)
    given["accepts"] &= np.array([name not in records.closed for name in names], np.bool_)
    given["forbidden"] = _disabled(faults, records, names, found)
    given["stands_for"] = places
    given["weight"] = instances.weights_of(faults, records, names)
    given["max_replicas"] = np.full(len(names), _most_replicas(faults, records))
    given["native"] = _payload(records, found)
    source = largest(documents)
    place = f"{source.name}: simpleFields.REPLICAS"
    check_slots(faults, place, given["replicas"], len(given["replicas"]), source)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def _note_missing(records: Records) -> None:
    """Note the kinds of records that were not given, and what is assumed instead."""
    if len(records.shown - records.instance.keys()) > len(records.instance) > 0:
        records.notes.add(FEW, *records.instance)
        records.instance = {}
    if not records.tells_live:
        records.silent = _silent(records)
        records.notes.add(SILENT if records.silent else NO_LIVE, *sorted(records.silent))
    if not records.view:
        for name, one in records.ideal.items():
            rows = (*one.record.mapFields.values(), *one.record.listFields.values())
            records.notes.add(NO_VIEW) if any(rows) else records.notes.add(NO_PLACE, name)
    if not records.instance:
        disabled = any(one.disabled for one in records.listings)
        records.notes.add(NO_CONFIG.format("" if disabled else ", none disabled"))
    for name, found in records.instance.items():
        if any(
            row.keys() >= {"Replicas", "capacityInBytes"} for row in found.record.mapFields.values()
        ):
            records.notes.add(DISKS, name)


def _silent(records: Records) -> set[str]:
    """Return the enabled instances that preference lists have, and that no external view shows."""
    listed = {
        node
        for name, one in records.ideal.items()
        if name in records.view and "auto" in mode_of(one) and one.text("HELIX_ENABLED") != "false"
        for row in one.record.listFields.values()
        for node in row
        if records.config(node).text("HELIX_ENABLED") != "false"
    }
    return listed - shown - {"ANY_LIVEINSTANCE", ""} if (shown := records.shown) else set()


def _leave_out_mirrored(
    records: Records, found: Sequence[Resource], place: Mapping[str, str]
) -> None:
    """Leave out replicas on instances that are swapped in, beside those for which they stand."""
    # Helix has both until the swap is complete, and counts one
    for one in found if place else ():
        for partition, row in one.rows.items():
            mirrored = {node for node in row.nodes if place.get(node) in row.nodes}
            if mirrored:
                held = zip(row.nodes, row.states, strict=bool(row.states))
                one.rows[partition] = Row(
                    [node for node in row.nodes if node not in mirrored],
                    [own for node, own in held if node not in mirrored],
                )
                records.notes.add(MIRRORED, *sorted(mirrored))


def instances_in(records: Records) -> list[str]:
    """Return all instances by name: those that have a config, and those that are named."""
    # of a cluster of Pinot only those that may hold segments: servers
    named = {name for one in records.listings for name in one.instances} | {*records.live}
    of_pinot, held = bool(records.table), set[str]()
    for found in (*records.ideal.values(), *records.view.values()):
        of_pinot |= found.text("STATE_MODEL_DEF_REF") == SEGMENTS
        if not placed_elsewhere(found):
            custom = mode_of(found) == "customized" and bool(found.record.mapFields)
            lists = () if custom else found.record.listFields.values()
            held |= {node for row in lists for node in row}
            held |= {node for row in found.record.mapFields.values() for node in row}
    named |= held
    named -= {"ANY_LIVEINSTANCE", ""}
    if records.instance:
        for name in sorted(named - records.instance.keys()):
            records.notes.add(NO_INSTANCE, name)
    named |= records.instance.keys()
    others = {one for one in named - held if of_pinot and one.startswith(OTHER_KINDS)}
    return sorted(named - others)


def _most_replicas(faults: FaultList, records: Records) -> int:
    stated = [instances.whole(faults, records.settings, name) for name in MOST_LIMITS]
    return min((most for most in stated if 0 < most < MOST), default=-1)


def _topology_and_rules(
    faults: FaultList,
    records: Records,
    names: Sequence[str],
    gone: Sequence[bool],
    found: Sequence[Resource],
    spread: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    """Return tiers and tags, and a rule for each tag and limit that resources have."""
    enabled = [not one for one in gone]
    domains, zone = instances.topology_of(faults, records, names, enabled)
    tags = instances.tags_of(records, names)
    apart = ({zone: 1} if zone else {}) if spread is None else dict(spread)
    rules: dict[tuple[str, ...] | int, tuple[int, Rule]] = {}
    rule, group_rule = [], []
    for one in found:
        required = [word(one.tag)] if one.tag else []
        groups = []
        if one.servers is not None:
            groups = [f"group{i} of {one.name}" for i in range(len(one.servers.groups))]
            own = dict(
                zip((one.tag, *groups), (one.servers.instances, *one.servers.groups), strict=True)
            )
            tags |= {word(tag): [name in own[tag] for name in names] for tag in own}
        placed = Rule(
            require=[f"+{tag}" for tag in required],
            place={f"+{word(tag)}": 1 for tag in groups},
            spread=apart,
        )
        key = (*required, *groups)
        rule += [rules.setdefault(key, (len(rules), placed))[0]] * len(one.rows)
        most = one.most_per_instance
        bound = (most, (len(rules), Rule(spread={"node": most})))
        group_rule.append(-1 if most < 0 else rules.setdefault(*bound)[0])
    return {
        "domains": domains,
        "attributes": attributes_of([instances.labels_of(records, one) for one in names], domains),
        "tags": tags,
        "rules": [one for _, one in rules.values()],
        "rule": np.array(rule, np.int64),
        "group_rule": np.array(group_rule, np.int64),
    }  # fmt: skip


def _placement(
    records: Records, found: Sequence[Resource], names: Sequence[str], alive: Mapping[str, bool]
) -> dict[str, Any]:
    """Return the replicas of all resources, slot by slot, and who leads."""
    rows = [row for one in found for row in one.rows.values()]
    width = np.fromiter((len(row.nodes) for row in rows), np.int64, len(rows))
    first = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    node = _numbers({name: n for n, name in enumerate(names)}, [row.nodes for row in rows])
    owner = np.repeat(np.arange(len(rows)), width)
    counts = [len(one.rows) for one in found]
    replicas = np.array([*chain.from_iterable(one.replicas for one in found)], np.int64)
    states = [row.states or ("",) * len(row.nodes) for row in rows]
    tops = [one.model.states[0] if one.model.leads else "" for one in found]
    number = {state: i for i, state in enumerate(dict.fromkeys(["", "ERROR", CONSUMING, *tops]))}
    state = _numbers(number, states)
    top = np.repeat(np.array([number[one] for one in tops], np.int64), counts)
    # a list without states is led by its first
    unknown = np.fromiter((not row.states for row in rows), np.bool_, len(rows)) & (width > 0)
    leads = (state == top[owner]) & (state > 0)
    leads[first[:-1][unknown & (top > 0)]] = True
    up = np.array([alive[name] for name in names] + [False], np.bool_)
    consumed = np.zeros(len(rows), np.bool_)
    consumed[owner[state == number[CONSUMING]]] = True
    held = consumed[owner] & up[node]
    group = np.repeat(np.arange(len(found)), counts)
    for one in [found[g] for g in np.unique(group[owner[held]])]:
        records.notes.add(PINNED, one.name)
    at = np.flatnonzero(leads)[::-1]
    leader = np.full(len(rows), -1)
    leader[owner[at]] = at - first[owner[at]]  # of several the first one is written last
    leader[(width == 0) & (top > 0) & (replicas > 0)] = 0  # it is led once it is placed
    broken = state == number["ERROR"]
    for g, count in zip(*np.unique(group[owner[broken]], return_counts=True), strict=True):
        records.notes.add(BROKEN, f"{count} of {found[g].name}")
    held |= _listed_in_configs(records, found, len(held)) & up[node]
    flags = broken * int(Flag.ERROR) + held * int(Flag.PINNED)
    if (top > 0).any() and (top == 0).any():
        # a cluster has leaders or has none: the first replica stands for one that is not there
        leader[(top == 0) & ((width > 0) | (replicas > 0))] = 0
        flags[top[owner] == 0] |= int(Flag.STAND_IN)
        for one in found:
            if not one.model.leads:
                records.notes.add(UNLED, one.name)
    return {
        "placement": node,
        "first": first,
        "leader": leader,
        "flags": flags,
        "replicas": replicas,
        "min_active": np.minimum(
            np.repeat(np.array([one.min_active for one in found], np.int64), counts), replicas
        ),
        "partition_names": partition_names(found),
        "group": group,
        "group_names": [one.name for one in found],
    }


def _listed_in_configs(
    records: Records, found: Sequence[Resource], count: int
) -> NDArray[np.bool_]:
    """Return which replicas are where a list of the configuration of their resource has them."""
    own = {
        one.name: records.resource.get(one.name, NONE).record.listFields
        for one in found
        if mode_of(one.found) == "full_auto"
    }
    for name in filter(own.get, own):
        records.notes.add(LISTED, f"{name} ({len(own[name])} partitions)")
    if not any(own.values()):
        return np.zeros(count, np.bool_)
    return np.fromiter(
        (
            node in own.get(one.name, {}).get(partition, ())
            for one in found
            for partition, row in one.rows.items()
            for node in row.nodes
        ),
        np.bool_, count,
    )  # fmt: skip


def _numbers(number: Mapping[str, int], rows: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Return the number of each text of all rows, one row after the other; -1 for others."""
    return np.fromiter(map(number.get, chain.from_iterable(rows), repeat(-1)), np.int64)


def leading_slot(row: Row, top: str) -> int:
    """Return the slot in the top state: of a list the first, of states the one that has it."""
    if not row.states:
        return 0 if row.nodes else -1
    return row.states.index(top) if top in row.states else -1


def partition_names(found: Sequence[Resource]) -> list[str]:
    """Return the names of all partitions; those of a name that comes twice with their resource."""
    names = [partition for one in found for partition in one.rows]
    if len({*names}) == len(names):
        return names
    return [f"{one.name}/{partition}" for one in found for partition in one.rows]


def _amounts(
    faults: FaultList, records: Records, names: Sequence[str], found: list[Resource]
) -> dict[str, Any]:
    """Return loads and capacities by the capacity keys, or else the numbers of replicas."""
    # resources that WAGED places and without weights are taken out
    keys = keys_of(faults, records)
    capacity = capacities(faults, records, names, keys)
    weighed = np.array([_is_waged(one.found) for one in found], np.bool_)

    def loads() -> NDArray[np.float64]:
        partitions = {one.name: [*one.rows] for one in found}
        return weights(faults, records, partitions, keys)

    load = loads() if keys else np.zeros((sum(len(one.rows) for one in found), 0))
    unknown = np.isnan(capacity)
    useless: NDArray[np.bool_] = np.asarray(unknown.all(axis=0))
    if not weighed.any():
        useless |= unknown.any(axis=0) | np.isnan(load).any(axis=0)
    for d in np.flatnonzero(useless).tolist():
        records.notes.add(NO_KEY if weighed.any() else NOT_WAGED, keys[d])
    keys = [key for key, out in zip(keys, useless, strict=True) if not out]
    capacity, load, unknown = capacity[:, ~useless], load[:, ~useless], unknown[:, ~useless]
    for n in np.flatnonzero(unknown.any(axis=1)).tolist():
        records.closed.add(names[n])
        records.notes.add(NO_CAPACITY, names[n])
    group = np.repeat(np.arange(len(found)), [len(one.rows) for one in found])
    counted: NDArray[np.bool_] = np.asarray(np.isnan(load).any(axis=1))
    out = np.bincount(group[counted], minlength=len(found)) > 0
    out &= weighed
    for g in np.flatnonzero(out).tolist():
        records.notes.add(NO_WEIGHTS, found[g].name)
    load, counted = load[~out[group]], counted[~out[group]]
    found[:] = [one for one, gone in zip(found, out, strict=True) if not gone]
    capacity = np.where(np.isnan(capacity), np.inf, capacity)
    load = np.where(counted[:, np.newaxis], 0.0, load)
    if not keys or counted.any():
        # nothing limits it, yet a node can be level only against some capacity
        everything = max(float(sum(sum(one.replicas) for one in found)), 1.0)
        capacity = np.column_stack([capacity, np.full(len(names), everything)])
        load = np.column_stack([load, counted | (not keys)])
        keys = [*keys, COUNT]
    return {"dimensions": keys, "capacity": capacity, "load": load.astype(np.float64)}


def _is_waged(found: Found) -> bool:
    return found.text("REBALANCER_CLASS_NAME").endswith("WagedRebalancer")


def _disabled(
    faults: FaultList, records: Records, names: Sequence[str], found: Sequence[Resource]
) -> list[tuple[int, int]]:
    """Return the partitions that are disabled on instances."""
    starts = accumulate((len(one.rows) for one in found), initial=0)
    own = {one.name: (one, start) for one, start in zip(found, starts, strict=False)}
    known = {*own, *records.ideal, *records.view}
    pairs: set[tuple[int, int]] = set()

    @cache
    def partitions_of(resource: str) -> dict[str, int]:
        one, start = own[resource]
        return {partition: start + i for i, partition in enumerate(one.rows)}

    for n, name in enumerate(names):
        config = records.config(name)
        for resource, listed in config.rows(DISABLED).items():
            if resource == ALL_RESOURCES:
                continue
            if resource not in known:
                records.notes.add(STALE_DISABLED, resource)
            for partition in filter(None, (text.strip() for text in listed.split(","))):
                if resource in own and partition in own[resource][0].rows:
                    pairs.add((partitions_of(resource)[partition], n))
                elif resource in own:
                    records.notes.add(STALE_DISABLED, partition)
        # the older form names partitions alone, of whatever resource
        for partition in config.listed(DISABLED):
            holds = [resource for resource in own if partition in own[resource][0].rows]
            pairs |= {(partitions_of(resource)[partition], n) for resource in holds}
    return sorted(pairs)


def _payload(records: Records, found: Sequence[Resource]) -> dict[str, Any]:
    """Return what is needed to write ideal states, and which configurations can be asked for."""
    definitions = {
        one.found.text("STATE_MODEL_DEF_REF"): [list(one.model.states), one.model.leads]
        for one in found
        if MODELS.get(one.found.text("STATE_MODEL_DEF_REF")) != one.model
    }
    source = records.ideal or records.view
    ideal: dict[str, Any] = {name: _plain(one) for name, one in source.items()}
    states = {
        one.name: records.view[one.name].record.mapFields
        for one in found
        if one.name in records.view
    }
    configs: dict[str, Any] = {
        "cluster": bool(records.cluster),
        "instances": [*records.instance],
        "resources": [name for name in ideal if name in records.resource],
    }
    return {
        "ideal_states": ideal, "state_models": definitions, "states": states, "configs": configs,
        "notes": [*records.notes],
    }  # fmt: skip


def left_out(cluster: Cluster) -> Iterable[str]:
    """Return what records name that is not there, and what is left alone."""
    return noted(cluster.native)


def _plain(found: Found) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.structs.asdict(found.record)
    return plain


COUNT = "replicas"  # the dimension of clusters without capacity keys: it counts replicas
DEFAULT = "DEFAULT"  # key under which a resource has the weight of partitions without their own
# reads amounts as Helix writes them
WEIGHTS: msgspec.json.Decoder[dict[str, float]] = msgspec.json.Decoder(
    dict[str, Annotated[int, msgspec.Meta(ge=0, le=MOST)]]
)


def keys_of(faults: FaultList, records: Records) -> list[str]:
    """Return the capacity keys of the cluster."""
    keys = records.settings.listed("INSTANCE_CAPACITY_KEYS")
    if len({*keys}) != len(keys) or "" in keys:
        at = f"{records.settings.at}listFields.INSTANCE_CAPACITY_KEYS"
        faults.add(at, keys[:8], "must be names that differ")
        return []
    return keys


def capacities(
    faults: FaultList, records: Records, names: Sequence[str], keys: Sequence[str]
) -> NDArray[np.float64]:
    """Return the capacity of each instance, (N, D), NaN where unknown."""
    # the defaults are the cluster's; an instance without a config has no capacity
    usual = _amounts_of(faults, records.settings, "DEFAULT_INSTANCE_CAPACITY_MAP")
    rows = []
    for name in names:
        own = usual | _amounts_of(faults, records.config(name), "INSTANCE_CAPACITY_MAP")
        unknown = 0.0 if records.instance and name not in records.instance else np.nan
        rows.append([own.get(key, unknown) for key in keys])
    return np.array(rows, np.float64).reshape(len(names), len(keys))


def weights(
    faults: FaultList, records: Records, resources: Mapping[str, Sequence[str]], keys: Sequence[str]
) -> NDArray[np.float64]:
    """Return the weight of a replica of each partition, (P, D), NaN where unknown."""
    usual = _amounts_of(faults, records.settings, "DEFAULT_PARTITION_WEIGHT_MAP")
    wanted, nothing, values = {*keys}, dict.fromkeys(keys, np.nan), itemgetter(*keys)
    rows: list[Any] = []
    for name, partitions in resources.items():
        found = records.resource.get(name, NONE)
        own = _decoded(faults, found, "PARTITION_CAPACITY_MAP")
        own |= {key: nothing | usual | one for key, one in own.items() if not one.keys() >= wanted}
        if own.keys() - {*partitions, DEFAULT}:
            records.notes.add("no partition of {} for some of the weights of partitions", name)
        general = nothing | own.get(DEFAULT, usual)
        rows += map(values, map(own.get, partitions, repeat(general)))
    return np.array(rows, np.float64).reshape(len(rows), len(keys))


def _amounts_of(faults: FaultList, found: Found, name: str) -> dict[str, float]:
    """Return a map of amounts that are texts."""
    at, stated = f"{found.at}mapFields.{name}", found.rows(name)
    return {key: _amount(faults, f"{at}.{quoted(key)}", text) for key, text in stated.items()}


def _decoded(faults: FaultList, found: Found, name: str) -> dict[str, dict[str, float]]:
    """Return a map of amounts that are JSON inside texts."""
    at, stated = f"{found.at}mapFields.{name}", found.rows(name)
    try:
        return {key: WEIGHTS.decode(text) for key, text in stated.items()}
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {key: _read(faults, f"{at}.{quoted(key)}", text) for key, text in stated.items()}


def _read(faults: FaultList, at: str, text: str) -> dict[str, float]:
    """Read amounts of which some may be texts themselves, or wrong."""
    try:
        stated = msgspec.json.decode(text, type=dict[str, int | str | float])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        faults.add(at, quoted(text), 'must be JSON in a text, such as "{\\"CPU\\":10}"')
        return {}
    return {key: _amount(faults, f"{at}.{quoted(key)}", value) for key, value in stated.items()}


def _amount(faults: FaultList, at: str, stated: Any) -> float:
    try:
        number = int(stated) if not isinstance(stated, str) or len(stated) <= 20 else -1
    except (ValueError, OverflowError):
        number = -1
    if not 0 <= number <= MOST:
        faults.add(at, quoted(stated), f"must be a whole number from 0 to {MOST}")
        return 0.0
    return float(number)
