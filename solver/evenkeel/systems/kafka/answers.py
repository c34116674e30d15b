"""Which brokers answered ``kafka-broker-api-versions``, and on which racks they are.

Of each broker there is a line that names it. Behind it stands what it understands, in parentheses,
or why it did not answer: ``-> ERROR: ...DisconnectException``.
"""

import re

from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.kafka.findings import Findings, whole

ANSWER = re.compile(
    rb"^\S+:[0-9]{1,5} \(id: ([0-9]{1,10}) rack: ([^\n]*?)(?: isFenced: (true|false))?\) ->"
    rb"[ \t]*(\(?)",
    re.MULTILINE,
)
"""The first line of what is printed of a broker: id, rack, whether it is fenced, what it said."""


def is_answers(head: bytes) -> bool:
    """Whether this begins as ``kafka-broker-api-versions`` prints it."""
    return ANSWER.search(head) is not None


def read_answers(findings: Findings, document: Document) -> None:
    """Take in which brokers answered, and the racks of all that are named.

    A broker that is fenced is out of the cluster for the controller, though it may answer: it
    leads nothing and is in sync with nobody.
    """
    tells_racks = False
    for found in ANSWER.finditer(document.data):
        at = f"{document.name}:{document.line_at(found.start())}"
        broker, rack = whole(found[1].decode()), found[2].decode("utf-8", "replace")
        if broker is None:
            findings.faults.add(at, quoted(found[1]), "must be a broker id")
            continue
        findings.add_answer(at, broker, up=found[4] == b"(" and found[3] != b"true")
        tells_racks |= rack != "null"
        findings.add_rack(at, broker, None if rack == "null" else rack)
    if tells_racks:
        findings.rack_files.append(document.name)
