"""CockroachDB: what its allocator, its leases and its store rebalancer decide, case by case."""

from importlib import import_module
from pathlib import Path
from typing import Any

from tests.conformance.cockroach_cases.protocol import Category, Json, Refused
from tests.conformance.protocol import MISSING, Case, Document, Replay

NAME = "cockroach"
CASES = "tests.conformance.cockroach_cases"
MODULES = ("scoring", "replicas", "leases", "store_rebalancer")
"""Modules of cases, each with its categories."""

COMMON = frozenset({"id", "group", "title", "note", "expect"})  # keys that every case may have


def recognises(path: Path, document: Document) -> bool:
    if not isinstance(document, dict):
        return False
    return document.get("schema") == "placement-cases/1" and document.get("system") == "cockroach"


def replay(path: Path, document: Any) -> Replay:
    """Decide every case; a category that nobody knows disagrees in every case."""
    category = categories().get(document["category"])
    cases = [_replayed(document, category, case) for case in document["cases"]]
    return Replay(cases, document)


def categories() -> dict[str, Category]:
    """All categories, by name."""
    modules = [import_module(f"{CASES}.{name}") for name in MODULES]
    return {name: one for module in modules for name, one in module.CATEGORIES.items()}


def _replayed(document: Json, category: Category | None, case: Json) -> Case:
    expected = case.pop("expect", MISSING)
    if category is None:
        return Case(case["id"], False, f"unknown category {document['category']!r}")
    unknown = sorted(case.keys() - category.keys - COMMON)
    if unknown:
        return Case(case["id"], False, f"unknown keys {unknown}")
    try:
        computed = category.answer(document, case)
    except Refused as refusal:
        return Case(case["id"], False, str(refusal))
    case["expect"] = computed
    if expected is MISSING:
        return Case(case["id"], None)
    wrong = [
        f"{key}: expected {value}, computed {computed.get(key, MISSING)}"
        for key, value in expected.items()
        if not _agrees(category, key, value, computed.get(key, MISSING))
    ]
    return Case(case["id"], not wrong, "; ".join(wrong))


def _agrees(category: Category, key: str, expected: Any, computed: Any) -> bool:
    if computed is MISSING:
        return False
    judge = category.judges.get(key)
    return judge(expected, computed) if judge else expected == computed
