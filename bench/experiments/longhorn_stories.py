"""The user stories and test scenarios of Longhorn's text on auto-balance, played by the method.

>>> print(written(played(STORIES[4:6])))
story                 when             then                   as stated  rests
5 minimal redundancy  node-2 is added  volume 3/1, limited    yes      yes
6 even redundancy     node-2 is added  volume 2/2, limited    yes      yes

References
----------
Longhorn, enhancement "Automatic Replica Rebalance" (2021): user stories, test plan.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.systems.longhorn.auto_balance.compile import limited_redundancy, system_of
from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume, cluster_of
from evenkeel.systems.longhorn.auto_balance.settings import AutoBalance as Setting
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn, Order, Settings
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance
from tests.support.longhorn.aftermath import cluster_after

ROOM = 10**12  # bytes of the one disk of each host; volumes are small

Counts = tuple[int, ...]  # replicas on node-1, node-2 and so on


@dataclass(frozen=True)
class When:
    """Something that happens, and what the text says comes of it."""

    what: str
    then: Mapping[str, Counts]
    offline: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()
    limited: bool = False
    zones: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Story:
    """A story: hosts in zones, volumes, and what happens to them."""

    name: str
    zones: tuple[str, ...]
    start: Mapping[str, Counts]
    whens: tuple[When, ...]
    setting: Setting = "disabled"
    own: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Played:
    """What came of one thing that happened."""

    story: str
    when: str
    counts: Mapping[str, Counts]
    limited: bool
    as_stated: bool
    rests: bool
    kept: bool


ONE = ("zone-1", "zone-1", "zone-1")
EACH = ("zone-1", "zone-2", "zone-3")

# Those of the text. Where it states inequalities only, the counts follow from its rule. Its third
# test sets the global setting, though its title says that this is disabled; disabled is meant.
STORIES = (
    Story(
        "1 node temporarily offline",
        ONE,
        {"volume": (1, 1, 1)},
        (
            When("all are up", {"volume": (1, 1, 1)}),
            When("node-2 goes offline", {"volume": (2, 0, 1)}, offline=(1,), limited=True),
            When("node-2 comes back", {"volume": (1, 1, 1)}),
        ),
        "least-effort",
    ),
    Story(
        "2 new node",
        (*ONE, "zone-1"),
        {"volume": (1, 1, 1, 0)},
        (
            When("node-2 is lost", {"volume": (2, 0, 1, 0)}, (1,), (3,), limited=True),
            When("node-4 is added", {"volume": (1, 0, 1, 1)}, offline=(1,)),
        ),
        "least-effort",
    ),
    Story(
        "3 zone temporarily offline",
        ("zone-1", "zone-2"),
        {"volume": (1, 1)},
        (
            When("zone-2 goes offline", {"volume": (2, 0)}, offline=(1,), limited=True),
            When("zone-2 comes back", {"volume": (1, 1)}),
        ),
        "least-effort",
    ),
    Story(
        "4 some volumes only",
        ONE,
        {"volume-1": (3, 0, 0), "volume-2": (3, 0, 0)},
        (
            When(
                "nodes 2 and 3 are added",
                {"volume-1": (3, 0, 0), "volume-2": (1, 1, 1)},
                limited=True,
            ),
        ),
        own={"volume-2": "best-effort"},
    ),
    Story(
        "5 minimal redundancy",
        ONE[:2],
        {"volume": (4, 0)},
        (When("node-2 is added", {"volume": (3, 1)}, limited=True),),
        "least-effort",
    ),
    Story(
        "6 even redundancy",
        ONE[:2],
        {"volume": (4, 0)},
        (When("node-2 is added", {"volume": (2, 2)}, limited=True),),
        "best-effort",
    ),
    Story(
        "test node_least_effort",
        ONE,
        {"volume": (6, 0, 0)},
        (
            When("node-2 is enabled", {"volume": (5, 1, 0)}, closed=(2,), limited=True),
            When("node-3 is enabled", {"volume": (4, 1, 1)}, limited=True),
        ),
        "least-effort",
    ),
    Story(
        "test node_best_effort",
        ONE,
        {"volume": (6, 0, 0)},
        (
            When("node-2 is enabled", {"volume": (3, 3, 0)}, closed=(2,), limited=True),
            When("node-3 is enabled", {"volume": (2, 2, 2)}, limited=True),
        ),
        "best-effort",
    ),
    Story(
        "test disabled_volume_spec_enabled",
        ONE,
        {"volume-1": (3, 0, 0), "volume-2": (3, 0, 0)},
        (
            When(
                "nodes 2 and 3 are enabled",
                {"volume-1": (3, 0, 0), "volume-2": (1, 1, 1)},
                limited=True,
            ),
        ),
        own={"volume-2": "least-effort"},
    ),
    Story(
        "test zone_least_effort",
        EACH,
        {"volume": (6, 0, 0)},
        (
            When("node-2 is enabled", {"volume": (5, 1, 0)}, closed=(2,), limited=True),
            When("node-3 is enabled", {"volume": (4, 1, 1)}, limited=True),
        ),
        own={"volume": "least-effort"},
    ),
    Story(
        "test zone_best_effort",
        EACH,
        {"volume": (6, 0, 0)},
        (
            When("node-2 is enabled", {"volume": (3, 3, 0)}, closed=(2,), limited=True),
            When("node-3 is enabled", {"volume": (2, 2, 2)}, limited=True),
        ),
        own={"volume": "best-effort"},
    ),
    Story(
        "test node_duplicates_in_multiple_zones",
        ("zone-1", "zone-2", "zone-2"),
        {"volume": (2, 1, 0)},
        (
            When(
                "node-3 joins the zone with duplicates", {"volume": (1, 1, 1)}, zones={2: "zone-1"}
            ),
        ),
        own={"volume": "least-effort"},
    ),
)


def played(
    stories: Sequence[Story] = STORIES, order: Order = "node-then-zone"
) -> tuple[Played, ...]:
    """Play stories by the method, with every step of it."""
    return tuple(one for story in stories for one in _play(story, Longhorn(order=order)))


def _play(story: Story, options: Longhorn) -> list[Played]:
    held, found = dict(story.start), []
    zones = list(story.zones)
    for when in story.whens:
        for h, zone in when.zones.items():
            zones[h] = zone
        before = _cluster(story, when, tuple(zones), held)
        work = AutoBalance(before, options)
        kept = _kept(before, work)
        after = cluster_after(work)
        held = _counts(after)
        stated = {name: tuple(counts) for name, counts in when.then.items()}
        limited = bool(
            limited_redundancy(after, after.placement.node, system_of(after).replicas.healthy)
        )
        found.append(
            Played(
                story.name,
                when.what,
                held,
                limited,
                held == stated and limited == when.limited,
                len(AutoBalance(after, options).run()) == 0,
                kept,
            )
        )
    return found


def _cluster(
    story: Story, when: When, zones: Counts | tuple[str, ...], held: Mapping[str, Counts]
) -> Cluster:
    """Build the system; replicas on hosts that are down have failed."""
    names = [f"node-{h + 1}" for h in range(len(zones))]
    hosts = [
        Host(
            name=name,
            zone=str(zones[h]),
            ready=h not in when.offline,
            allow_scheduling=h not in when.closed,
            disks=[Disk(name="disk", maximum=ROOM)],
        )
        for h, name in enumerate(names)
    ]
    volumes = []
    for volume, counts in held.items():
        places = [h for h, count in enumerate(counts) for _ in range(count)]
        replicas = [
            Replica(
                name=f"{volume}-r-{r + 1}",
                host=names[h],
                disk="disk",
                healthy=h not in when.offline,
                failed=h in when.offline,
            )
            for r, h in enumerate(places)
        ]
        volumes.append(
            Volume(
                name=volume,
                size=10,
                actual_size=5,
                replicas=replicas,
                number_of_replicas=sum(story.start[volume]),
                replica_auto_balance=story.own.get(volume, "ignored"),
                attached_to=names[0],
            )
        )
    settings = Settings(
        replica_auto_balance=story.setting,
        replica_soft_anti_affinity=True,
        replica_zone_soft_anti_affinity=True,
    )
    return cluster_of(hosts, volumes, settings=settings)


def _kept(before: Cluster, work: AutoBalance) -> bool:
    """Run step by step, and tell whether no volume ever lost a replica that it wants."""
    healthy = np.bincount(
        before.placement.owner[system_of(before).replicas.healthy], minlength=len(before.partitions)
    )
    least = np.minimum(healthy, before.partitions.replicas)
    log = work.run()
    kept = True
    for kind, volume, _, _, reason in log.rows():
        v = before.partitions.names.index(volume)
        healthy[v] += {"add": 1, "delete": -1, "drop": 0}[kind]
        kept = kept and bool(healthy[v] >= least[v]) and reason != ""
    return kept


def _counts(cluster: Cluster) -> dict[str, Counts]:
    system, placement = system_of(cluster), cluster.placement
    found = {}
    for v, name in enumerate(cluster.partitions.names):
        row = placement.node[placement.first[v] : placement.first[v + 1]]
        count = Counter(system.disks.host[row[row >= 0]].tolist())
        found[name] = tuple(count[h] for h in range(len(system.hosts)))
    return found


def written(rows: Sequence[Played]) -> str:
    """Write what came of stories as a table."""
    lines = [("story", "when", "then", "as stated", "rests")]
    last = ""
    for row in rows:
        then = ", ".join(f"{name} {'/'.join(map(str, c))}" for name, c in row.counts.items())
        lines.append(
            (
                row.story if row.story != last else "",
                row.when,
                f"{then}, limited" if row.limited else then,
                "yes" if row.as_stated and row.kept else "NO",
                "yes" if row.rests else "NO",
            )
        )
        last = row.story
    widths = [max(len(line[k]) for line in lines) for k in range(5)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
