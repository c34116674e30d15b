"""Repair in plain Python: what must leave, and how broken the rules of a partition are."""

from collections import Counter

from tests.support.small_problems import Small


def must_relocate(small: Small, keeps: list[bool]) -> list[bool]:
    """Say of every replica, partition by partition, whether it must get another node."""
    return [
        n < 0 or not keeps[n] or (small.allowed is not None and not bool(small.allowed[p, n]))
        for p, row in enumerate(small.placement)
        for n in row
    ]


def breaches(small: Small, row: list[int]) -> int:
    """Count replicas too many on a node or in a zone, and those missing inside a term's mask."""
    return sum(broken(small, row))


def broken(small: Small, row: list[int]) -> list[int]:
    """Count the same, rule by rule."""
    placed = [n for n in row if n >= 0]
    zones = Counter(small.zone[n] for n in placed)
    found = [sum(c - 1 for c in Counter(placed).values())]
    found += [sum(max(0, c - small.per_zone) for c in zones.values())]
    for inside, least in zip(small.inside, small.least, strict=True):
        there = sum(inside[n] for n in placed)
        found.append(len(placed) - there if least < 0 else max(0, least - there))
    return found
