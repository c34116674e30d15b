"""Allocation settings: filters, tiers, and the nodes that may hold a shard."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import quoted
from evenkeel.systems.elasticsearch.documents import Node

TIERS = "include._tier_preference"
TIER = "_tier"
FROZEN = "data_frozen"
PARTIAL = "index.store.snapshot.partial"
SEARCH, WARM = "search", "warm"  # roles of OpenSearch; there ``warm`` is no tier of data
# roles of data by the letters that ``_cat`` prints
ROLES = {
    "d": "data", "s": "data_content", "h": "data_hot", "w": "data_warm", "c": "data_cold",
    "f": FROZEN,
}  # fmt: skip

EXPAND = "index.auto_expand_replicas"

Settings = Mapping[str, tuple[str, Any]]


@dataclass(frozen=True)
class DataNode:
    """A node that may hold shards."""

    name: str
    key: str
    host: str = ""
    ip: str = ""
    roles: frozenset[str] | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    version: tuple[int, ...] = ()  # its release; empty if that is not known
    strange: bool = False  # whether shards are there though ``_nodes`` has no such data node

    @classmethod
    def of(cls, key: str, node: Node) -> "DataNode":
        """Return a node that ``_nodes`` has."""
        roles = None if node.roles is None else frozenset(node.roles)
        version = tuple(int(part) for part in re.findall(r"[0-9]{1,4}", node.version)[:3])
        own = tuple(node.attributes.items())
        return cls(node.name, key, node.host, node.ip, roles, own, version)

    @property
    def holds(self) -> bool:
        """Whether it holds data; releases before 5 mark other nodes by attributes."""
        if self.roles is None:
            own = dict(self.attributes)
            return own.get("data") != "false" and own.get("client") != "true"
        return bool(self._data_roles or self.only_remote)

    @property
    def only_frozen(self) -> bool:
        """Whether it holds indices of the frozen tier and no others."""
        return self._data_roles == {FROZEN}

    @property
    def only_remote(self) -> bool:
        """Whether it holds search replicas and what is stored remotely, by OpenSearch's roles."""
        return bool({SEARCH, WARM} & (self.roles or set())) and not self._data_roles

    @property
    def searches(self) -> bool:
        """Whether it is known to hold search replicas."""
        return SEARCH in (self.roles or ())

    @property
    def _data_roles(self) -> set[str]:
        return {role for role in self.roles or () if role.split("_")[0] == "data"}

    def values(self, attribute: str) -> Sequence[str]:
        """Return the values that a filter on an attribute matches."""
        own = {
            "_name": (self.name,), "_id": (self.key,), "_ip": (self.ip,),
            "_host": (self.host, self.ip), "_host_ip": (self.ip,), "_publish_ip": (self.ip,),
        }  # fmt: skip
        if attribute in own:
            return [one for one in own[attribute] if one]
        return [value for key, value in self.attributes if key == attribute]


def roles_of(row: Mapping[str, str | None]) -> frozenset[str] | None:
    """Return the roles of a node by the letters of a table's column; None where there is none."""
    letters = row.get("node.role") or row.get("r")
    return None if not letters else frozenset(ROLES.get(one, one) for one in letters)


def words(value: Any) -> list[str]:
    """Return the words of a setting that is a list, or a text with commas."""
    if isinstance(value, list):
        return [str(one).strip() for one in value if str(one).strip()]
    return [one.strip() for one in str(value or "").split(",") if one.strip()]


def filtered(
    settings: Settings, prefix: str, nodes: Sequence[DataNode]
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return the nodes that filters let hold shards, (N,) bool, and the filters that close any."""
    mask = np.ones(len(nodes), np.bool_)
    included: NDArray[np.bool_] | None = None
    closing = []
    for name, (_, value) in settings.items():
        kind, _, attribute = name.removeprefix(prefix).partition(".")
        wanted = words(value)
        if not name.startswith(prefix) or not wanted or not attribute:
            continue
        if name.endswith(TIERS):
            open_ = _of_tier(wanted, nodes)
        elif kind in ("require", "include", "exclude") and attribute == TIER:
            open_ = np.array([_in_tiers(node, wanted, kind) for node in nodes], np.bool_)
        elif kind in ("require", "include", "exclude"):
            open_ = np.array([_matches(node, attribute, wanted, kind) for node in nodes], np.bool_)
        else:
            continue
        if kind == "exclude" and attribute != TIER:
            open_ = ~open_
        if not open_.all():
            closing.append(f"{name}: {' or '.join(wanted)}")
        if kind == "include" and attribute != TIER and not name.endswith(TIERS):
            included = open_ if included is None else included | open_
        else:
            mask &= open_
    return (mask if included is None else mask & included), closing


def of_kind(settings: Settings, nodes: Sequence[DataNode], default: bool) -> NDArray[np.bool_]:
    """Return the nodes that hold an index of this kind, (N,) bool: frozen, remote, or any other."""
    # frozen indices, snapshots mounted in part, are all that a node of that tier alone takes
    frozen = np.array([node.only_frozen for node in nodes], np.bool_)
    # Nodes of OpenSearch that only search, or are warm, take what is stored remotely, which goes
    # nowhere else: to warm ones where there are any, as in 3.0, and before to those that search.
    alone = np.array([node.only_remote for node in nodes], np.bool_)
    role = WARM if any(WARM in (node.roles or ()) for node in nodes) else SEARCH
    remote = np.array([role in (node.roles or ()) for node in nodes], np.bool_)
    # ``default`` is whether an index without known settings counts as frozen or remote
    if not settings:
        return frozen | (alone & remote) if default else ~(frozen | alone)
    if is_remote(settings):
        return remote if remote.any() else ~frozen
    return ~alone & np.logical_or(~frozen, is_true(settings, PARTIAL, False))


def is_remote(settings: Settings) -> bool:
    """Whether an index of OpenSearch is a searchable snapshot, or warm."""
    stored = str(settings.get("index.store.type", ("", ""))[1])
    return stored == "remote_snapshot" or is_true(settings, "index.warm", False)


def is_everywhere(settings: Settings) -> bool:
    """Whether an index has a copy on each node, for which nothing is kept apart."""
    return str(settings.get(EXPAND, ("", ""))[1]).endswith("-all")


def _matches(node: DataNode, attribute: str, wanted: Sequence[str], kind: str) -> bool:
    own = node.values(attribute)
    hits = [any(_alike(value, pattern) for value in own) for pattern in wanted]
    return all(hits) if kind == "require" else any(hits)


def _alike(value: str, pattern: str) -> bool:
    """Whether a value fits a pattern in which a star stands for anything."""
    if "*" not in pattern:
        return value == pattern
    return fnmatchcase(value, re.sub(r"[\[?]", "[\\g<0>]", re.sub(r"\*+", "*", pattern[:1000])))


def _of_tier(wanted: Sequence[str], nodes: Sequence[DataNode]) -> NDArray[np.bool_]:
    """Return the nodes of the first tier that has any."""
    for tier in wanted:
        found = [node.roles is None or bool({tier, "data"} & node.roles) for node in nodes]
        if any(found):
            return np.array(found, np.bool_)
    return np.zeros(len(nodes), np.bool_)


def _in_tiers(node: DataNode, wanted: Sequence[str], kind: str) -> bool:
    """Whether a filter by tiers lets a node hold shards: by its roles, ``data`` being all tiers."""
    if node.roles is None:
        return True
    hits = ["data" in node.roles or tier in node.roles for tier in wanted]
    if kind == "exclude":
        return not any(hits)
    return all(hits) if kind == "require" else any(hits)


def whole(faults: FaultList, settings: Settings, name: str) -> int:
    """Return a setting that is a number; -1 for none, and for no limit."""
    at, value = settings.get(name, ("", None))
    if value is None or str(value) == "-1":
        return -1
    if not re.fullmatch("[0-9]{1,9}", str(value)):
        faults.add(at, quoted(value), "must be a whole number, or -1")
        return -1
    return int(value)


def is_true(settings: Settings, name: str, default: bool) -> bool:
    """Return a setting that is true or false."""
    return str(settings.get(name, ("", default))[1]).lower() == "true"
