"""The order in which nodes are preferred for a replica, plainly."""

import struct


def preference(score: float, n: int, k: int, n_nodes: int) -> int:
    """What is least for the node that replica ``k`` prefers."""
    # scores that agree in all bits but the last ones, which a node's number takes up, are equal; of
    # equals a number comes first that differs for each replica
    last = (1 << (n_nodes - 1).bit_length()) - 1
    bits = int(struct.unpack("<q", struct.pack("<d", score))[0])
    return (bits & ~last) | (n ^ ((k * 3_266_489_917 >> 32) & last))
