"""Judge the disks inside nodes: where replicas lie, what disks may hold, and what a result says."""

import itertools
from collections.abc import Iterator
from math import inf

import evenkeel as ek
from tests.judge.world import Standing, World

NEARLY = 1e-9
FINE, FAILED = 0, 2


class Lying:
    """The disks of nodes under a result: what they hold, and what they break or miss."""

    def __init__(self, world: World, after: Standing, result: ek.Result) -> None:
        self.world, self.result = world, result
        disks = world.disks
        self.node, self.capacity, self.state = (disks[x] for x in ("node", "capacity", "state"))
        first = result.placement.first.tolist()
        flat = [-1] * first[-1] if result.placement.disk is None else result.placement.disk.tolist()
        self.at = {
            (p, n): self._on(n, disk)
            for p, (row, (a, b)) in enumerate(
                zip(after.rows, itertools.pairwise(first), strict=True)
            )
            for n, disk in zip(row, flat[a:b], strict=True) if n in self.node
        }  # fmt: skip
        self.came = {
            (p, n): self._on(n, disk)
            for p, row in enumerate(world.came.rows)
            for n, disk in zip(row, world.disk[p], strict=True) if n in self.node
        }  # fmt: skip
        self.size = {
            (p, n): world.load_of(p, slot, after.leaders[p])[world.bytes]
            for p, row in enumerate(after.rows) for slot, n in enumerate(row) if n in self.node
        }  # fmt: skip
        self.holds = [0.0] * len(self.node)
        for key, disk in self.at.items():
            if disk >= 0:
                self.holds[disk] += self.size[key]
        up = [world.alive[n] for n in self.node]
        usable = [up[m] and state == FINE for m, state in enumerate(self.state)]
        self.full = {m for m, may in enumerate(usable)
                     if may and self.holds[m] > self.capacity[m] * (1.0 + NEARLY)}  # fmt: skip
        here = [(key, disk) for key, disk in self.at.items() if world.alive[key[1]]]
        self.to_empty = sum(disk >= 0 and self.state[disk] != FINE for _, disk in here)
        self.adrift = sum(disk < 0 for _, disk in here)
        target = self._targets(world.case.goals.get("disks"))
        self.above = {m for m, may in enumerate(usable)
                      if may and self.holds[m] > target[m] * (1.0 + NEARLY)}  # fmt: skip

    def _on(self, n: int, disk: int) -> int:
        """Return a disk if it is one of a node; else -1."""
        return disk if disk >= 0 and self.node[disk] == n else -1

    @property
    def broken(self) -> int:
        """Count what is broken: full disks, replicas where they may not lie, or nowhere."""
        return len(self.full) + self.to_empty + self.adrift

    def _targets(self, tolerance: float | None) -> list[float]:
        """Return what disks may hold: their share, or what whole replicas force, within all."""
        found = [0.0] * len(self.node)
        for n in {*self.node}:
            mine = [m for m, at in enumerate(self.node) if at == n and self.state[m] == FINE]
            sizes = sorted((size for (_, at), size in self.size.items() if at == n), reverse=True)
            endless = any(self.capacity[m] == inf for m in mine)
            weight = {m: 1.0 if endless else self.capacity[m] for m in mine}
            for m in mine:
                found[m] = self.capacity[m]
                if tolerance is None or sum(weight.values()) == 0.0:
                    continue
                share = (1.0 + tolerance) * sum(sizes) / sum(weight.values())
                forced = max(
                    (sizes[k] * (k // len(mine) + 1) for k in range(0, len(sizes), len(mine))),
                    default=0.0,
                )
                most = max(share, forced / max(weight.values())) * weight[m]
                found[m] = min(found[m], most)
        return found

    def findings(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong inside nodes, or said of it."""
        report, world = self.result.disks, self.world
        assert report is not None, "the nodes have disks"
        moved = [key for key, disk in self.came.items()
                 if disk >= 0 and key in self.at and self.at[key] != disk]  # fmt: skip
        for name, says, so in (
            ("moves", report.moves, len(moved)),
            ("full", {*report.over_capacity.tolist()}, self.full),
            ("to empty", len(report.to_empty), self.to_empty),
            ("adrift", len(report.adrift), self.adrift),
            ("above", {*report.over_target.tolist()}, self.above),
        ):
            if says != so:
                yield f"miscounted disks {name}", f"{says} reported, {so} are"
        if report.moves_at_least > len(moved):
            yield "bound on disk moves too high", f"{report.moves_at_least} > {len(moved)}"
        for p, n in moved:
            if not world.alive[n]:
                yield "moved inside a node that is down", f"partition {p}, node {n}"
            if n in world.pinned[p] and self.state[self.came[p, n]] != FAILED:
                yield "moved a pinned replica inside its node", f"partition {p}, node {n}"
        lay = [0.0] * len(self.node)
        for (p, n), disk in self.came.items():
            slot = world.came.rows[p].index(n)
            lay[disk] += world.load_of(p, slot, world.came.leaders[p])[world.bytes] * (disk >= 0)
        for m in sorted(self.full):
            if lay[m] <= self.capacity[m] * (1.0 + NEARLY) and -1 not in self.came.values():
                yield "broke the capacity of a disk", f"disk {m}: {lay[m]:g} -> {self.holds[m]:g}"
        if (self.broken or self.above) and self.result.success:
            yield "success with disks broken or above", f"{self.broken}, {self.above}"
