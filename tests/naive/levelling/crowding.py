"""Who leaves crowded nodes, in plain Python: of each group on a node, one replica after another."""


def crowd_out(cells, leaving, leads, size):
    """Mark in ``leaving`` who leaves; ``cells`` are the most of a group and its replicas."""
    # ``cells`` are by node; replicas are in the order of a node's list; those that may not move
    # have no ``size(k)``
    for most, members in cells:
        for _ in range(len(members) - most - sum(leaving[k] for k in members)):
            able = [k for k in reversed(members) if not leaving[k] and size(k) is not None]
            if able:
                leaving[min(able, key=lambda k: (leads(k), size(k)))] = True
