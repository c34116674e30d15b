"""RabbitMQ: quorum queues as its tools list them, in; calls of ``rabbitmq-queues``, out.

References
----------
RabbitMQ, ``rabbitmqctl list_queues`` and ``cluster_status``, ``rabbitmq-queues add_member`` and
``delete_member``, the management API ``/api/queues`` and ``/api/nodes``.
"""

from evenkeel.systems.rabbitmq.cluster import left_out, read
from evenkeel.systems.rabbitmq.documents import hint, recognises
from evenkeel.systems.rabbitmq.output import encode
from evenkeel.systems.rabbitmq.waves import CARRIER
from evenkeel.systems.registry import Format

FORMAT = Format(
    name="rabbitmq",
    summary="RabbitMQ: list_queues and cluster_status as JSON, /api/nodes, a zone for each node",
    suffixes=(".json", ".sh"),
    recognises=recognises,
    read=read,
    encode=encode,
    left_out=left_out,
    carrier=CARRIER,
    keeps_mended=True,
    hint=hint,
    stranded="a queue changes its members by a majority of them: bring back nodes that hold it, "
    "and read again",
)
