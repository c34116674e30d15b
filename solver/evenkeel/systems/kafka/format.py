"""Kafka: what its tools print, put together to a cluster, and the files that its tools take.

References
----------
Apache Kafka, tools ``kafka-reassign-partitions``, ``kafka-topics --describe``, ``kafka-log-dirs``
and ``kafka-leader-election``; Cruise Control, capacity file.
"""

from evenkeel.systems.kafka.cluster import read
from evenkeel.systems.kafka.documents import hint, recognises
from evenkeel.systems.kafka.notices import awaited, left_out, uncapped
from evenkeel.systems.kafka.reassignment import encode
from evenkeel.systems.kafka.waves import CARRIER
from evenkeel.systems.registry import Format

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
