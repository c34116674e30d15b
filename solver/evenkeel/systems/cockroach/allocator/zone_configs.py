"""Zone configurations of CockroachDB, and their conversion from and to rules of the model."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import Demands, partition_scope
from evenkeel.measure.rows import distinct_rows
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.rules import Amount, Rule, parse_expression
from evenkeel_kernels.cockroach.tables import Configs, Localities

FIELDS = ("num_replicas", "num_voters", "constraints", "voter_constraints", "lease_preferences")

MOST_REPLICAS = 2**15 - 1  # slots that a row can have


@dataclass(frozen=True)
class Constraint:
    """What one store must, or must not, carry.

    Parameters
    ----------
    required : bool
        False where it is prohibited.
    key : str
        A tier of the locality; "" for an attribute of the store or its host.
    value : str
        The tier's value, or the attribute.

    Examples
    --------
    >>> str(Constraint(True, "region", "us")), str(Constraint(False, "", "ssd"))
    ('+region=us', '-ssd')
    """

    required: bool
    key: str
    value: str

    def __str__(self) -> str:
        text = f"{self.key}={self.value}" if self.key else self.value
        return f"{'+' if self.required else '-'}{text}"

    def holds(self, locality: Sequence[tuple[str, str]], attributes: Iterable[str]) -> bool:
        """Whether a store with that locality and those attributes satisfies it.

        Parameters
        ----------
        locality : sequence of (str, str)
            Tiers, widest first.
        attributes : iterable of str
            Of the store and of its host.

        Returns
        -------
        bool
            True if it does.
        """
        carried = (self.key, self.value) in locality if self.key else self.value in attributes
        return carried == self.required


@dataclass(frozen=True)
class Conjunction:
    """Constraints that all hold on a store, and how many replicas are to be on such stores.

    Parameters
    ----------
    constraints : tuple of Constraint
        All of them.
    replicas : int
        How many; 0 for every one.

    Examples
    --------
    >>> Conjunction((Constraint(True, "region", "us"),), replicas=2).replicas
    2
    """

    constraints: tuple[Constraint, ...]
    replicas: int = 0


@dataclass(frozen=True)
class ZoneConfig:
    """What is wanted of a range.

    Parameters
    ----------
    num_replicas : int
        Replicas, non-voters included.
    num_voters : int
        Of these, voters; 0 for all of them.
    constraints : sequence of Conjunction
        For every replica. A store is valid if it satisfies one of them.
    voter_constraints : sequence of Conjunction
        For voters, on top.
    lease_preferences : sequence of tuple of Constraint
        Where the leaseholder should be, first choice first.

    Examples
    --------
    >>> ZoneConfig(num_replicas=5, num_voters=3).voters
    3
    """

    num_replicas: int = 3
    num_voters: int = 0
    constraints: Sequence[Conjunction] = ()
    voter_constraints: Sequence[Conjunction] = ()
    lease_preferences: Sequence[tuple[Constraint, ...]] = field(default=())

    @property
    def voters(self) -> int:
        """Voters wanted."""
        return self.num_voters or self.num_replicas


def parse_constraint(faults: FaultList, path: str, text: object) -> Constraint | None:
    """Read ``+region=us``, ``-ssd`` and the like."""
    if not isinstance(text, str):
        faults.add(path, text, "must be a string such as '+region=us' or '-ssd'")
        return None
    sign, body = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    parts = [part.strip() for part in body.split("=")]
    if len(parts) > 2 or not all(parts):
        faults.add(path, text, "is none of +key=value, -key=value, +attribute, -attribute")
        return None
    if not sign:
        return None
    key, value = parts if len(parts) == 2 else ("", parts[0])
    return Constraint(sign == "+", key, value)


def parse_conjunction(
    faults: FaultList, path: str, texts: Sequence[object], replicas: object = 0
) -> Conjunction:
    """Read constraints that hold together."""
    read = [parse_constraint(faults, f"{path}[{i}]", text) for i, text in enumerate(texts)]
    count = replicas
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        faults.add(path, replicas, "needs a number of replicas, 0 or more")
        count = 0
    return Conjunction(tuple(one for one in read if one is not None), count)


def read_configs(
    faults: FaultList,
    given: Sequence[Mapping[str, object] | ZoneConfig],
    tiers: set[tuple[str, str]],
) -> list[ZoneConfig]:
    """Read zone configurations and note what is wrong with them.

    >>> read = read_configs(FaultList(), [{}, {"num_replicas": 5}], set())
    >>> [config.num_replicas for config in read]
    [3, 5]
    """
    if isinstance(given, str | Mapping | ZoneConfig) or not len(given):
        faults.add("configs", given, "needs a list of one configuration or more")
        return [ZoneConfig()]
    read = [parse_config(faults, f"configs[{q}]", one) for q, one in enumerate(given)]
    for q, one in enumerate(read):
        check_config(faults, f"configs[{q}]", one, tiers)
        if one.num_replicas > MOST_REPLICAS:
            path = f"configs[{q}].num_replicas"
            faults.add(path, one.num_replicas, f"must be at most {MOST_REPLICAS:,}")
    return read


def parse_config(
    faults: FaultList, path: str, given: Mapping[str, object] | ZoneConfig
) -> ZoneConfig:
    """Read a zone configuration."""
    if isinstance(given, ZoneConfig):
        return given
    if not isinstance(given, Mapping):
        faults.add(path, given, f"needs a mapping of {', '.join(FIELDS)}")
        return ZoneConfig()
    for name in given.keys() - set(FIELDS):
        faults.add(f"{path}.{name}", given[name], f"unknown field; known: {', '.join(FIELDS)}")
    numbers = {}
    for name, default in (("num_replicas", 3), ("num_voters", 0)):
        number = given.get(name, default)
        if not isinstance(number, int) or isinstance(number, bool):
            faults.add(f"{path}.{name}", number, "needs a whole number")
            number = default
        numbers[name] = number
    preferences = given.get("lease_preferences", ())
    if not isinstance(preferences, list | tuple):
        faults.add(f"{path}.lease_preferences", preferences, "needs a list of lists of constraints")
        preferences = ()
    lead: list[tuple[Constraint, ...]] = []
    for i, texts in enumerate(preferences):
        listed = texts if isinstance(texts, list | tuple) else [texts]
        where = f"{path}.lease_preferences[{i}]"
        _check_signs(faults, where, listed)
        lead.append(parse_conjunction(faults, where, listed).constraints)
    return ZoneConfig(
        num_replicas=numbers["num_replicas"],
        num_voters=numbers["num_voters"],
        constraints=_table(faults, f"{path}.constraints", given.get("constraints", ())),
        voter_constraints=_table(
            faults, f"{path}.voter_constraints", given.get("voter_constraints", ())
        ),
        lease_preferences=lead,
    )


def _table(faults: FaultList, path: str, given: object) -> list[Conjunction]:
    """Read a list of texts, or a mapping from texts to numbers."""
    if isinstance(given, Mapping):
        found = []
        for i, (texts, number) in enumerate(given.items()):
            listed = (
                [one.strip() for one in texts.split(",")] if isinstance(texts, str) else [texts]
            )
            _check_signs(faults, f"{path}[{i}]", listed)
            found.append(parse_conjunction(faults, f"{path}[{i}]", listed, number))
            if number == 0:
                faults.add(f"{path}[{i}]", number, "must apply to at least one replica")
        return found
    if not isinstance(given, list | tuple):
        faults.add(path, given, "needs a list of constraints, or a mapping to numbers")
        return []
    _check_signs(faults, path, given)
    return [parse_conjunction(faults, path, given)] if given else []


def _check_signs(faults: FaultList, path: str, texts: Sequence[object]) -> None:
    """Constraints without a sign were preferences in old releases; new ones refuse them."""
    for i, text in enumerate(texts):
        if isinstance(text, str) and text and text[0] not in "+-":
            faults.add(f"{path}[{i}]", text, "needs a + where it is required, a - where prohibited")


def check_config(
    faults: FaultList, path: str, config: ZoneConfig, tiers: Iterable[tuple[str, str]]
) -> None:
    """Note what cannot be met, or is asked of tiers that no store has.

    >>> found = FaultList()
    >>> check_config(found, "configs[0]", ZoneConfig(num_replicas=3, num_voters=4), [])
    >>> str(found.faults[0])
    'configs[0].num_voters: must not be above num_replicas, 3 (got 4)'
    """
    known = set(tiers)
    if config.num_replicas < 1:
        faults.add(f"{path}.num_replicas", config.num_replicas, "must be at least 1")
    if config.num_voters < 0:
        faults.add(f"{path}.num_voters", config.num_voters, "must not be negative")
    if config.num_voters > config.num_replicas:
        limit = f"must not be above num_replicas, {config.num_replicas}"
        faults.add(f"{path}.num_voters", config.num_voters, limit)
    for name, listed, most in (
        ("constraints", config.constraints, config.num_replicas),
        ("voter_constraints", config.voter_constraints, config.voters),
    ):
        asked = sum(one.replicas for one in listed)
        if asked > most:
            faults.add(f"{path}.{name}", asked, f"asks for more replicas than the {most} there are")
        for i, one in enumerate(listed):
            _check_tiers(faults, f"{path}.{name}[{i}]", one.constraints, known)
    for i, preferred in enumerate(config.lease_preferences):
        _check_tiers(faults, f"{path}.lease_preferences[{i}]", preferred, known)


def _check_tiers(
    faults: FaultList, path: str, constraints: Iterable[Constraint], known: set[tuple[str, str]]
) -> None:
    names = sorted({key for key, _ in known})
    for one in constraints:
        if one.key and one.key not in names:
            faults.add(path, str(one), f"no store has a tier {one.key!r}; known: {names}")
        elif one.key and one.required and (one.key, one.value) not in known:
            faults.add(path, str(one), f"no store has {one.key}={one.value}")


# tier whose domains are CockroachDB's nodes; without it every node of the cluster is one
HOST = "host"


def zone_configs_of(cluster: Cluster) -> tuple[list[ZoneConfig], NDArray[np.int32]]:
    """Return zone configurations for the rules of a cluster's partitions."""
    # limits per domain have no counterpart: diversity is what spreads replicas there
    scope = partition_scope(cluster)
    partitions = cluster.partitions
    keys = np.stack([scope.rule, partitions.replicas, partitions.voters], axis=1)
    if len(keys) == 0:
        return [], np.zeros(0, np.int32)
    distinct, config = distinct_rows(keys.astype(np.int64))
    read = [
        _config(cluster, scope.demands[q], replicas, voters)
        for q, replicas, voters in distinct.tolist()
    ]
    return read, config.astype(np.int32)


def _config(cluster: Cluster, demands: Demands, replicas: int, voters: int) -> ZoneConfig:
    place: dict[str, int] = {}
    voters_place: dict[str, int] = {}
    for rule in demands.written:
        place |= rule.place
        voters_place |= rule.voters_place
    return ZoneConfig(
        num_replicas=replicas,
        num_voters=voters,
        constraints=_conjunctions(cluster, demands.required(voters=False), place, replicas),
        voter_constraints=_conjunctions(
            cluster, demands.required(voters=True), voters_place, voters
        ),
        lease_preferences=[_constraints(cluster, [text]) for text in demands.lead],
    )


def _conjunctions(
    cluster: Cluster, require: Sequence[str], place: Mapping[str, int], total: int
) -> list[Conjunction]:
    """Put common requirements into every conjunction, and into one for the remaining replicas."""
    counted = [
        Conjunction(_constraints(cluster, [*require, text]), count) for text, count in place.items()
    ]
    if not require:
        return counted
    if not counted:
        return [Conjunction(_constraints(cluster, require))]
    rest = total - sum(place.values())
    return [*counted, Conjunction(_constraints(cluster, require), rest)] if rest > 0 else counted


def _constraints(cluster: Cluster, texts: Sequence[str]) -> tuple[Constraint, ...]:
    """Read expressions; labels that are no tier stand for attributes."""
    found = []
    for text in texts:
        for test in parse_expression(FaultList(), "", text):
            if test.value is None:
                found.append(Constraint(test.wanted, "", test.key))
            elif test.key in cluster.topology.tiers and test.key != HOST:
                found.append(Constraint(test.wanted, test.key, test.value))
            else:
                found.append(Constraint(test.wanted, "", f"{test.key}={test.value}"))
    return tuple(found)


def rule_of(
    config: ZoneConfig, spread: Mapping[str, Amount], tiers: Collection[tuple[str, str]]
) -> Rule:
    """Return a zone configuration as a rule of the model.

    >>> us = Constraint(True, "region", "us")
    >>> hdd = Constraint(False, "", "hdd")
    >>> rule = rule_of(ZoneConfig(5, 3, [Conjunction((us, hdd), 2)], [Conjunction((us,))]), {},
    ...                [("region", "us")])
    >>> rule.place, rule.voters_require, rule.lead
    ({'region=us,-hdd': 2}, ['region=us'], [])
    """
    require, place = _wanted(config.constraints, tiers)
    voters_require, voters_place = _wanted(config.voter_constraints, tiers)
    lead = [_text(one, tiers) for one in config.lease_preferences if _is_met(one, tiers)]
    return Rule(
        require=require,
        voters_require=voters_require,
        place=place,
        voters_place=voters_place,
        lead=[text for text in lead if text],
        spread=spread,
    )


def attributes_of(configs: Iterable[ZoneConfig]) -> set[str]:
    """Return the attributes that configurations speak of.

    >>> attributes_of([ZoneConfig(lease_preferences=[(Constraint(True, "", "ssd"),)])])
    {'ssd'}
    """
    found = set()
    for config in configs:
        counted = (*config.constraints, *config.voter_constraints)
        for listed in (*(one.constraints for one in counted), *config.lease_preferences):
            found |= {one.value for one in listed if not one.key}
    return found


def _wanted(
    listed: Sequence[Conjunction], tiers: Collection[tuple[str, str]]
) -> tuple[list[str], dict[str, int]]:
    """What every replica must meet, and what so many of them must."""
    every: list[str] = []
    place: dict[str, int] = {}
    for one in listed:
        text = _text(one.constraints, tiers)
        if text and one.replicas:
            place[text] = place.get(text, 0) + one.replicas
        elif text:
            every.append(text)
    # of several for every replica a store need satisfy only one, which no rule can express
    return (every if len(listed) == 1 else []), place


def _text(constraints: Sequence[Constraint], tiers: Collection[tuple[str, str]]) -> str:
    """Several constraints in one expression."""
    return ",".join(
        str(one) if not one.key
        else f"{one.key}{'=' if one.required else '!='}{one.value}"
        if (one.key, one.value) in tiers
        else f"+{nowhere((one.key, one.value))}"
        for one in constraints
        if one.required or not one.key or (one.key, one.value) in tiers
    )  # fmt: skip


def _is_met(constraints: Sequence[Constraint], tiers: Collection[tuple[str, str]]) -> bool:
    """Whether there is each place that constraints require: leases are preferred nowhere else."""
    return all((one.key, one.value) in tiers for one in constraints if one.required and one.key)


def nowhere(place: tuple[str, str]) -> str:
    """Return the tag that stands for a place that no store is in: no node carries it.

    >>> nowhere(("region", "us"))
    'region:us'
    """
    return ":".join(place)


Tiers = tuple[tuple[str, str], ...]  # keys and values of a locality, widest first


@dataclass(frozen=True)
class Site:
    """What never changes about a store."""

    host: int
    locality: Tiers = ()
    attributes: frozenset[str] = frozenset()

    @property
    def values(self) -> tuple[str, ...]:
        """Values of its tiers; the last tier is the host itself."""
        return (*(value for _, value in self.locality), str(self.host))


def diversity(a: Sequence[str], b: Sequence[str]) -> float:
    """Return how far apart two localities are."""
    # CockroachDB, ``pkg/roachpb/metadata.go``, ``Locality.DiversityScore``
    least = min(len(a), len(b))
    for i in range(least):
        if a[i] != b[i]:
            return (least - i) / least
    return 0.0 if len(a) == len(b) else 1.0 / (least + 1)


def localities_of(
    sites: Sequence[Site], conjunctions: Sequence[tuple[Constraint, ...]]
) -> Localities:
    """Sort stores into classes, and work out what concerns classes once for all."""
    taken = {value for site in sites for _, value in site.locality}
    answers: dict[tuple[Tiers, frozenset[str]], tuple[bool, ...]] = {}
    number: dict[Hashable, int] = {}
    firsts: list[int] = []
    alike = np.zeros(len(sites), np.int64)
    for s, site in enumerate(sites):
        kind = (site.locality, site.attributes)
        if kind not in answers:
            answers[kind] = tuple(
                all(one.holds(site.locality, site.attributes) for one in conjunction)
                for conjunction in conjunctions
            )
        # a host's id counts by itself where it could be taken for another tier's value
        own = str(site.host) if str(site.host) in taken else ""
        key = (site.values[:-1], answers[kind], own)
        if key not in number:
            number[key] = len(number)
            firsts.append(s)
        alike[s] = number[key]
    matches = np.zeros((len(conjunctions), len(firsts)), np.bool_)
    for a, s in enumerate(firsts):
        matches[:, a] = answers[(sites[s].locality, sites[s].attributes)]
    ids = np.array([site.host for site in sites], np.int64)
    host = np.unique(ids, return_inverse=True)[1].astype(np.int64)
    return Localities(
        host,
        *_listed(host),
        alike,
        *_listed(alike),
        _pairs([sites[s].values for s in firsts]),
        matches,
    )


def _listed(label: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the stores of each label begin, and these stores."""
    count = np.bincount(label, minlength=1)
    first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    return first, np.argsort(label, kind="stable").astype(np.int64)


def _pairs(values: Sequence[tuple[str, ...]]) -> NDArray[np.float64]:
    """Diversity of two stores of each pair of classes, on different hosts."""
    classes = len(values)
    deepest = max(map(len, values), default=0)
    code: dict[Hashable, int] = {}
    table = np.full((classes, deepest), -1, np.int64)
    for a, row in enumerate(values):
        for i, value in enumerate(row[:-1]):
            table[a, i] = code.setdefault(value, len(code))
    for a, row in enumerate(values):
        # no class shares its hosts, unless an id happens to be the value of a tier
        table[a, len(row) - 1] = code.get(row[-1], -2 - a)
    depth = np.array([len(row) for row in values], np.int64)
    least = np.minimum(depth[:, None], depth)
    same = np.ones((classes, classes), bool)
    pair = np.where(depth[:, None] == depth, 0.0, 1.0 / (least + 1))
    for i in range(deepest):
        differs = same & (table[:, None, i] != table[:, i]) & (i < least)
        pair[differs] = ((least - i) / least)[differs]
        same &= ~differs
    np.fill_diagonal(pair, 1.0 / depth)
    return np.ascontiguousarray(pair)


def configs_of(wanted: Sequence[ZoneConfig]) -> tuple[Configs, list[tuple[Constraint, ...]]]:
    """Lay configurations out for kernels."""
    number: dict[tuple[Constraint, ...], int] = {}

    def row_of(constraints: tuple[Constraint, ...]) -> int:
        return number.setdefault(constraints, len(number))

    every = [[(row_of(one.constraints), one.replicas) for one in c.constraints] for c in wanted]
    voters = [
        [(row_of(one.constraints), one.replicas) for one in c.voter_constraints] for c in wanted
    ]
    lead = [[(row_of(one), 0) for one in c.lease_preferences] for c in wanted]
    replicas = np.array([c.num_replicas for c in wanted], np.int32)
    voting = np.array([c.voters for c in wanted], np.int32)
    first, row, count = _flat(every)
    voter_first, voter_row, voter_count = _flat(voters)
    lead_first, lead_row, _ = _flat(lead)
    configs = Configs(
        replicas, voting, replicas.copy(), voting.copy(), first, row, count,
        voter_first, voter_row, voter_count, lead_first, lead_row,
    )  # fmt: skip
    return configs, list(number)


def _flat(
    rows: Sequence[Sequence[tuple[int, int]]],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    flat = np.array([pair for row in rows for pair in row], np.int32).reshape(-1, 2)
    return first, np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
