"""Find what a result left undone although a single step would do it."""

from collections import Counter
from collections.abc import Iterator

from tests.judge.broken import SLACK, Key, is_hard, leaving, of_group, of_nodes, of_partition
from tests.judge.verdict import Finding, moved_bytes, way
from tests.judge.world import VOTER, Standing, World


def left_undone(world: World, after: Standing) -> Iterator[Finding]:
    """Yield replicas, leaders and surplus that one step mends, breaking nothing, within budgets."""
    todo = [p for p in range(world.partitions) if _ill(world, p, after)]
    if not todo:
        return
    budget = _Budget(world, after)
    for p in todo:
        yield from _leader(world, p, after, budget)
        yield from _missing(world, p, after, budget)
        yield from _surplus(world, p, after, budget)


def _ill(world: World, p: int, after: Standing) -> bool:
    row, want = after.rows[p], world.wanted[p]
    led = not world.has_leaders or want == 0 or _led(world, p, after)
    return world.live(row) < want or not led or len([n for n in row if n >= 0]) > want


def _led(world: World, p: int, after: Standing) -> bool:
    return world.lawful(p, after.leaders[p], after.leader_node(p))


class _Budget:
    """What is left of the budgets."""

    def __init__(self, world: World, after: Standing) -> None:
        made = way(world, after)
        self.world, self.limits = world, world.case.limits
        self.moves = len(made.joined)
        self.bytes = moved_bytes(world, after, made)
        self.into = Counter(n for _, _, n in made.joined)
        self.out = Counter(n for _, n in made.left)
        self.leaders = made.leaders
        self.of = Counter(p for p, _, _ in made.joined)

    def has(self, name: str, spent: float) -> bool:
        """Whether so much may be spent."""
        budget = self.limits.get(name)
        return budget is None or spent <= budget

    def joins(self, p: int, slot: int, n: int) -> bool:
        """Whether a replica more may join a node."""
        weight = 0.0
        if self.world.bytes >= 0:
            weight = max(
                self.world.load_of(p, slot, leader)[self.world.bytes] for leader in (slot, -1)
            )
        if n in self.world.came.rows[p]:  # no move, but one more than were there may be in a domain
            return "domain_in" not in self.limits
        return (
            self.has("moves", self.moves + 1)
            and self.has("node_in", self.into[n] + 1)
            and self.has("partition_moves", self.of[p] + 1)
            and self.has("bytes", self.bytes + weight)
            and not set(self.limits) - {"moves", "node_in", "node_out", "bytes", "partition_moves"}
        )

    def leaves(self, n: int) -> bool:
        """Whether a replica more may leave a node."""
        return self.has("node_out", self.out[n] + 1)


def _harmless(world: World, p: int, after: Standing, row: list[int], leader: int) -> bool:
    """Whether another row of a partition breaks nothing that the result does not break."""
    # Nor what it only breaks because of replicas that nothing keeps where they are. A hard spread
    # limit may stay as broken as it came, be it by replicas elsewhere.
    rows, leaders = list(after.rows), list(after.leaders)
    rows[p], leaders[p] = row, leader
    then = Standing(rows, leaders)
    g = world.group[p]

    def all_of(standing: Standing) -> dict[Key, float]:
        found = dict(of_partition(world, p, standing.rows[p], standing.leaders[p]))
        found.update(of_group(world, g, standing))
        held = leaving(world, world.came, standing)
        found.update(of_nodes(world, standing, world.loads(standing), held))
        return found

    was, bare = all_of(after), all_of(_without_dead(world, p, after))
    came = {
        key: amount
        for key, amount in of_partition(world, p, world.came.rows[p], world.came.leaders[p])
        if key[0] == "spread"
    }
    return all(
        not is_hard(key[0])
        or amount
        <= max(min(was.get(key, 0.0), bare.get(key, 0.0)), came.get(key, 0.0)) * (1 + 1e-12)
        for key, amount in all_of(then).items()
    )


def _without_dead(world: World, p: int, after: Standing) -> Standing:
    rows = list(after.rows)
    rows[p] = [n if n >= 0 and (world.serves[n] or world.may_hold[n]) else -1 for n in rows[p]]
    return Standing(rows, after.leaders)


def _leader(world: World, p: int, after: Standing, budget: _Budget) -> Iterator[Finding]:
    """A live replica could lead, at no move, and none that may leads."""
    if not world.has_leaders or world.wanted[p] == 0 or _led(world, p, after):
        return
    if "leader_changes" in budget.limits:
        return
    for slot, n in enumerate(after.rows[p]):
        leaders = [*after.leaders[:p], slot, *after.leaders[p + 1 :]]
        led = Standing(after.rows, leaders)
        if not budget.has("bytes", moved_bytes(world, led, way(world, led)) * (1.0 - SLACK)):
            continue
        if (
            n not in world.behind[p]
            and world.lawful(p, slot, n)
            and _harmless(world, p, after, after.rows[p], slot)
        ):
            yield Finding("no lawful leader though one stands by", f"partition {p}, node {n}")
            return


def _missing(world: World, p: int, after: Standing, budget: _Budget) -> Iterator[Finding]:
    """A wanted replica stands nowhere, or on a node that is not kept, and a node would take it."""
    # nothing is missing where as many live as are wanted, be they on draining nodes: another would
    # mend no rule while these may not leave
    row = after.rows[p]
    stay = sum(n >= 0 and world.may_hold[n] for n in row)
    if max(stay, world.live(row)) >= world.wanted[p]:
        return
    for slot, at in enumerate(row):
        if at >= 0 and (world.may_hold[at] or world.serves[at]):
            continue
        if at >= 0 and not budget.leaves(at):
            continue
        for n in range(world.nodes):
            if not world.may_receive[n] or n in row or not budget.joins(p, slot, n):
                continue
            if n in world.disks.get("node", ()):
                continue  # none of its disks may have room
            other = [*row[:slot], n, *row[slot + 1 :]]
            leaders = [after.leaders[p]]
            if after.leader_node(p) < 0 or after.leaders[p] == slot:
                leaders += [slot, *(s for s, m in enumerate(other) if world.lawful(p, s, m))]
            if any(_harmless(world, p, after, other, leader) for leader in leaders):
                yield Finding(
                    "left unplaced though it fits", f"partition {p}, slot {slot}, node {n}"
                )
                return


def _surplus(world: World, p: int, after: Standing, budget: _Budget) -> Iterator[Finding]:
    """There are more replicas than wanted, and one of them could go."""
    row = after.rows[p]
    staying = [n for n in row if n >= 0 and world.may_hold[n]]
    if len(staying) <= world.wanted[p]:
        return
    for slot, n in enumerate(row):
        if n < 0 or slot == after.leaders[p] or not budget.leaves(n):
            continue
        if n in world.pinned[p] or world.live(row) - world.serves[n] < min(
            world.wanted[p], world.live(row)
        ):
            continue
        less = [*row[:slot], -1, *row[slot + 1 :]]
        if n in world.synced[p] and not world.synced[p] & {*less}:
            continue  # the last in sync
        quorum = world.voters[p] // 2 + 1
        if _voting(world, p, less) < min(quorum, _voting(world, p, row)):
            continue
        if _harmless(world, p, after, less, after.leaders[p]):
            yield Finding("kept a surplus replica", f"partition {p}, node {n}")
            return


def _voting(world: World, p: int, row: list[int]) -> int:
    """Count the voters that live."""
    ballots = zip(row, world.roles[p], strict=True)
    return sum(n >= 0 and world.serves[n] and role == VOTER for n, role in ballots)
