"""Longhorn's settings under the names of its API, and the options of the method ``longhorn``.

References
----------
Longhorn, settings reference; enhancement "Automatic Replica Rebalance", 2021.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from evenkeel.methods.options import Options
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import MOST_IN_ALL, entries_of
from evenkeel.model.reading.keywords import known_fields
from evenkeel.model.reading.quantities import check_number

# values of the global setting, by falling ease
AUTO_BALANCE = ("disabled", "least-effort", "best-effort")

# values of a volume's setting; ignored takes the global one
VOLUME_AUTO_BALANCE = ("ignored", *AUTO_BALANCE)

# values of a volume's own anti-affinity settings; ignored takes the global one
VOLUME_SWITCH = ("ignored", "enabled", "disabled")

DATA_LOCALITY = ("disabled", "best-effort", "strict-local")  # values of a volume's data locality
ROBUSTNESS = ("unknown", "healthy", "degraded", "faulted")  # states of a volume
AutoBalance = Literal["disabled", "least-effort", "best-effort", "least_effort", "best_effort"]
Order = Literal["node-then-zone", "zone-then-node", "node_then_zone", "zone_then_node"]
Scope = Literal["volume", "cluster"]

TRUTH = {"true": True, "false": False}


def spelled(value: Any) -> Any:
    """Return a value as Longhorn's API spells it."""
    return value.replace("_", "-") if isinstance(value, str) else value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Longhorn's global settings, each called as in its API with underscores for hyphens.

    Parameters
    ----------
    replica_auto_balance : {"disabled", "least-effort", "best-effort"}
        Balancing of volumes without a setting of their own.
    replica_soft_anti_affinity : bool
        Whether two replicas of a volume may share a host.
    replica_zone_soft_anti_affinity : bool
        Whether they may share a zone.
    replica_disk_soft_anti_affinity : bool
        Whether they may share a disk.
    replica_auto_balance_disk_pressure_percentage : int
        Use of a disk, in percent, above which it is under pressure; 0 for never.
    storage_over_provisioning_percentage : int
        How much may be promised, in percent of what a disk has beyond its reserve.
    storage_minimal_available_percentage : int
        What must stay free, in percent of a disk.
    storage_reserved_percentage_for_default_disk : int
        Reserve of disks that are set up by default, in percent of them: of a ``Disk`` whose reserve
        is None. What kubectl prints states the bytes of every disk.
    allow_empty_node_selector_volume : bool
        Whether a volume without a node selector may use tagged hosts.
    allow_empty_disk_selector_volume : bool
        Whether a volume without a disk selector may use tagged disks.
    concurrent_replica_rebuild_per_node_limit : int
        Rebuilds at a time on a host; 0 for none at all, and no balancing either.
    replica_replenishment_wait_interval : int
        Seconds to wait for a failed replica to return before another is built.
    disable_scheduling_on_cordoned_node : bool
        Whether cordoned hosts get no replicas.

    Examples
    --------
    >>> Settings(replica_auto_balance="best_effort").replica_auto_balance
    'best-effort'
    """

    replica_auto_balance: AutoBalance = "disabled"
    replica_soft_anti_affinity: bool = False
    replica_zone_soft_anti_affinity: bool = True
    replica_disk_soft_anti_affinity: bool = True
    replica_auto_balance_disk_pressure_percentage: int = 90
    storage_over_provisioning_percentage: int = 100
    storage_minimal_available_percentage: int = 25
    storage_reserved_percentage_for_default_disk: int = 30
    allow_empty_node_selector_volume: bool = True
    allow_empty_disk_selector_volume: bool = True
    concurrent_replica_rebuild_per_node_limit: int = 5
    replica_replenishment_wait_interval: int = 600
    disable_scheduling_on_cordoned_node: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "replica_auto_balance", spelled(self.replica_auto_balance))
        faults = FaultList()
        for one in fields(self):
            check_setting(faults, f"settings.{one.name}", one.name, getattr(self, one.name))
        faults.raise_if_any()

    @classmethod
    def read(cls, faults: FaultList, path: str, given: Mapping[str, Any]) -> "Settings":
        """Take settings by name as Longhorn stores them: all values are texts.

        Parameters
        ----------
        faults : FaultList
            Where values that do not parse are noted.
        path : str
            Where they stand.
        given : mapping of str to object
            By names with hyphens or underscores; names of other settings are left alone. A number
            or truth value may also be one.

        Returns
        -------
        Settings
            With defaults for what is not given, or not right.

        Examples
        --------
        >>> given = {"replica-soft-anti-affinity": "true", "backup-target": "s3://x"}
        >>> Settings.read(FaultList(), "settings", given).replica_soft_anti_affinity
        True
        """
        names = {one.name for one in fields(cls)}
        taken: dict[str, Any] = {}
        for key, value in given.items():
            name = key.replace("-", "_")
            if name not in names:
                continue
            found = FaultList()
            parsed = spelled(parsed_setting(name, value))
            check_setting(found, f"{path}[{key!r}]", name, parsed)
            faults.faults.extend(found.faults)
            if not found:
                taken[name] = parsed
        return cls(**taken)

    def overridden(self, options: "Longhorn") -> "Settings":
        """Return these settings, replaced by those of the options that are not None.

        Parameters
        ----------
        options : Longhorn
            Options of a solve.

        Returns
        -------
        Settings
            The effective settings.

        Examples
        --------
        >>> options = Longhorn(replica_auto_balance="least_effort")
        >>> Settings().overridden(options).replica_auto_balance
        'least-effort'
        """
        given = {one.name: getattr(options, one.name) for one in fields(self)}
        return replace(self, **{name: value for name, value in given.items() if value is not None})


@known_fields
@dataclass(frozen=True, kw_only=True)
class Longhorn(Options):
    """Options of ``longhorn`` and of ``auto_balance.next_action``, a single step of it.

    A setting that is None has its value in the cluster's own settings, else Longhorn's default.

    Parameters
    ----------
    replica_auto_balance : {"disabled", "least-effort", "best-effort"}, optional
        Global setting; hyphens and underscores are both read. A volume's own setting wins.
    replica_soft_anti_affinity, replica_zone_soft_anti_affinity : bool, optional
        Whether two replicas of a volume may share a host, or a zone.
    replica_disk_soft_anti_affinity : bool, optional
        Whether they may share a disk.
    replica_auto_balance_disk_pressure_percentage : int, optional
        Use of a disk above which it is under pressure; 0 for never.
    storage_over_provisioning_percentage, storage_minimal_available_percentage : int, optional
        What may be promised, and what must stay free.
    storage_reserved_percentage_for_default_disk : int, optional
        Reserve of a ``Disk`` whose own is None.
    allow_empty_node_selector_volume, allow_empty_disk_selector_volume : bool, optional
        Whether a volume without selector may use tagged hosts, or disks.
    concurrent_replica_rebuild_per_node_limit : int, optional
        0 for no rebuilds and no balancing at all.
    replica_replenishment_wait_interval : int, optional
        Seconds to wait for a failed replica to return.
    disable_scheduling_on_cordoned_node : bool, optional
        Whether cordoned hosts get no replicas.
    order : {"node-then-zone", "zone-then-node"}
        Which stage of best-effort comes first: Longhorn's code asks nodes first, its design zones.
    scope : {"volume", "cluster"}
        "volume" follows Longhorn's rule, volume by volume; "cluster" makes one plan for all volumes
        by space and load.
    evenness : float, optional
        With the scope "cluster": the share of all data that it is worth to copy to bring the
        fullest disk down by the level itself; by default 0.1 for least effort and 1 for best.
    most_copied : float, optional
        With the scope "cluster": most data copied beyond required repairs, as a share of
        all. By default a plan copies less than Longhorn's own rule would, volume by volume, and
        disks are balanced within that; 0.25 balances them well.
    load : mapping of str to float, optional
        With the scope "cluster": what one replica costs its disk, by name of the volume and in any
        unit, to be balanced like space.

    Examples
    --------
    >>> Longhorn(replica_auto_balance="best_effort", order="zone_then_node").order
    'zone-then-node'
    """

    replica_auto_balance: AutoBalance | None = None
    replica_soft_anti_affinity: bool | None = None
    replica_zone_soft_anti_affinity: bool | None = None
    replica_disk_soft_anti_affinity: bool | None = None
    replica_auto_balance_disk_pressure_percentage: int | None = None
    storage_over_provisioning_percentage: int | None = None
    storage_minimal_available_percentage: int | None = None
    storage_reserved_percentage_for_default_disk: int | None = None
    allow_empty_node_selector_volume: bool | None = None
    allow_empty_disk_selector_volume: bool | None = None
    concurrent_replica_rebuild_per_node_limit: int | None = None
    replica_replenishment_wait_interval: int | None = None
    disable_scheduling_on_cordoned_node: bool | None = None
    order: Order = "node-then-zone"
    scope: Scope = "volume"
    evenness: float | None = None
    most_copied: float | None = None
    load: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("replica_auto_balance", "order"):
            object.__setattr__(self, name, spelled(getattr(self, name)))
        for one in fields(Settings):
            value = getattr(self, one.name)
            if value is not None:
                check_setting(faults, f"options.{one.name}", one.name, value)
        if self.order not in ("node-then-zone", "zone-then-node"):
            faults.add("options.order", self.order, "must be node-then-zone or zone-then-node")
        if self.scope not in ("volume", "cluster"):
            faults.add("options.scope", self.scope, "must be volume or cluster")
        for name in ("evenness", "most_copied"):
            if (value := getattr(self, name)) is not None:
                check_number(faults, f"options.{name}", value, greatest=MOST_IN_ALL)
        costs = {} if self.load is None else entries_of(faults, "options.load", self.load)
        for name, value in costs.items():
            check_number(faults, f"options.load[{name!r}]", value, greatest=MOST_IN_ALL)
        faults.raise_if_any()

    def kept_of(self, limits: tuple[str, ...]) -> tuple[str, ...]:
        """Return the limits that a plan of the whole cluster keeps; Longhorn's rule knows none."""
        return limits if self.scope == "cluster" else ()


def parsed_setting(name: str, value: Any) -> Any:
    """Turn the text of a setting into a truth value or a number, where it is one.

    >>> parsed_setting("storage_minimal_available_percentage", "25")
    25
    """
    if not isinstance(value, str):
        return value
    default = getattr(Settings, name)
    text = value.strip()
    if isinstance(default, bool):
        return TRUTH.get(text.lower(), value)
    if isinstance(default, int):
        return int(text) if text.isdecimal() else value
    return text


def check_setting(faults: FaultList, path: str, name: str, value: Any) -> None:
    """Note what is wrong with a setting."""
    default = getattr(Settings, name)
    if name == "replica_auto_balance":
        if value not in AUTO_BALANCE:
            faults.add(path, value, f"must be one of {', '.join(AUTO_BALANCE)}")
    elif isinstance(default, bool):
        if not isinstance(value, bool):
            faults.add(path, value, "must be true or false")
    elif isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST[name]:
        faults.add(path, value, f"must be a whole number from 0 to {MOST[name]}")


# the largest value of each number among the settings
MOST = {
    "replica_auto_balance_disk_pressure_percentage": 100,
    "storage_over_provisioning_percentage": 100_000,
    "storage_minimal_available_percentage": 100,
    "storage_reserved_percentage_for_default_disk": 100,
    "concurrent_replica_rebuild_per_node_limit": 1_000_000,
    "replica_replenishment_wait_interval": 1_000_000_000,
}
