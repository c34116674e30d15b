"""Output of ``ceph osd dump``, ``osdmaptool --print`` and ``ceph pg dump`` for people, as JSON."""

import re
from dataclasses import replace
from typing import Any

import msgspec

from evenkeel.systems.documents import Document

OSD_DUMP = re.compile(rb"^(?:pool \d+ '|max_osd \d+|osd\.\d+ +(?:up|down) )", re.MULTILINE)
EPOCH = re.compile(rb"(?:[^\n]*\n)?epoch \d+\s*\n")
PG_DUMP = re.compile(rb"^\s*pg_?stat\s+(?:objects|state)\s", re.MULTILINE | re.IGNORECASE)

POOL = re.compile(r"pool (\d+) '(.*?)' (replicated|erasure)(?: profile (\S+))? (.*)")
OSD = re.compile(r"osd\.(\d+) +(up|down) +(in|out) +weight (\S+)(?: +primary_affinity (\S+))?(.*)")
NUMBERED = re.compile(r"(\w+) (\d+)(?= |$)")
FOR_GROUPS = re.compile(r"(pg_temp|pg_upmap|pg_upmap_items|pg_upmap_primar(?:y|ies)) (\S+) (.*)")
SET = re.compile(r"\[([-\d,]*)\]")
NONE = 2147483647


def osd_dump_as_json(document: Document) -> Document:
    """Return the osd dump in its JSON, as far as placement needs it; JSON stays as it is."""
    if not EPOCH.match(document.data):
        return document
    found: dict[str, Any] = {
        "pools": [], "osds": [], "pg_temp": [], "pg_upmap": [], "pg_upmap_items": [],
        "pg_upmap_primaries": [],
    }  # fmt: skip
    for line in document.data.decode("utf-8", "replace").splitlines():
        if pool := POOL.match(line):
            found["pools"].append(_pool(pool))
        elif osd := OSD.match(line):
            found["osds"].append(_osd(osd))
        elif group := FOR_GROUPS.match(line):
            _add_group(found, *group.groups())
        elif line.startswith("backfillfull_ratio "):
            found["backfillfull_ratio"] = _number(line.split()[1])
        elif line.startswith("require_min_compat_client "):
            found["require_min_compat_client"] = line.split()[1]
    return replace(document, data=msgspec.json.encode(found))


def _pool(pool: re.Match[str]) -> dict[str, Any]:
    number, name, kind, profile, rest = pool.groups()
    stated = {key: int(value) for key, value in NUMBERED.findall(rest)}
    return {
        "pool": int(number), "pool_name": name, "type": 1 if kind == "replicated" else 3,
        "size": stated.get("size"), "pg_num": stated.get("pg_num"),
        "crush_rule": stated.get("crush_rule", stated.get("crush_ruleset")),
        "pg_placement_num": stated.get("pgp_num"),
        "pg_num_target": stated.get("pg_num_target", 0),
        "flags": int("hashpspool" in rest), "erasure_code_profile": profile or "",
    }  # fmt: skip


def _osd(osd: re.Match[str]) -> dict[str, Any]:
    number, up, inside, weight, affinity, rest = osd.groups()
    states = next((word for word in reversed(rest.split()) if "exists" in word), "")
    return {
        "osd": int(number), "up": int(up == "up"), "in": int(inside == "in"),
        "weight": _number(weight), "primary_affinity": _number(affinity or "1"),
        "state": states.split(","),
    }  # fmt: skip


def _add_group(found: dict[str, Any], what: str, pgid: str, rest: str) -> None:
    ids = _ids(rest)
    if what == "pg_upmap_items":
        pairs = [{"from": a, "to": b} for a, b in zip(ids[::2], ids[1::2], strict=False)]
        found[what].append({"pgid": pgid, "mappings": pairs})
    elif what.startswith("pg_upmap_primar"):
        found["pg_upmap_primaries"].append({"pgid": pgid, "primary_osd": int(rest.split()[0])})
    else:
        found[what].append({"pgid": pgid, "osds": ids})


def pg_dump_as_json(document: Document) -> Document:
    """Return the placement groups of a pg dump as JSON; JSON stays as it is."""
    head = PG_DUMP.search(document.data)
    if head is None or document.data.lstrip()[:1] in (b"{", b"["):
        return document
    lines = document.data[head.start() :].decode("utf-8", "replace").splitlines()
    names = [name.upper().rstrip("*") for name in next(filter(str.strip, lines)).split()]
    found = []
    for line in lines:
        words, sets = line.split(), SET.findall(line)
        if len(words) < len(names) or not re.fullmatch(r"\d+\.[0-9a-f]+", words[0]) or not sets:
            continue
        # all columns before the state are single words
        state = words[names.index("STATE")] if "STATE" in names else ""
        one: dict[str, Any] = {"pgid": words[0], "state": state, "up": _ids(sets[0])}
        one["acting"] = _ids(sets[1] if len(sets) > 1 else sets[0])
        if "BYTES" in names and words[names.index("BYTES")].lstrip("-").isdecimal():
            one["stat_sum"] = {"num_bytes": int(words[names.index("BYTES")])}
        found.append(one)
    return replace(document, data=msgspec.json.encode(found))


def _ids(text: str) -> list[int]:
    return [NONE if int(one) < 0 else int(one) for one in re.findall(r"-?\d+", text)]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
