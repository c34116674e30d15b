"""Rules: hard and soft constraints that partitions or groups share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.nodes import Nodes
from evenkeel.model.reading.keywords import did_you_mean, known_fields
from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.model.topology import NODE_TIER, Topology

# fields of a rule with what the nodes of all replicas must meet: whether voters alone count
REQUIREMENTS = {"require": False, "voters_require": True}

# fields with numbers of replicas wanted on some nodes: whether voters alone count
COUNTS = {"place": False, "voters_place": True}

# a number, or a soft one: ``(1, "soft")``; with a weight: ``(1, "soft", 5.0)``; None lifts a
# default
Amount = int | None | tuple[int, Literal["hard", "soft"]] | tuple[int, Literal["soft"], float]


@dataclass(frozen=True)
class Condition:
    """One condition on a node: it carries a tag or label, or does not."""

    key: str  # tag, or name of a tier or attribute
    value: str | None  # label wanted; None for a tag
    wanted: bool  # false turns the condition round

    def __str__(self) -> str:
        if self.value is None:
            return f"{'+' if self.wanted else '-'}{self.key}"
        return f"{self.key}{'=' if self.wanted else '!='}{self.value}"


def parse_expression(faults: FaultList, path: str, text: object) -> tuple[Condition, ...]:
    """Read ``"zone!=z9,+ssd"``: tests joined by commas, all of which must hold.

    >>> [str(t) for t in parse_expression(FaultList(), "require", "zone!=z9, +ssd")]
    ['zone!=z9', '+ssd']
    """
    if not isinstance(text, str):
        faults.add(path, text, "must be a string such as 'zone=z1' or '+ssd'")
        return ()
    tests = []
    for part in (piece.strip() for piece in text.split(",")):
        test = None
        if part[:1] in ("+", "-") and len(part) > 1 and "=" not in part:
            test = Condition(part[1:].strip(), None, part[0] == "+")
        elif "!=" in part:
            key, value = part.split("!=", 1)
            test = Condition(key.strip(), value.strip(), False)
        elif "=" in part:
            key, value = part.split("=", 1)
            test = Condition(key.strip(), value.strip(), True)
        if test is None or not test.key or test.value == "" or "=" in (test.value or ""):
            faults.add(path, text, f"{part!r} is none of +tag, -tag, key=value, key!=value")
            return ()
        tests.append(test)
    return tuple(tests)


def mask_of(
    tests: Iterable[Condition], nodes: Nodes, topology: Topology, faults: FaultList, path: str
) -> NDArray[np.bool_]:
    """Return the nodes on which every test holds, (N,) bool."""
    mask = np.ones(len(nodes), bool)
    for test in tests:
        if test.value is None:
            if test.key not in nodes.tags:
                known = some_of([*nodes.tags], printable, 8)
                message = f"no node carries the tag {test.key!r}; known: {known or 'none'}"
                faults.add(path, str(test), message)
            holds = nodes.tags.get(test.key, np.zeros(len(nodes), bool))
        elif test.key in topology.tiers:
            row = topology.tiers.index(test.key)
            holds = _labelled(topology.label[row], topology.label_names[row], test, faults, path)
        elif test.key in nodes.attributes:
            holds = _labelled(*nodes.attributes[test.key], test, faults, path)
        elif test.key == "node":
            at = nodes.names.index(test.value) if test.value in nodes.names else -1
            if at < 0:
                faults.add(path, str(test), f"there is no node {test.value!r}")
            holds = np.arange(len(nodes)) == at
        else:
            named = [*topology.tiers, *nodes.attributes]
            known = some_of(named, printable, 8) or "none"
            hint = did_you_mean(test.key, named)
            faults.add(path, str(test), f"no tier or attribute {test.key!r}; known: {known}{hint}")
            continue
        mask &= holds if test.wanted else ~holds
    return mask


def nodes_meeting(texts: Iterable[str], nodes: Nodes, topology: Topology) -> NDArray[np.bool_]:
    """Return the nodes on which every test of every expression holds, (N,) bool."""
    meets, silent = np.ones(len(nodes), bool), FaultList()
    for text in texts:
        tests = parse_expression(silent, "", text)
        meets &= mask_of(tests, nodes, topology, silent, "")
    return meets


def domains_left(rule: "Rule", nodes: Nodes, topology: Topology, tier: str) -> list[int]:
    """Return the domains of a tier, or of ``"node"``, with nodes that take replicas of a rule."""
    # none where such a node has no domain, or for a name that is no tier
    if tier not in (*topology.tiers, NODE_TIER):
        return []
    takes = nodes.serves & nodes.accepts & nodes_meeting(rule.require, nodes, topology)
    domain = np.unique(topology.domain_with_nodes[topology.tier_index(tier)][takes])
    return [] if (domain < 0).any() else domain.tolist()


def _labelled(
    codes: NDArray[np.int32],
    meaning: tuple[str, ...],
    test: Condition,
    faults: FaultList,
    path: str,
) -> NDArray[np.bool_]:
    if test.value not in meaning:
        known = some_of(meaning, printable, 8)
        faults.add(path, str(test), f"no node has {test.key}={test.value}; known: {known}")
        return np.zeros(len(codes), bool)
    return np.equal(codes, meaning.index(test.value))


@known_fields
@dataclass(frozen=True)
class Rule:
    """Constraints that partitions, or a group as a whole, share.

    Limits on domains (``spread`` to ``skew``) may be soft. A soft limit never keeps a replica from
    being placed, and yields to every hard rule; to goals only with ``Goals(soft_yield=True)``.
    Where soft limits cannot all hold, the placement with the least sum of weight x amount beyond
    the limit is sought; the weight is 1 unless it is given, as in ``(1, "soft", 5.0)``. A
    ``Cost`` does not price them: they bind as they do with ``Goals``.

    Parameters
    ----------
    require, voters_require : sequence of str
        Expressions that the node of every replica, or of every voter, must meet.
    place, voters_place : mapping of str to int
        At least so many replicas (voters) on nodes that meet the expression.
    lead : sequence of str
        Where the leader should be, first choice first.
    spread : mapping of str to Amount
        At most so many replicas per domain of a tier. One per node is the default:
        ``{"node": None}`` lifts it.
    min_domains, max_domains : mapping of str to Amount
        At least, or at most, so many distinct domains of a tier.
    skew : mapping of str to Amount
        Greatest difference between the fullest and the emptiest eligible domain of a tier.

    Examples
    --------
    >>> rule = Rule(require=["zone!=z9"], spread={"zone": (1, "soft", 5.0)})
    >>> [str(limit) for limit in rule.limits()]
    ['spread zone 1 (soft)', 'spread node 1']
    """

    require: Sequence[str] = ()
    voters_require: Sequence[str] = ()
    place: Mapping[str, int] = field(default_factory=dict)
    voters_place: Mapping[str, int] = field(default_factory=dict)
    lead: Sequence[str] = ()
    spread: Mapping[str, Amount] = field(default_factory=dict)
    min_domains: Mapping[str, Amount] = field(default_factory=dict)
    max_domains: Mapping[str, Amount] = field(default_factory=dict)
    skew: Mapping[str, Amount] = field(default_factory=dict)

    def terms(self) -> "list[Term]":
        """Return where it wants replicas, in the order of ``REQUIREMENTS`` and ``COUNTS``.

        Returns
        -------
        list of Term
            Requirements of every replica, then numbers of them, as written.

        Examples
        --------
        >>> [str(term) for term in Rule(require=["+ssd"], voters_place={"zone=a": 1}).terms()]
        ['require +ssd', 'voters place 1 on zone=a']
        """
        found = [
            Term(kind, text, voters)
            for kind, voters in REQUIREMENTS.items()
            for text in getattr(self, kind)
        ]
        found += [
            Term(kind, text, voters, least)
            for kind, voters in COUNTS.items()
            for text, least in getattr(self, kind).items()
        ]
        return found

    def limits(self, *, per_node: bool = True) -> "list[Limit]":
        """Return the limits it sets, the default of one replica per node included.

        Parameters
        ----------
        per_node : bool, optional
            Whether the default applies; a rule that binds a group as a whole has none.

        Returns
        -------
        list of Limit
            In the order spread, min_domains, max_domains, skew, as written.
        """
        spread: dict[str, Amount] = dict(self.spread)
        if per_node:
            spread.setdefault("node", 1)
        found = []
        for kind in LIMITS:
            amounts: Mapping[str, Amount] = spread if kind == "spread" else getattr(self, kind)
            for tier, amount in amounts.items():
                if isinstance(amount, tuple):
                    weight = float(amount[2]) if len(amount) == 3 else 1.0
                    found.append(Limit(tier, kind, amount[0], amount[1] == "hard", weight))
                elif amount is not None:
                    found.append(Limit(tier, kind, amount, True))
        return found


LimitKind = Literal["spread", "min_domains", "max_domains", "skew"]

# fields of a rule with limits: whether the amount is the most that is allowed
LIMITS: dict[LimitKind, bool] = {
    "spread": True, "min_domains": False, "max_domains": True, "skew": True,
}  # fmt: skip


@dataclass(frozen=True)
class Term:
    """One demand that replicas are on the nodes that meet an expression.

    Parameters
    ----------
    kind : str
        Field of the rule, which is also the kind of violation.
    text : str
        The expression.
    voters : bool
        Whether voters alone count.
    least : int
        How many replicas must be there; -1 for all of them.

    Examples
    --------
    >>> import evenkeel as ek
    >>> ek.Rule(place={"zone=a": 2}).terms()[0]
    Term(kind='place', text='zone=a', voters=False, least=2)
    """

    kind: str
    text: str
    voters: bool
    least: int = -1

    @property
    def for_all(self) -> bool:
        """Whether no replica may be elsewhere."""
        return self.least < 0

    def __str__(self) -> str:
        number = "" if self.for_all else f"{self.least} on "
        return f"{self.kind.replace('_', ' ')} {number}{readable(self.text)}"


@dataclass(frozen=True)
class Limit:
    """One limit on how a partition's, or a group's, replicas stand in the domains of a tier.

    Parameters
    ----------
    tier : str
        Tier, or "node".
    kind : str
        "spread" (at most per domain), "min_domains", "max_domains" or "skew".
    amount : int
        The number.
    hard : bool
        Whether it must hold.
    weight : float
        What each unit beyond a soft limit costs, against other soft limits.

    Examples
    --------
    >>> import evenkeel as ek
    >>> ek.Rule(spread={"zone": (1, "soft")}).limits()[0]
    Limit(tier='zone', kind='spread', amount=1, hard=False, weight=1.0)
    """

    tier: str
    kind: LimitKind
    amount: int
    hard: bool
    weight: float = 1.0

    def __str__(self) -> str:
        strength = "" if self.hard else " (soft)"
        return f"{self.kind} {self.tier} {self.amount}{strength}"


# characters, besides letters, digits and ``_.-~``, that mean nothing in an expression
PLAIN = " /:@()[]{}.*"


def word(text: str) -> str:
    """Return a name as a word that an expression can hold; no two names become the same."""
    kept = quote(text, safe=PLAIN, errors="surrogatepass")
    return kept if kept == kept.strip() else quote(text, safe="", errors="surrogatepass")


def readable(text: str) -> str:
    """Return an expression to be read, with the names that ``word`` escaped."""
    return unquote(text, errors="surrogatepass")
