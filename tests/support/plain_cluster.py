"""A small cluster with names for all objects, of which tests change one argument at a time."""

import pytest

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import InvalidInput

PLAIN = {
    "capacity": [[10.0, 10.0]] * 3,
    "load": [[1.0, 2.0]] * 4,
    "dimensions": ("cpu", "disk"),
    "domains": {"zone": ["a", "a", "b"], "rack": ["r1", "r2", "r1"]},
    "tags": {"ssd": [True, True, False]},
    "attributes": {"os": ["linux", "linux", "bsd"]},
    "placement": [[0, 2], [1, 2], [2, 0], [2, 1]],
}


def build(**changes):
    return Cluster.from_arrays(**(PLAIN | changes))


def faults_of(**changes):
    """The faults of a plain cluster with some arguments changed, by path."""
    with pytest.raises(InvalidInput) as caught:
        build(**changes)
    return {fault.path: fault for fault in caught.value.faults}
