"""Kafka: what its tools print, put together to a cluster, and the files that its tools take.

References
----------
Apache Kafka, tools ``kafka-reassign-partitions``, ``kafka-topics --describe``, ``kafka-log-dirs``
and ``kafka-leader-election``; Cruise Control, capacity file.
"""

from evenkeel.formats.kafka.cluster import read
from evenkeel.formats.kafka.documents import hint, recognises
from evenkeel.formats.kafka.notices import awaited, left_out, uncapped
from evenkeel.formats.kafka.reassignment import encode
from evenkeel.formats.kafka.waves import CARRIER
from evenkeel.formats.registry import Format

FORMAT = Format(
    name="kafka",
    summary="Kafka: reassignment, topic description, log dirs, racks and capacities",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
    keeps_mended=True,
    left_out=left_out,
    uncapped=uncapped,
    awaited=awaited,
    stranded=(
        "Kafka copies from the leader, and no broker that is up is in sync: bring back one that "
        "was, or elect another at the loss of data (kafka-leader-election.sh --election-type "
        "unclean), and read again"
    ),
    hint=hint,
)
