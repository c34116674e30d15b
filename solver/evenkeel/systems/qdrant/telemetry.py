"""Convert telemetry of Qdrant to the answers of its API on the cluster and its collections.

``GET /telemetry`` is of one peer and gives the states of all replicas. ``GET /cluster/telemetry``
joins what all peers give. Both list shards from ``details_level=3``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.json_text import Int32, Int64, note_misfits


class ShardReplica(msgspec.Struct, gc=False):
    """A replica of a shard, whose points are known where its peer has answered."""

    peer_id: int
    state: str
    num_points: Int64 = -1


class Local(msgspec.Struct, gc=False):
    """The replica of the peer that answers."""

    num_points: Int64 = -1


class Shard(msgspec.Struct):
    """A shard: of the cluster with ``replicas``, of a peer with ``replicate_states``."""

    id: Int32
    key: str | int | None = None
    replicas: list[ShardReplica] = []
    local: Local | None = None
    replicate_states: dict[str, str] = {}  # by the number of a peer


class Collection(msgspec.Struct):
    """A collection, with the names that both kinds of telemetry use."""

    id: str
    shards: list[Shard] = []
    transfers: list[Any] | None = None
    shard_transfers: list[Any] | None = None
    resharding: list[Any] | None = None
    reshardings: list[Any] | None = None
    config: dict[str, Any] | None = None


class PeerInfo(msgspec.Struct, gc=False):
    """The address of a peer, and whether it has answered the one that was asked."""

    uri: str = ""
    responsive: bool = True


class Status(msgspec.Struct, gc=False):
    """The peer that answers."""

    peer_id: int = -1


class ClusterState(msgspec.Struct):
    """The peers of the cluster; ``status`` in telemetry of one of them."""

    peers: dict[str, PeerInfo] = {}
    status: Status | None = None


class Telemetry(msgspec.Struct):
    """Both kinds of telemetry, with their collections as a list."""

    collections: list[Collection]
    cluster: ClusterState = msgspec.field(default_factory=ClusterState)


def answers_of(faults: FaultList, at: str, given: Any) -> list[Any]:
    """Return the answers that telemetry stands for; any other value alone."""
    result = given.get("result", given) if isinstance(given, dict) else None
    named = result.get("collections") if isinstance(result, dict) else None
    if not (isinstance(result, dict) and isinstance(named, dict)):
        return [given]
    of_peer = named.get("collections")
    plain = {
        "collections": of_peer if isinstance(of_peer, list) else [*named.values()],
        "cluster": result.get("cluster") or {},
    }
    before = len(faults.faults)
    note_misfits(faults, f"{at}.result", plain, Telemetry)
    return [] if len(faults.faults) > before else [*_answers(msgspec.convert(plain, Telemetry))]


def _answers(telemetry: Telemetry) -> Iterator[dict[str, Any]]:
    """Yield an answer on the peers, and for each collection that of each peer that answered."""
    state = telemetry.cluster
    known = (r for one in telemetry.collections for shard in one.shards for r in shard.replicas)
    answered = sorted({r.peer_id for r in known if r.num_points >= 0})
    if state.status is not None:
        answered = [state.status.peer_id]
    elif state.peers:
        answered = [int(p) for p, one in state.peers.items() if one.responsive and p.isdecimal()]
    if state.peers:
        peers = {peer: {"uri": one.uri} for peer, one in state.peers.items()}
        silent: dict[str, Any] = {one.uri: {} for one in state.peers.values() if not one.responsive}
        first = answered[0] if answered else -1
        yield {"result": {"peer_id": first, "peers": peers, "message_send_failures": silent}}
    for one in telemetry.collections:
        shared = {
            "shard_transfers": one.transfers or one.shard_transfers or [],
            "resharding_operations": one.resharding or one.reshardings,
        }
        if one.config is not None and "params" in one.config:
            yield {"collection": one.id, "result": {"config": one.config}}
        for peer in answered:
            rows = [(own, row) for shard in one.shards for own, row in _rows(shard, peer)]
            local, remote = ([row for own, row in rows if own == here] for here in (True, False))
            shards = {"peer_id": peer, "local_shards": local, "remote_shards": remote}
            yield {"collection": one.id, "result": shards | shared}


def _rows(shard: Shard, peer: int) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """Yield the replicas of a shard as a peer lists them, each with whether it is the peer's."""
    points = -1 if shard.local is None else shard.local.num_points
    states = [(int(p), s, points) for p, s in shard.replicate_states.items() if p.isdecimal()]
    for own, state, count in [(r.peer_id, r.state, r.num_points) for r in shard.replicas] + states:
        row = {"shard_id": shard.id, "state": state, "shard_key": shard.key}
        yield own == peer, row | ({"points_count": count} if own == peer else {"peer_id": own})
