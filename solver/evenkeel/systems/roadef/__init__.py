"""Read and write machine-reassignment files of the ROADEF/EURO challenge 2012.

A process is a partition with one replica, a service is a group, a machine a node; neighbourhood and
location are tiers, safety capacity is a watermark. The integers of both files travel along as
``cluster.native``, so that nothing is lost on the way back.

References
----------
ROADEF/EURO challenge 2012, problem statement, input and output format: integers between white
space; line breaks carry no meaning.
"""

from evenkeel.systems.roadef.format import (
    LEVELS,
    NAME,
    cluster_of,
    cost_of,
    native_of,
    read,
    read_assignment,
    write,
    write_model,
)

__all__ = [
    "LEVELS", "NAME", "cluster_of", "cost_of", "native_of", "read", "read_assignment", "write",
    "write_model",
]  # fmt: skip
