"""Zone configurations: what is wanted of a range, as CockroachDB writes it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evenkeel.model.errors import FaultList


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
    """Read ``+region=us``, ``-ssd`` and the like.

    Parameters
    ----------
    faults : FaultList
        Where a text that does not parse is noted.
    path : str
        Where the text stands.
    text : str
        A sign, then ``key=value`` or an attribute. Without a sign it is what old releases took for
        a preference, which counts for nothing.

    Returns
    -------
    Constraint or None
        None for a preference, or after a fault.

    Examples
    --------
    >>> parse_constraint(FaultList(), "constraints[0]", "-region=us")
    Constraint(required=False, key='region', value='us')
    """
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
    """Read constraints that hold together.

    Parameters
    ----------
    faults : FaultList
        Where what does not parse is noted.
    path : str
        Where they stand.
    texts : sequence of str
        The constraints.
    replicas : int, optional
        How many replicas are to satisfy them; 0 for every one.

    Returns
    -------
    Conjunction
        Without what did not parse.

    Examples
    --------
    >>> found = parse_conjunction(FaultList(), "constraints[0]", ["+region=us", "+ssd"], 2)
    >>> [str(one) for one in found.constraints], found.replicas
    (['+region=us', '+ssd'], 2)
    """
    read = [parse_constraint(faults, f"{path}[{i}]", text) for i, text in enumerate(texts)]
    count = replicas
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        faults.add(path, replicas, "needs a number of replicas, 0 or more")
        count = 0
    return Conjunction(tuple(one for one in read if one is not None), count)


def check_config(faults: FaultList, path: str, config: ZoneConfig, tiers: Iterable[str]) -> None:
    """Note what cannot be met, or is asked of tiers that no store has.

    Parameters
    ----------
    faults : FaultList
        Where faults are noted.
    path : str
        Where the configuration stands.
    config : ZoneConfig
        The configuration.
    tiers : iterable of str
        Names of the tiers that stores have.

    Examples
    --------
    >>> found = FaultList()
    >>> check_config(found, "configs[0]", ZoneConfig(num_replicas=3, num_voters=4), ["region"])
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
    faults: FaultList, path: str, constraints: Iterable[Constraint], known: set[str]
) -> None:
    for one in constraints:
        if one.key and one.key not in known:
            faults.add(path, str(one), f"no store has a tier {one.key!r}; known: {sorted(known)}")
