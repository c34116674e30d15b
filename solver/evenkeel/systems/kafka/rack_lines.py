"""Racks as lines ``1 rack-a``, or as the properties files of brokers, one after the other."""

import re

from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.kafka.findings import Findings, whole

LINE = re.compile(r"([0-9]{1,10})(\s*[:=,]\s*|\s+)(\S.*)")
PROPERTY = re.compile(r"(broker\.id|node\.id|broker\.rack|process\.roles)\s*[=:]\s*(.*)")
DONE = "done"
"""Stands for the roles of a controller whose number is known: a rack that follows is its own."""

IN_QUOTES = re.compile(r"\"([^\"]*)\"|'([^']*)'")


def are_rack_lines(head: bytes) -> bool:
    """Whether this begins with a rack, or has a property that tells one."""
    lines = [line for line in head.decode("utf-8", "replace").split("\n") if _says(line)]
    return bool(lines) and bool(LINE.fullmatch(lines[0].strip()) or any(map(PROPERTY.match, lines)))


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def read_rack_lines(findings: Findings, document: Document) -> None:
    """Take in the rack of one broker after the other."""
    findings.rack_files.append(document.name)
    broker: int | None = None
    broker_at = f"{document.name}:1"
    rack: tuple[str, str] | None = None
    roles = ""
    for number, line in enumerate(document.text(findings.faults).split("\n"), start=1):
        at = f"{document.name}:{number}"
        line = line.strip()
        known = PROPERTY.fullmatch(line)
        found = None if known else LINE.fullmatch(line)
        if known and known[1] == "broker.rack":
            rack = None if roles == DONE else (known[2].strip(), at)
        elif known and known[1] == "process.roles":
            roles = known[2].replace(" ", "")
        elif known and (own := whole(known[2].strip())) is not None:
            if broker is not None:
                findings.faults.add(broker_at, broker, "has no broker.rack")
            broker, broker_at, roles = own, at, roles if roles != DONE else ""
        elif known:
            findings.faults.add(at, quoted(known[2]), f"{known[1]} must be a broker id")
        elif found and (own := whole(found[1])) is not None:
            _add_line(findings, at, own, found[2].strip(), found[3].strip())
        elif _says(line) and "=" not in line:
            findings.faults.add(at, quoted(line), "is neither `broker rack` nor a property")
        if broker is not None and roles == "controller":
            findings.controllers.add(broker)
            broker, rack, roles = None, None, DONE
        if broker is not None and rack is not None:
            findings.add_rack(rack[1], broker, rack[0])
            broker, rack, roles = None, None, ""
    if broker is not None:
        findings.faults.add(broker_at, broker, "has no broker.rack")
    if rack is not None:
        findings.faults.add(rack[1], quoted(rack[0]), "has no broker.id or node.id")


def _add_line(findings: Findings, at: str, broker: int, divider: str, text: str) -> None:
    """Take in a rack, of which quotes are no part, unless more than one cell is left of the line.

    Cells end at a comma, and at blanks where these divide the first one from the second.
    """
    inside = IN_QUOTES.fullmatch(text)
    if inside is not None:
        findings.add_rack(at, broker, inside[1] or inside[2])
    elif "," in text or (not divider and len(text.split()) > 1):
        message = "is more than one cell: a line has a broker and its rack; else put it in quotes"
        findings.faults.add(at, quoted(text), message)
    elif text[0] in "\"'" or text[-1] in "\"'":
        findings.faults.add(at, quoted(text), "has a quote without the other one")
    else:
        findings.add_rack(at, broker, text)
