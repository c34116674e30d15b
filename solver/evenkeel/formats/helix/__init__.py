"""Apache Helix: the records that it keeps in ZooKeeper, in; ideal states, out.

References
----------
Apache Helix, ``ZNRecord``, ``IdealState``, ``ExternalView``, ``InstanceConfig``, ``ClusterConfig``
and ``ResourceConfig``.
"""

from evenkeel.formats.helix.cluster import left_out, read
from evenkeel.formats.helix.output import encode
from evenkeel.formats.helix.records import recognises
from evenkeel.formats.helix.waves import CARRIER
from evenkeel.formats.registry import Format

FORMAT = Format(
    name="helix",
    summary="Helix: ideal states, external views, and instance, cluster and resource configs",
    suffixes=(".json", ".zip"),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
    left_out=left_out,
)
