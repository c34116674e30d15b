"""Waves as Elasticsearch takes them: a reroute for each shard, with the balancer held meanwhile."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.elasticsearch.documents import recognises
from evenkeel.systems.elasticsearch.exchanges import exchanges, orders, under_way
from evenkeel.systems.folders.carrier import Carrier, Change, Setting, Wave, anybody

SHELL = r"""
still='cluster.routing.rebalance.enable is still none'

# es METHOD PATH [CURL ARGUMENT...]; curl takes passwords from ~/.netrc
es() {
  method=$1 path=$2; shift 2
  curl -sSn -X "$method" -H 'Content-Type: application/json' "$@" "$ES$path"
}

take() {
  es GET '/_cat/shards?format=json&bytes=b&h=index,shard,prirep,state,docs,store,ip,id,node' \
    -f >"$dump/shards.json" && es GET /_nodes -f >"$dump/nodes.json"
}

# What is set is kept in the form in which it is given back; what is kept already is not kept anew.
hold() {
  [ -e "$held" ] || {
    rm -rf "$held.part" && mkdir "$held.part" || return 1
    for scope in persistent transient; do
      es GET "/_cluster/settings?filter_path=$scope.cluster.routing.rebalance" -f \
        >"$held.part/$scope.json" || return 1
    done
    cat "$held.part"/*.json | grep -q '"none"' && printf 'run.sh: note: %s, %s\n' \
      'cluster.routing.rebalance.enable is none already, and will be so at the end' \
      'unless a run of another folder still holds it: "sh run.sh release" there first' >&2
    mv "$held.part" "$held"
  } || return 1
  for scope in persistent transient; do balance "$scope" '"none"' || return 1; done
}

release() {
  for scope in persistent transient; do
    if grep -q enable "$held/$scope.json"; then
      es PUT /_cluster/settings -f --data-binary @"$held/$scope.json" >/dev/null || return 1
    else
      balance "$scope" null || return 1
    fi
  done
}

balance() {
  es PUT /_cluster/settings -f -d "{\"$1\":{\"cluster.routing.rebalance.enable\":$2}}" >/dev/null
}

# What is done already is refused: what came of a reroute, the next look shows.
apply() {
  while read -r body; do
    code=$(printf %s "$body" | es POST '/_cluster/reroute?metric=none' --data-binary @- \
      -o "$dump/answer" -w '%{http_code}') || return 1
    case $code in
    200) ;;
    400) cat "$dump/answer" >&2; echo >&2 ;;
    *) cat "$dump/answer" >&2; return 1 ;;
    esac
    rm -f "$dump/answer"
  done <"$1.reroutes.jsonl"
}

settle() {
  spent=0
  while :; do
    told=$(es GET '/_cluster/health?filter_path=relocating_shards' -f) || return 1
    case $told in *'"relocating_shards":0}'*) return 0 ;; esac
    nap "health says $told" || return 1
  done
}
"""

SETTINGS = (Setting("ES", "http://localhost:9200", "address of the cluster"),)

NOTES = (
    "`cluster.routing.rebalance.enable` is set to `none` before the first move, and given back as "
    "it was after the last. Who stops in between and does not go on gives it back by "
    "`sh run.sh release`; the balancer may take moves back then.",
    "Allocation filters and awareness hold for moves as well: Elasticsearch refuses what breaks "
    "them, and `run.sh` stops where a move does not begin.",
    "Which copy is the primary is not changed.",
)


def files(cluster: Cluster, waves: Sequence[Wave]) -> list[dict[str, bytes]]:
    """Return the reroutes of each wave, the body of a request per line, a shard for each.

    Raises
    ------
    InvalidInput
        If a partition is not named index/number, or a copy would be given up.
    """
    faults = FaultList()
    coming = under_way(cluster.native)
    found = [
        {
            "reroutes.jsonl": b"".join(
                _reroute(faults, cluster, one, coming.get(one.name, {})) for one in wave
            )
        }
        for wave in waves
    ]
    faults.raise_if_any()
    return found


def _reroute(
    faults: FaultList, cluster: Cluster, change: Change, coming: Mapping[str, str]
) -> bytes:
    names, held = cluster.nodes.names, cluster.placement
    index, _, number = change.name.rpartition("/")
    if not (index and number.isascii() and number.isdecimal()):
        faults.add(change.name, change.name, "must be index/number")
        return b""
    own: dict[str, Any] = {"index": index, "shard": int(number)}
    slots = slice(int(held.first[change.partition]), int(held.first[change.partition + 1]))
    told = exchanges(held.role[slots].tolist(), change.before, change.after)
    if any(len(one.leaves) > len(one.joins) for one in told):
        gone = [names[n] for n in change.leaves]
        faults.add(change.name, gone, "would give up copies: change replicas")
        return b""
    commands = [one for part in orders(own, told, names, coming) for one in part]
    try:
        return msgspec.json.encode({"commands": commands}) + b"\n" if commands else b""
    except UnicodeEncodeError:
        faults.add(change.name, change.name, "cannot be written as UTF-8")
        return b""


def lists_nodes(documents: Sequence[Document]) -> bool:
    """Return whether they tell the nodes there are: one that stops is in no answer any more."""
    return any(recognises(one) == "nodes" for one in documents)


CARRIER = Carrier(files, SHELL, SETTINGS, NOTES, anybody, lists_nodes=lists_nodes, gives_up=False)
