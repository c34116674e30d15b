"""Waves as Swift takes them: rings, each of which moves at most one replica of a partition."""

from collections.abc import Sequence

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.folders.carrier import Carrier, Setting, Wave, all_nodes, anybody
from evenkeel.systems.swift.output import packed_after

SHELL = r"""
still='a ring is on its way that not all nodes may have'

take() {
  if [ -z "$DISTRIBUTE" ] || [ -z "$REPLICATED" ]; then
    echo 'DISTRIBUTE and REPLICATED are not set: README.md says what they are' >&2
    return 1
  fi
  release || return 1
  cp -- "$RING" "$dump/now.ring.gz"
}

# A ring that some nodes may have goes to all, and replication passes, before anything else is done.
release() {
  [ -e "$held" ] || return 0
  for ring in "$held"/*.ring.gz; do
    "$DISTRIBUTE" "$ring" </dev/null || return 1
    cp -- "$ring" "$RING.part" && mv -- "$RING.part" "$RING" || return 1
    "$REPLICATED" "$RING" </dev/null || return 1
  done
  rm -rf "$held"
}

apply() {
  rm -rf "$held.part" && mkdir "$held.part" && cp -- "$1.ring.gz" "$held.part" || return 1
  mv "$held.part" "$held" && release
}

settle() { :; }
"""

SETTINGS = (
    Setting("RING", "/etc/swift/object.ring.gz", "the ring that this machine goes by"),
    Setting("DISTRIBUTE", "", "your program that puts the ring of its argument on all other nodes"),
    Setting(
        "REPLICATED",
        "",
        "your program that comes back when every node has replicated once with the ring of its "
        "argument, and fails where one could not",
    ),
)

NOTES = (
    "How rings reach the nodes, and how one sees that replication has passed, is a matter of your "
    "installation: `run.sh` begins only with `DISTRIBUTE` and `REPLICATED` set. For the second, "
    "`swift-recon object -r` tells when each node has completed its last pass, and "
    "`swift-dispersion-report` whether what it looks for is on its devices.",
    "Each ring moves at most one replica of a partition, as Swift's own builder does, so that the "
    "others serve meanwhile; who was left keeps its copy until replicators have found the new one.",
    "The builder does not know of these rings: its next `rebalance` starts from what it had. Do "
    "not rebalance until you have made that good.",
    "A guard sees which ring this machine has, not whether data has arrived: that is what "
    "`REPLICATED` is for.",
)


def files(cluster: Cluster, waves: Sequence[Wave]) -> list[dict[str, bytes]]:
    """Return the ring after each wave.

    Raises
    ------
    InvalidInput
        If the cluster was not read from a ring, or a wave would move two replicas of a partition or
        give one up.
    """
    faults = FaultList()
    names = cluster.nodes.names
    for wave in waves:
        for one in wave:
            if len(one.leaves) > 1:
                message = "would move two replicas at once: plan with the protocol plain"
                faults.add(one.name, [names[n] for n in one.leaves], message)
            if len(one.leaves) > len(one.joins):
                faults.add(one.name, [names[n] for n in one.leaves], "would give up a replica")
    faults.raise_if_any()
    node, first = cluster.placement.node.copy(), cluster.placement.first.tolist()
    found = []
    for number, wave in enumerate(waves, start=1):
        for one in wave:
            node[first[one.partition] : first[one.partition + 1]] = one.after
        found.append({"ring.gz": packed_after(cluster, node, number)})
    return found


CARRIER = Carrier(files, SHELL, SETTINGS, NOTES, anybody, lists_nodes=all_nodes, gives_up=False)
