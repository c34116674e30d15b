"""OpenStack Swift: a ring, in and out.

References
----------
OpenStack Swift, ``swift.common.ring.ring.RingData``: the file of a ring, version 1.
"""

from evenkeel.systems.registry import Format
from evenkeel.systems.swift.cluster import left_out, read
from evenkeel.systems.swift.output import encode
from evenkeel.systems.swift.ring import hint, recognises
from evenkeel.systems.swift.waves import CARRIER

FORMAT = Format(
    name="swift",
    summary="OpenStack Swift: one ring, such as object.ring.gz",
    suffixes=(".ring.gz",),
    recognises=recognises,
    read=read,
    encode=encode,
    left_out=left_out,
    carrier=CARRIER,
    hint=hint,
)
