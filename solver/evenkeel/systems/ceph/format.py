"""Ceph: what its tools print, put together to a cluster, and the commands that its tools take.

References
----------
Ceph, ``ceph osd dump``, ``osd tree``, ``osd df``, ``pg dump`` and ``osd crush dump`` with
``-f json``; ``crushtool --decompile``; ``osdmaptool --upmap``.
"""

from evenkeel.systems.ceph.cluster import read
from evenkeel.systems.ceph.commands import encode
from evenkeel.systems.ceph.crush.cluster import FORMAT as NAME
from evenkeel.systems.ceph.documents import kind_of
from evenkeel.systems.ceph.notices import left_out, uncapped
from evenkeel.systems.ceph.waves import CARRIER
from evenkeel.systems.registry import Format

FORMAT = Format(
    name=NAME,
    summary="Ceph: osd dump, osd tree, osd df and pg dump as JSON, the CRUSH map as JSON or text, "
    "pg-upmap-items commands",
    suffixes=(".sh",),
    recognises=kind_of,
    read=read,
    encode=encode,
    carrier=CARRIER,
    left_out=left_out,
    uncapped=uncapped,
    stranded="too few devices that hold their data are up for these placement groups to serve: "
    "bring one back (ceph pg PGID query says which it waits for), and read again",
)
