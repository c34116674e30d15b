"""Notes on missing answers, and on settings that a placement does not keep."""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.elasticsearch.documents import Findings
from evenkeel.systems.notes import noted

FILTER = re.compile(r"(cluster|index)\.routing\.allocation\.(require|include|exclude)\.")
UNKEPT = re.compile(
    r"(cluster|index)\.routing\.allocation\.(total_primary_shards_per_node|write_load_decider\.enabled"
    r"|search\.replica\.dedicated\.include\.)"
)
IDLE = {"-1", "", "false", "disabled"}
"""Values of settings without effect."""

NOT_ALL = {
    "cluster.routing.allocation.enable": "Elasticsearch allocates no other shards by itself; it "
    "still carries out the written commands",
    "cluster.routing.rebalance.enable": "the script of a plan sets it to none; give it back as it "
    "is now",
}
"""Settings that restrict allocation unless they are ``all``, and the effect."""

MISSING = {
    "nodes": "no roles and attributes of nodes: any node may hold any shard; add _nodes",
    "index settings": (
        "no settings of indices: their filters and tiers are not kept; add "
        "_all/_settings?expand_wildcards=all"
    ),
    "cluster settings": (
        "no settings of the cluster: no awareness and no filters, and the usual watermarks; add "
        "_cluster/settings?include_defaults=true"
    ),
    "allocation": "no room of disks: they count as large enough; add _cat/allocation",
}
"""Note on each kind of missing answer."""

STARTED = (
    "no settings of the cluster but those that its nodes were started with, which others may "
    "override; add _cluster/settings?include_defaults=true"
)


def note_settings(found: Findings) -> None:
    """Note settings and states that restrict allocation and are no rule."""
    for name, meaning in NOT_ALL.items():
        value = str(found.cluster.get(name, ("", "all"))[1]).lower()
        if value not in ("all", ""):
            found.notes.add(f"that {name} is {printable(value)}: {meaning}")
        own = f"index.{name.removeprefix('cluster.')}"
        held = [
            index
            for index, settings in found.indices.items()
            if str(settings.get(own, ("", "all"))[1]).lower() not in ("all", "")
        ]
        if held:
            found.notes.add(f"that {own} is not all of {some_of(held, printable, 4)}: {meaning}")
    named = dict.fromkeys(row.get("index") or "" for row in found.shards)
    missing = [index for index in named if index and index not in found.indices]
    if missing and "index settings" in found.kinds:
        found.notes.add(
            f"no settings of {some_of(missing, printable, 4)}: filters and tiers of these are not "
            "kept; hidden indices need _all/_settings?expand_wildcards=all"
        )
    listed = _set_to(found, FILTER, lambda value: isinstance(value, list))
    unkept = _set_to(found, UNKEPT, lambda value: str(value) not in IDLE)
    if unkept:
        found.notes.add(
            f"that {some_of(unkept, printable, 4)} is set and not kept: commands against it "
            "may be written, and are refused"
        )
    if listed:
        found.notes.add(
            f"lists in {some_of(listed, printable, 4)}: kept, but OpenSearch and early releases of "
            "Elasticsearch match a text only; write names separated by commas"
        )
    if fewer := _filtered(found):
        found.notes.add(
            f"no rows of all copies of {some_of(fewer, printable, 4)}: a shard of an index has a "
            "primary, and as many copies as the others, even where they are unassigned. The "
            "listing is filtered or cut off, and what it leaves out is not counted: list all"
        )
    failed = [
        f"{row.get('index')}/{row.get('shard')}"
        for row in found.shards
        if row.get("unassigned.reason") == "ALLOCATION_FAILED"
    ]
    if failed:
        found.notes.add(
            f"that the allocation of {some_of(failed, printable, 4)} failed: after several times "
            "Elasticsearch refuses it until POST _cluster/reroute?retry_failed=true"
        )


def _filtered(found: Findings) -> list[str]:
    """Return the shards that have no row of a primary, or fewer rows than others of their index."""
    rows = Counter((row.get("index"), row.get("shard")) for row in found.shards)
    led = {(row.get("index"), row.get("shard")) for row in found.shards if row.get("prirep") == "p"}
    most: dict[str | None, int] = {}
    for (index, _), count in rows.items():
        most[index] = max(most.get(index, 0), count)
    return [
        f"{index}/{shard}"
        for (index, shard), count in rows.items()
        if (index, shard) not in led or count < most[index]
    ]


def _set_to(found: Findings, names: re.Pattern[str], counts: Callable[[object], bool]) -> list[str]:
    """Return the settings of such names whose values count, each once."""
    return [
        *dict.fromkeys(
            name
            for settings in (found.cluster, *found.indices.values())
            for name, (_, value) in settings.items()
            if names.match(name) and counts(value)
        )
    ]


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield notes on missing answers and assumptions, each with its effect and what to add."""
    native = cluster.native
    if isinstance(native, dict) and isinstance(native.get("answers"), list):
        for kind, note in MISSING.items():
            if kind not in native["answers"]:
                yield STARTED if kind == "cluster settings" and native.get("started") else note
        yield from noted(native)
