"""Apache Helix: the records that it keeps in ZooKeeper, in; ideal states, out.

References
----------
Apache Helix, ``ZNRecord``, ``IdealState``, ``ExternalView``, ``InstanceConfig``, ``ClusterConfig``
and ``ResourceConfig``.
"""

from evenkeel.systems.helix.cluster import left_out, read
from evenkeel.systems.helix.output import encode
from evenkeel.systems.helix.records import hint, recognises
from evenkeel.systems.helix.waves import CARRIER
from evenkeel.systems.registry import Format

FORMAT = Format(
    name="helix",
    summary="Helix: ideal states, external views, and instance, cluster and resource configs",
    suffixes=(".json", ".zip"),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
    left_out=left_out,
    hint=hint,
)
