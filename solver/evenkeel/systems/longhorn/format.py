"""Longhorn among the formats: how its resources are recognised, read, written and carried out."""

from evenkeel.systems.longhorn.cluster import left_out, read
from evenkeel.systems.longhorn.objects import hint, recognises
from evenkeel.systems.longhorn.output import encode
from evenkeel.systems.longhorn.waves import CARRIER
from evenkeel.systems.registry import Format

FORMAT = Format(
    name="longhorn",
    summary="Longhorn: volumes, replicas, nodes and settings as kubectl get -o json prints them",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
    left_out=left_out,
    hint=hint,
    stranded="Longhorn builds a replica from a healthy one, and these volumes have none on a disk "
    "that is up: bring back a node that holds one, salvage the volume or restore a backup, and "
    "read again",
)
