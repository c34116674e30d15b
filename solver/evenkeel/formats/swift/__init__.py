"""OpenStack Swift: a ring, in and out.

References
----------
OpenStack Swift, ``swift.common.ring.ring.RingData``: the file of a ring, version 1.
"""

from evenkeel.formats.registry import Format
from evenkeel.formats.swift.cluster import read
from evenkeel.formats.swift.output import encode
from evenkeel.formats.swift.ring import recognises
from evenkeel.formats.swift.waves import CARRIER

FORMAT = Format(
    name="swift",
    summary="OpenStack Swift: one ring, such as object.ring.gz",
    suffixes=(".ring.gz",),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
)
