"""Longhorn's auto-balance with lists and fractions: the written rule, as plainly as can be."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import isnan

from evenkeel.systems.longhorn.auto_balance.settings import AUTO_BALANCE, VOLUME_SWITCH, Longhorn

WORST = Fraction(10**30)


@dataclass(eq=False)
class Copy:
    """A replica."""

    volume: int
    disk: int
    name: str
    healthy: bool = True
    failed: bool = False
    evicting: bool = False
    active: bool = True
    reusable: bool = False
    waiting: bool = False
    source: bool = False
    old: bool = False

    @property
    def usable(self):
        return self.active and not self.failed and not self.evicting

    @property
    def serves(self):
        return self.active and self.healthy


class World:
    """A Longhorn system and the rule that works on it."""

    def __init__(self, cluster, options=None):
        options = options or Longhorn()
        self.system = system = cluster.native
        self.settings = settings = system.settings.overridden(options)
        self.order = options.order
        self.zone = system.hosts.zone.tolist()
        self.host = system.disks.host.tolist()
        self.hosts, self.disks = range(len(self.zone)), range(len(self.host))
        self.available = system.disks.available.tolist()
        self.scheduled = system.disks.scheduled.tolist()
        self.reserved = system.disks.reserved.tolist()
        self.maximum = system.disks.maximum.tolist()
        self.unstable = self._unstable()
        volumes = system.volumes
        self.wanted = volumes.replicas.tolist()
        self.size, self.actual = volumes.size.tolist(), volumes.actual.tolist()
        self.percent = settings.replica_auto_balance_disk_pressure_percentage
        self.copies = [[] for _ in self.wanted]
        for k, name in enumerate(system.replicas.names):
            if cluster.placement.node[k] >= 0:
                self.copies[cluster.placement.owner[k]].append(self._copy(cluster, k, name))
        self.made = Counter()
        self.fresh = [not held and volumes.robustness[v] != 3 for v, held in enumerate(self.copies)]
        for v in range(len(self.wanted)):
            if self.fresh[v]:
                self.actual[v] = 0
        self.acts = [self._acts(v) for v in range(len(self.wanted))]
        self.whole = [self._whole(v) for v in range(len(self.wanted))]

    def _copy(self, cluster, k, name):
        r, node = self.system.replicas, int(cluster.placement.node[k])
        lately = (
            self.system.now - r.failed_at[k] < self.settings.replica_replenishment_wait_interval
        )
        old = self.host[node] == self.unstable and bool(
            r.healthy_at[k] < self.system.hosts.ready_since[self.unstable]
        )
        return Copy(
            int(cluster.placement.owner[k]), node, name, bool(r.healthy[k]), bool(r.failed[k]),
            bool(r.evicting[k]), bool(r.active[k]), bool(r.reusable[k] and r.failed[k]),
            bool(r.reusable[k] and r.failed[k] and lately), bool(r.clone_source[k]), old,
        )  # fmt: skip

    def _unstable(self):
        since = {
            h: self.system.hosts.ready_since[h] for h in self.hosts if self.system.hosts.ready[h]
        }
        if len(since) < 2 or any(isnan(time) for time in since.values()):
            return None
        last = max(since, key=since.get)
        others = max(time for h, time in since.items() if h != last)
        return last if since[last] - others > 1800 else None

    def _acts(self, v):
        volumes = self.system.volumes
        there = self.fresh[v] or volumes.attached[v] >= 0
        held_up = volumes.migrating[v] or volumes.rebuilding[v] or not volumes.in_sync[v]
        return there and volumes.robustness[v] != 3 and not held_up

    def _whole(self, v):
        robustness = self.system.volumes.robustness[v]
        missing = sum(c.serves for c in self.copies[v]) < self.wanted[v]
        if self.fresh[v] and self.system.volumes.attached[v] >= 0:
            return True
        return robustness == 1 or (robustness == 2 and missing)

    def effort(self, v):
        own = ("ignored", *AUTO_BALANCE)[self.system.volumes.auto_balance[v]]
        return self.settings.replica_auto_balance if own == "ignored" else own

    def soft(self, v, kind):
        column, everywhere = {
            "node": ("node_soft", self.settings.replica_soft_anti_affinity),
            "zone": ("zone_soft", self.settings.replica_zone_soft_anti_affinity),
            "disk": ("disk_soft", self.settings.replica_disk_soft_anti_affinity),
        }[kind]
        own = VOLUME_SWITCH[getattr(self.system.volumes, column)[v]]
        return everywhere if own == "ignored" else own == "enabled"

    def open_disk(self, v, d):
        """Whether a disk may be used at all by a volume, whatever its space."""
        hosts, disks, volumes, h = (
            self.system.hosts,
            self.system.disks,
            self.system.volumes,
            self.host[d],
        )
        if not (hosts.ready[h] and hosts.schedulable[h] and hosts.allow_scheduling[h]):
            return False
        if hosts.deleting[h] or hosts.evicting[h]:
            return False
        if hosts.cordoned[h] and self.settings.disable_scheduling_on_cordoned_node:
            return False
        engine = volumes.engine[v]
        if not hosts.engines[engine, h] or disks.block[d] != self.system.engine_block[engine]:
            return False
        if not disks.ready[d] or not disks.allow_scheduling[d] or disks.evicting[d]:
            return False
        for chosen, tags, at, empty in (
            (
                volumes.node_selector[v],
                hosts.tags,
                h,
                self.settings.allow_empty_node_selector_volume,
            ),
            (
                volumes.disk_selector[v],
                disks.tags,
                d,
                self.settings.allow_empty_disk_selector_volume,
            ),
        ):
            carried = {tag for tag, has in tags.items() if has[at]}
            asked = set(self.system.selectors[chosen])
            if not asked <= carried or (not asked and not empty and carried):
                return False
        return True

    def fits(self, v, d):
        most, free = self.maximum[d], self.available[d]
        minimal = most * self.settings.storage_minimal_available_percentage // 100
        over = self.settings.storage_over_provisioning_percentage
        promised = Fraction((most - self.reserved[d]) * over, 100)
        return (
            most > 0
            and free > 0
            and free - self.actual[v] > minimal
            and self.size[v] + self.scheduled[d] <= promised
        )

    def pressured(self, d, free=None):
        free = self.available[d] if free is None else free
        if self.percent == 0:
            return False
        unused = (free - self.reserved[d]) * 100 // self.maximum[d] if self.maximum[d] else 0
        return max(0, unused) < 100 - self.percent

    def acceptable(self, v, d):
        use = Fraction(
            (self.actual[v] + self.scheduled[d] + self.reserved[d]) * 100, self.maximum[d]
        )
        return use < self.percent and not self.pressured(d, self.available[d] - self.actual[v])

    def healthy(self, v):
        return self.whole[v] and sum(c.serves for c in self.copies[v]) >= self.wanted[v]

    def in_the_way(self, v, replacing):
        return [c for c in self.copies[v] if not c.failed or (c.reusable and not replacing)]

    def takes(self, v, h, held):
        return any(
            self.open_disk(v, d) and self.fits(v, d) and (self.soft(v, "disk") or d not in held)
            for d in self.disks
            if self.host[d] == h
        )

    def named(self, h):
        return self.system.hosts.names[h], h

    # how many, and where

    def stage(self, v):
        """Return what asks for a replica, how many, and the host that it must be on."""
        if self.effort(v) == "disabled" or not self.rebuilds():
            return "", 0, None
        on_host = Counter(self.host[c.disk] for c in self.copies[v] if c.usable)
        in_zone = Counter(self.zone[self.host[c.disk]] for c in self.copies[v] if c.usable)
        held = {c.disk for c in self.in_the_way(v, False)}
        takers = [h for h in self.hosts if self.takes(v, h, held)]
        zones = {self.zone[h] for h in takers} - set(in_zone)
        if len(in_zone) < self.wanted[v] and zones:
            return "zone least", min(len(zones), self.wanted[v] - len(in_zone)), None
        hosts = set(takers) - set(on_host)
        if len(on_host) < self.wanted[v] and hosts:
            return "host least", min(len(hosts), self.wanted[v] - len(on_host)), None
        if self.effort(v) != "best-effort":
            return "", 0, None
        stages = [self.best_hosts, self.best_zones]
        for one in stages if self.order == "node-then-zone" else stages[::-1]:
            found = one(v, on_host, in_zone, takers)
            if found[1] > 0:
                return found
        return self.relief(v)

    def rebuilds(self):
        return self.settings.concurrent_replica_rebuild_per_node_limit > 0

    def best_hosts(self, v, on_host, in_zone, takers):
        off = most_over_least(on_host)
        least = [h for h in on_host if on_host[h] == min(on_host.values()) and h in takers]
        if off < 1 or not least:
            return "", 0, None
        return "host best", off, min(least, key=self.named)

    def best_zones(self, v, on_host, in_zone, takers):
        off = most_over_least(in_zone)
        if off < 1:
            return "", 0, None
        least = [h for h in takers if in_zone[self.zone[h]] == min(in_zone.values())]
        full = [h for h in self.hosts if in_zone[self.zone[h]] == max(in_zone.values())]
        target = min(least, key=lambda h: (on_host[h], self.named(h)), default=None)
        if target is None or on_host[target] + 1 > max(on_host[h] for h in full):
            return "", 0, None
        return "zone best", off, target

    def relievable(self, v, copy):
        d = copy.disk
        if not self.pressured(d):
            return False
        there = [c for held in self.copies for c in held if c.disk == d and not c.failed]
        there = [c for c in there if self.healthy(c.volume)]
        if min(there, key=lambda c: c.name, default=None) is not copy:
            return False
        held = {c.disk for c in self.copies[v] if not c.failed}
        return any(
            self.host[other] == self.host[d]
            and other != d
            and self.open_disk(v, other)
            and (self.soft(v, "disk") or other not in held)
            and self.fits(v, other)
            and self.acceptable(v, other)
            for other in self.disks
        )

    def relief(self, v):
        found = [c for c in self.copies[v] if c.usable and self.relievable(v, c)]
        if not found:
            return "", 0, None
        return "pressure", len(found), self.host[min(found, key=lambda c: c.name).disk]

    # where to

    def tier(self, v, h, stage, blocking):
        """Return the tier of a host, None if anti-affinity keeps it out."""
        z = self.zone[h]
        in_zone = [c for c in blocking if self.zone[self.host[c.disk]] == z]
        on_host = [c for c in blocking if self.host[c.disk] == h]
        if not in_zone:
            return 1
        free_after = all(c.evicting for c in on_host)
        if not self.soft(v, "zone"):
            whole_zone = all(c.evicting for c in in_zone)
            any_such = self.effort(v) == "best-effort" and on_host
            return 2 if free_after and (whole_zone or any_such) else None
        relief = (
            self.effort(v) == "best-effort"
            and stage in ("pressure", "replenish")
            and any(self.pressured(d) for d in self.disks if self.host[d] == h)
        )
        if not on_host or relief:
            return 3
        if self.soft(v, "node"):
            return 5
        return 4 if free_after else None

    def place(self, v, stage, target):
        """Return the disk for a new replica, None if there is none."""
        blocking = self.in_the_way(v, stage == "replenish")
        held = {c.disk for c in blocking}
        tiers = {}
        for d in self.disks:
            h = self.host[d]
            if not self.open_disk(v, d) or not self.fits(v, d) or target not in (None, h):
                continue
            if stage == "pressure" and not self.acceptable(v, d):
                continue
            if d in held and not self.soft(v, "disk"):
                continue
            tier = self.tier(v, h, stage, blocking)
            if tier:
                tiers.setdefault(tier, []).append(d)
        if not tiers:
            return None
        disks = tiers[min(tiers)]
        disks = [d for d in disks if d not in held] or disks
        usable = {
            d: max(0, self.available[d] - self.reserved[d] - self.scheduled[d]) for d in disks
        }
        hosts = {self.host[d]: 0 for d in disks}
        for d in disks:
            hosts[self.host[d]] += usable[d]
        size = self.size[v]
        fit = {self.host[d] for d in disks if usable[d] >= size}
        if not fit:
            return None
        host = min(fit, key=lambda h: (score(hosts, h, size), self.named(h)))
        own = {d: usable[d] for d in disks if self.host[d] == host}
        fit = [d for d in own if own[d] >= size]
        names = self.system.disks.names
        return min(fit, key=lambda d: (score(own, d, size), names[d], d))

    # which one goes

    def preferred(self, v):
        copies = [c for c in self.copies[v] if c.serves]
        for of in (
            lambda c: c.disk,
            lambda c: self.host[c.disk],
            lambda c: self.zone[self.host[c.disk]],
        ):
            groups = {}
            for c in copies:
                groups.setdefault(of(c), []).append(c)
            groups = [g for g in groups.values() if len(g) > 1 and not all(c.source for c in g)]
            if groups:
                largest = max(map(len, groups))
                return [c for g in groups if len(g) == largest for c in g if not c.source]
        return [c for c in copies if not c.source]

    def leaving(self, v):
        """Return the replica to delete, None if none should go."""
        copies = [c for c in self.copies[v] if c.serves]
        evicting = [c for c in copies if c.evicting and not c.source]
        if evicting:
            return min(evicting, key=lambda c: c.name)
        if sum(not c.evicting for c in copies) <= self.wanted[v]:
            return None
        at = self.system.volumes.attached[v]
        if (
            self.system.volumes.locality[v]
            and at >= 0
            and any(self.host[c.disk] == at for c in copies)
        ):
            away = [c for c in self.preferred(v) if self.host[c.disk] != at]
            if away:
                return min(away, key=lambda c: c.name)
        if self.effort(v) == "disabled":
            return None
        listed = self.listed(v, copies)
        if len(listed) == 1 and self.starts_anew(v, listed[0]):
            return None
        return min(listed, key=lambda c: (self.available[c.disk], c.name), default=None)

    def listed(self, v, copies):
        may = [c for c in copies if not c.source]
        down = [c for c in may if not self.system.hosts.ready[self.host[c.disk]]]
        if down:
            return down
        on_host = Counter(self.host[c.disk] for c in copies)
        in_zone = Counter(self.zone[self.host[c.disk]] for c in copies)
        fullest = max(
            sorted(on_host, key=self.named), key=lambda h: (on_host[h], in_zone[self.zone[h]])
        )
        on_fullest = [c for c in may if self.host[c.disk] == fullest]
        if self.unstable in on_host:
            more = on_host[fullest] > on_host[self.unstable]
            found = on_fullest if more else [c for c in may if c.old]
            if found:
                return found
        if self.effort(v) == "best-effort":
            found, apart = [], 0
            if len(set(on_host.values())) > 1:
                found = on_fullest
                apart = max(on_host.values()) - min(on_host.values())
            elif len(set(in_zone.values())) > 1:
                zone = min(z for z in in_zone if in_zone[z] == max(in_zone.values()))
                found = [c for c in may if self.zone[self.host[c.disk]] == zone]
                apart = max(in_zone.values()) - min(in_zone.values())
            if apart < 2:
                found = found + [c for c in may if c not in found and self.relievable(v, c)]
            if found:
                return found
        return self.preferred(v)

    def starts_anew(self, v, copy):
        self.take_away(copy)
        usable = sum(c.usable for c in self.copies[v])
        idle = usable != self.wanted[v] or not self.whole[v]
        asked = 0 if idle else self.stage(v)[1]
        self.put(copy)
        return asked > 0

    # doing it

    def put(self, copy):
        self.copies[copy.volume].append(copy)
        self.available[copy.disk] -= self.actual[copy.volume]
        self.scheduled[copy.disk] += self.size[copy.volume]

    def take_away(self, copy):
        self.copies[copy.volume].remove(copy)
        self.available[copy.disk] += self.actual[copy.volume]
        self.scheduled[copy.disk] -= self.size[copy.volume]

    def gains(self, v):
        copies = [c for c in self.copies[v] if c.usable]
        on_host = Counter(self.host[c.disk] for c in copies)
        in_zone = Counter(self.zone[self.host[c.disk]] for c in copies)
        return (
            -sum(not self.system.hosts.ready[self.host[c.disk]] for c in copies),
            -sum(c.old for c in copies),
            len(in_zone),
            len(on_host),
            -sum(n * n for n in on_host.values()),
            -sum(n * n for n in in_zone.values()),
            -sum(self.pressured(c.disk) for c in copies),
        )

    def worth_it(self, v, new):
        before = self.gains(v)
        self.put(new)
        gone = self.leaving(v)
        gained = False
        if gone is not None:
            self.take_away(gone)
            gained = self.gains(v) > before
            self.put(gone)
        self.take_away(new)
        return gained

    def act(self, v):
        """Do the next thing to a volume: (kind, volume, disk, replica), None for nothing."""
        if not self.acts[v]:
            return None
        copies, wanted = self.copies[v], self.wanted[v]
        healthy = sum(c.serves for c in copies)
        if healthy > wanted and healthy > 1:
            gone = self.leaving(v)
            if gone is not None:
                self.take_away(gone)
                return "delete", v, gone.disk, gone.name
        usable = sum(c.usable for c in copies)
        if usable >= wanted:
            stale = [c for c in copies if c.failed and not c.waiting]
            if stale:
                gone = min(stale, key=lambda c: c.name)
                self.take_away(gone)
                return "drop", v, gone.disk, gone.name
        stage, target = "", None
        if usable < wanted:
            may = (healthy or self.fresh[v]) and not any(c.waiting for c in copies)
            stage = "replenish" if may and self.rebuilds() else ""
        elif usable == wanted == healthy and self.whole[v]:
            stage, _, target = self.stage(v)
        d = self.place(v, stage, target) if stage else None
        if d is None:
            return None
        name = self.system.volumes.names[v]
        new = Copy(v, d, f"{name}-r-new{self.made[v] + 1:05}")
        if stage != "replenish" and not self.worth_it(v, new):
            return None
        self.made[v] += 1
        self.put(new)
        return "add", v, d, new.name

    def run(self, most=100_000):
        """Visit volume after volume, a pass each, until a round changes nothing."""
        done = []
        while True:
            before = len(done)
            for v in range(len(self.wanted)):
                while (one := self.act(v)) is not None:
                    done.append(one)
                    assert len(done) < most, "does not come to rest"
                    if one[0] == "delete":
                        break
            if len(done) == before:
                return done


def most_over_least(count):
    """The extra replicas of whoever holds most beyond those of whoever holds least, less one."""
    if len(count) < 2:
        return 0
    return max(0, max(count.values()) - min(count.values()) - 1)


def score(totals, chosen, size):
    """(max - min) / mean once ``size`` is taken from the chosen one; nothing left is the worst."""
    after = [total - size * (one == chosen) for one, total in totals.items()]
    if sum(after) == 0:
        return WORST
    return (max(after) - min(after)) / Fraction(sum(after), len(after))


def told(log):
    """A kernel's log as the naive run tells it."""
    volumes, nodes = log.cluster.partitions.names, log.cluster.nodes.names
    return [
        (kind, volumes.index(volume), nodes.index(disk), replica)
        for kind, volume, replica, disk, _ in log.rows()
    ]
