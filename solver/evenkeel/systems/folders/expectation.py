"""What a plan expects of the live system before each of its waves, as the file that guards read."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.systems.folders.carrier import Carrier, Wave
from evenkeel.systems.folders.outside import digest_of, load_of
from evenkeel.systems.json_text import Int32

FILE = "guard.json"


class Expected(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """What one wave does to one partition; nodes by index, those that lead are -1 for none."""

    partition: str
    before: list[Int32]
    after: list[Int32]
    led: Int32
    leads: Int32


class Expectation(msgspec.Struct, forbid_unknown_fields=True):
    """What a guard goes by."""

    format: str
    """The format that reads the system's dumps."""

    nodes: list[str]
    dead: list[Int32]
    """Nodes that were dead when the plan was made."""

    in_any_order: bool
    """Whether every mixture of waves done and not done has room, so that their order is free."""

    outside: str
    """Digest of where the partitions are that no wave changes."""

    waves: list[list[Expected]]


def expected(cluster: Cluster, format: str, waves: Sequence[Wave], carrier: Carrier) -> bytes:
    """Return the file of what is expected, a wave per line."""
    head = {
        "format": format,
        "nodes": [*cluster.nodes.names],
        "dead": np.flatnonzero(~cluster.nodes.alive).tolist(),
        "in_any_order": has_room_for_both(cluster, waves),
        "outside": digest_of(
            cluster, [one.partition for wave in waves for one in wave],
            lists_down=carrier.lists_down,
        ),
    }  # fmt: skip
    encoder = msgspec.json.Encoder()
    # text has no line ends of its own, so these stand between changes only
    lines = [
        b"[" + encoder.encode_lines(_told(wave, carrier))[:-1].replace(b"\n", b",") + b"]"
        for wave in waves
    ]
    body = b",\n".join(lines)
    return msgspec.json.encode(head)[:-1] + b',\n"waves":[\n' + body + b"\n]}\n"


def _told(wave: Wave, carrier: Carrier) -> Iterator[tuple[object, ...]]:
    """Yield what is expected of each change, as an ``Expected``, that a guard can see."""
    for one in wave:
        leads, before, after = carrier.leader(one), one.before, one.after
        # nobody sees whether a leader changed that the system chooses by itself, nor that a list
        # has its order back in which who leads now came first
        if leads not in (-1, one.led) or one.joins or {*before} != {*after}:
            yield one.name, _held(before), _held(after), one.led, leads


def _held(nodes: Sequence[int]) -> Sequence[int]:
    return [n for n in nodes if n >= 0] if -1 in nodes else nodes


def has_room_for_both(cluster: Cluster, waves: Sequence[Wave]) -> bool:
    """Whether every node has room for all that any wave puts there beside all that is there.

    Any mixture of partitions before and after their waves then is within capacity.
    """
    if cluster.topology.tier_capacity:
        return False
    placement, most = cluster.placement, load_of(cluster)
    joins = [(n, one.partition) for wave in waves for one in wave for n in one.joins]
    held = np.flatnonzero(placement.node >= 0)
    node, partition = np.array(joins, np.int64).reshape(-1, 2).T
    node = np.concatenate([placement.node[held], node])
    partition = np.concatenate([placement.owner[held], partition])
    return all(
        (np.bincount(node, most[partition, d], len(room)) <= room).all()
        for d, room in enumerate(cluster.nodes.capacity.T)
    )
