"""Even shares of leaders: partitions that each node leads, as level as rules and nodes permit.

A partition is led from a node that takes replicas under its rule, or from one that takes none but
keeps a replica of it. So some partitions can be led in a set of nodes only. The sets that have most
of them for their weight are those of the nodes that lead most where leaders are as level as they
can be. Such a division is approached step by step: each partition divides itself over its nodes in
proportion to a worth, which falls where a node leads more than others for its weight. What can be
led in a set only is counted, whatever its nodes: a division that is not level yet gives sets that
are less full, but nothing false. Pairs that are closed are left out of account.

Source: S. Agrawal, M. Zadimoghaddam, V. Mirrokni, Proportional allocation, ICML 2018.
"""

from typing import NamedTuple

import numpy as np

from evenkeel.measure.binding import nodes_that_meet, partition_scope
from evenkeel.measure.bounds.even import LEAST, Even, Part, fullest
from evenkeel.measure.bounds.sets import MOST_CELLS, sets_of_kinds, shares_with_room
from evenkeel.measure.loads import keepers, to_be_led, usable, wanted_leaders
from evenkeel.measure.room import most_held, staying
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import Flags, Ints64, Reals

LOOKS = 8  # how often a division is looked at: after 1, 2, 4, ... more steps

CLOSE = 1e-4  # a division is level where no node leads more than this share above its set
# no worth falls behind another by more than this factor in a step: floats have room for all
STEEPEST = 0.125


def leader_shares(cluster: Cluster, room: Reals) -> Even:
    """Return the partitions that nodes with ``room (N, D)`` lead, as level as rules permit."""
    nodes = cluster.nodes
    weight = np.where(nodes.may_lead & usable(cluster), nodes.lead_weight, 0.0)
    most = most_led(cluster, room, weight)
    weight = np.where(most > 0.0, weight, 0.0)
    ways = Ways.of(cluster, weight)
    parts = ways.fullest()
    fits = [float(most[inside].sum()) for inside, _ in parts]
    lost = max(led - there for (_, led), there in zip(parts, fits, strict=True))
    forced = [(inside, min(led, there)) for (inside, led), there in zip(parts, fits, strict=True)]
    load, endless = parts[-1][1] - max(lost, 0.0), np.full(len(nodes), np.inf)
    return shares_with_room(load, weight, most, 1.0, forced, endless, *ways.sets(most))[0]


def most_led(cluster: Cluster, room: Reals, weight: Reals) -> Reals:
    """Return the partitions that each node may lead, (N,); infinite for as many as there are."""
    none = np.zeros(len(cluster.partitions), np.int64)
    most = most_held(cluster, none, 1, room, weight, each=True)[0]
    bound = cluster.nodes.may_lead & (most < wanted_leaders(cluster))
    return np.where(bound, most, np.inf)


class Ways(NamedTuple):
    """Which nodes may lead what. Q rules, N nodes, M kinds of partitions, E that nodes keep."""

    takes: Flags  # (Q, N) nodes that take replicas under each rule
    rule: Ints64  # (M,) rule of each kind
    wanted: Reals  # (M,) partitions of each kind
    kind: Ints64  # (E,) a kind that a node keeps
    node: Ints64  # (E,) the node
    weight: Reals  # (N,) by which nodes lead, 0 for none

    @classmethod
    def of(cls, cluster: Cluster, weight: Reals) -> "Ways":
        """Return those of a cluster whose nodes lead by a weight, (N,)."""
        nodes, scope, size = cluster.nodes, partition_scope(cluster), len(cluster.nodes)
        votes = [nodes_that_meet(cluster, one.required(voters=True)) for one in scope.demands]
        may_lead = scope.open & np.array(votes, bool).reshape(scope.open.shape) & (weight > 0.0)
        takes, none = may_lead & nodes.may_receive, np.zeros(0, np.int64)
        wanted = wanted_leaders(cluster) if weight.any() else 0
        if wanted == 0 or np.array_equal(takes.all(0), weight > 0.0):
            return cls(
                (weight > 0.0)[None],
                np.zeros(1, np.int64),
                np.array([float(wanted)]),
                none,
                none,
                weight,
            )
        placed, is_led = PlacementCounts.of(cluster, cluster.placement), to_be_led(cluster)
        stays, rules = staying(placed, scope), len(takes)
        at = np.flatnonzero(np.append(False, keepers(cluster))[stays])
        owner, node = np.divmod(np.unique(placed.partition(at) * size + stays[at] - 1), size)
        may = is_led[owner] & may_lead[scope.rule[owner], node]
        kept, which = np.unique(owner[may], return_inverse=True)
        # the partitions of each rule that no node keeps, then each of the others
        others = np.bincount(scope.rule[is_led], minlength=rules)
        others -= np.bincount(scope.rule[kept], minlength=rules)
        return cls(
            takes, np.append(np.arange(rules), scope.rule[kept]),
            np.append(others, np.ones(len(kept))), which.reshape(-1) + rules, node[may], weight,
        )  # fmt: skip

    @property
    def is_open(self) -> bool:
        """Whether each node that leads may lead any."""
        return bool(self.takes[:, self.weight > 0.0].all())

    def sets(self, most: Reals) -> tuple[Flags, Reals]:
        """Return sets of nodes, (S, N), and how many partitions can be led in each only, (S,)."""
        kinds, nodes = len(self.rule), len(self.weight)
        if self.is_open or kinds * nodes > MOST_CELLS:
            return np.zeros((0, nodes), bool), np.zeros(0)
        ways = np.zeros((kinds, nodes), bool)
        ways[self.kind, self.node] = True
        ways |= self.takes[self.rule]
        sets = sets_of_kinds([ways, np.vstack([self.weight, most])], kinds)
        alone = (~sets @ ways.T.astype(np.float64) == 0.0) & ways.any(1)
        return sets & (self.weight > 0.0), alone @ self.wanted

    def fullest(self) -> list[Part]:
        """Return sets of nodes by what only they can lead, fullest first, each with all before."""
        able = np.flatnonzero(self.weight > 0.0)
        # the last set leads all that can be led
        if self.is_open:
            return [(self.weight > 0.0, float(self.wanted.sum()))]
        worth, found = self.weight / self.weight.max(), [(self.weight > 0.0, 0.0)]
        for look in range(LOOKS):
            for _ in range(2**look):
                led = self._led(worth)
                level = np.divide(led, self.weight, out=np.zeros(len(led)), where=led > 0.0)
                worth = worth / np.maximum(level, STEEPEST * level.max(initial=LEAST))
                worth = worth / worth.max(initial=LEAST)
            order = able[np.argsort(-level[able], kind="stable")]
            alone, room = self._alone(order), np.cumsum(self.weight[order])
            ends = np.fromiter(fullest(alone, room), np.int64)
            if not len(ends):
                break
            found = [(np.isin(np.arange(len(led)), order[: k + 1]), float(alone[k])) for k in ends]
            full = np.diff(alone[ends], prepend=0.0) / np.diff(room[ends], prepend=0.0)
            highest = np.maximum.reduceat(level[order], np.append(0, ends[:-1] + 1))
            if (highest <= full * (1.0 + CLOSE)).all():
                break
        return found

    def _led(self, worth: Reals) -> Reals:
        """Return what each node leads where each kind divides itself by ``worth (N,)``."""
        kinds, (rules, nodes) = len(self.rule), self.takes.shape
        worths = (self.takes * worth).sum(1)[self.rule]
        worths += np.bincount(self.kind, worth[self.node], kinds)
        each = np.divide(self.wanted, worths, out=np.zeros(kinds), where=worths > 0.0)
        of_rules = np.bincount(self.rule, each, rules)
        led: Reals = (self.takes * of_rules[:, None]).sum(0)
        led += np.bincount(self.node, each[self.kind], nodes)
        led *= worth
        return led

    def _alone(self, order: Ints64) -> Reals:
        """Return what can be led in the first node of an order only, in the first two, and on."""
        # what none of them can lead is left out
        rank = np.zeros(self.takes.shape[1], np.int64)
        rank[order] = np.arange(1, len(order) + 1)
        last = (self.takes * rank).max(1, initial=0)[self.rule]
        np.maximum.at(last, self.kind, rank[self.node])
        alone: Reals = np.bincount(last, self.wanted, len(order) + 1)[1:].cumsum()
        return alone
