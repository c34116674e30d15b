"""Zone configurations as rules of the model, so that the audit and other methods keep them too."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from evenkeel.model.rules import Amount, Rule
from evenkeel.systems.cockroach.allocator.zone_configs.documents import (
    Conjunction,
    Constraint,
    ZoneConfig,
)


def rule_of(
    config: ZoneConfig, spread: Mapping[str, Amount], tiers: Collection[tuple[str, str]]
) -> Rule:
    """Say what a zone configuration wants in the words of the model.

    Constraints for every replica become requirements, those with numbers places, lease preferences
    leaders. How many replicas there are to be is no matter of rules.

    Examples
    --------
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

    Examples
    --------
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
    # of several for every replica a store need satisfy only one, which no rule can say
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

    Examples
    --------
    >>> nowhere(("region", "us"))
    'region:us'
    """
    return ":".join(place)
