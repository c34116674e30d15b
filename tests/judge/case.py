"""A case: a cluster as a user would write it, with goals and limits, independent of the library."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import evenkeel as ek


@dataclass(frozen=True)
class Case:
    """One input to judge, as plain Python."""

    family: str
    seed: int
    cluster: dict[str, Any]  # arguments of ``Cluster.from_arrays``, its rules as mappings
    goals: dict[str, Any] = field(default_factory=dict)  # of ``Goals``
    limits: dict[str, Any] = field(default_factory=dict)  # of ``Limits``
    # calls of the callback until it stops the search; None where it goes on to its end
    calls: int | None = None

    @property
    def replicas(self) -> int:
        """How many slots the placement has."""
        rows = self.cluster.get("placement", [])
        return sum(len(row) if isinstance(row, list) else 1 for row in rows)


def build(case: Case) -> tuple[ek.Cluster, ek.Goals, ek.Limits]:
    """Make the library's objects of a case."""
    given = dict(case.cluster)
    if "rules" in given:
        given["rules"] = [ek.Rule(**one) for one in given["rules"]]
    if "disks" in given:
        given["disks"] = ek.Disks(**given["disks"])
    return ek.Cluster.from_arrays(**given), ek.Goals(**case.goals), ek.Limits(**case.limits)


def source_of(case: Case, method: str = "balance") -> str:
    """Return a case as Python that runs."""
    lines = ["import evenkeel as ek", "", "cluster = ek.Cluster.from_arrays("]
    for name, value in case.cluster.items():
        if name == "rules":
            rules = ", ".join(f"ek.Rule({_keywords(one)})" for one in value)
            lines.append(f"    rules=[{rules}],")
        elif name == "disks":
            lines.append(f"    disks=ek.Disks({_keywords(value)}),")
        else:
            lines.append(f"    {name}={value!r},")
    lines += [
        ")",
        f"goals = ek.Goals({_keywords(case.goals)})",
        f"limits = ek.Limits({_keywords(case.limits)})",
        f"result = ek.solve(cluster, {method!r}, goals=goals, limits=limits)",
        "print(result)",
    ]
    return "\n".join(lines).replace("inf", 'float("inf")')


def _keywords(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


# draws a cluster, goals and limits
Family = Callable[[np.random.Generator], tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]
