"""From the stores and constraints of a file to what decides."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.conformance.cockroach_cases.protocol import Json, Refused

if TYPE_CHECKING:
    from evenkeel.systems.cockroach.allocator.zone_configs import Conjunction, Site
    from evenkeel_kernels.cockroach.tables import Stores

STORE_KEYS = {
    "store", "node", "locality", "store_attrs", "node_attrs", "capacity", "available", "status",
    "range_count", "lease_count", "qps", "io_score",
}  # fmt: skip
STATES = {
    "live": 0, "live_after_suspect_window": 0, "throttled": 1, "suspect": 2, "draining": 3,
    "unknown": 4, "unavailable": 4, "decommissioning": 5, "decommissioned": 6, "dead": 6,
}  # fmt: skip


class Fleet:
    """The stores of a fixture, which cases call by their ids."""

    def __init__(self, document: Json, case: Json) -> None:
        fixture = document.get("fixtures", {}).get(case["fixture"])
        if fixture is None:
            raise Refused(f"no fixture {case['fixture']!r}")
        self.stores = fixture["stores"]
        for one in self.stores:
            if unknown := sorted(one.keys() - STORE_KEYS):
                raise Refused(f"unknown keys of a store {unknown}")
        self.ids = [one["store"] for one in self.stores]

    def place(self, store: int) -> int:
        """The index of a store."""
        if store not in self.ids:
            raise Refused(f"no store {store} in the fixture")
        return self.ids.index(store)

    def places(self, stores: Sequence[int]) -> list[int]:
        """The indices of stores."""
        return [self.place(one) for one in stores]

    def names(self, places: Sequence[int]) -> list[int]:
        """The ids of stores, ascending."""
        return sorted(self.ids[int(i)] for i in places)

    def sites(self) -> "list[Site]":
        """What never changes of the stores."""
        from evenkeel.systems.cockroach.allocator.zone_configs import Site

        return [
            Site(
                one["node"],
                tuple((key, value) for key, value in one["locality"]),
                frozenset(one["store_attrs"]) | frozenset(one["node_attrs"]),
            )
            for one in self.stores
        ]

    def view(self, not_ready: Sequence[int] = (), status: Sequence[str] | None = None) -> "Stores":
        """The stores as they are known."""
        from bench.scenarios.one_range import stores_like

        states = [one.get("status", "live") for one in self.stores] if status is None else status
        if unknown := sorted(set(states) - STATES.keys()):
            raise Refused(f"unknown states {unknown}")
        codes = [STATES[state] for state in states]
        return stores_like(
            len(self.ids),
            status=codes,
            ready=[
                code == 0 and one["node"] not in not_ready
                for code, one in zip(codes, self.stores, strict=True)
            ],
            ranges=self._column("range_count"),
            leases=self._column("lease_count"),
            qps=self._column("qps"),
            capacity=self._column("capacity"),
            available=self._column("available"),
            io=self._column("io_score"),
        )

    def _column(self, key: str) -> list[float]:
        return [float(one.get(key, 0.0)) for one in self.stores]


def conjunctions(listed: Sequence[Json]) -> "list[Conjunction]":
    """Read ``{"num": 1, "all": ["+ssd"]}`` and the like."""
    from evenkeel.model.errors import FaultList
    from evenkeel.systems.cockroach.allocator.zone_configs import parse_conjunction

    faults = FaultList()
    read = [
        parse_conjunction(faults, f"constraints[{i}]", one["all"], one["num"])
        for i, one in enumerate(listed)
    ]
    if faults:
        raise Refused(str(faults.faults[0]))
    return read


def constraints_of(document: Json, case: Json) -> "list[Conjunction]":
    """The constraints of a case, its own or a set of the file."""
    if "constraint_set" in case:
        listed = document.get("constraint_sets", {}).get(case["constraint_set"])
        if listed is None:
            raise Refused(f"no constraint set {case['constraint_set']!r}")
        return conjunctions(listed)
    return conjunctions(case.get("constraints", ()))
