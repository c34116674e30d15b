"""A pool's CRUSH rule in the model's words, or why it has none.

A block of a rule (what it does between a take and an emit) keeps its replicas on the devices below
its root, apart by the types it chooses, and together where it chooses in several steps. One block
becomes ``require``, ``spread`` and ``max_domains``. Of several blocks each is a ``place`` term with
its number of replicas; their limits concern the devices of one take only, so that they may need
tiers of their own, called ``host below default~hdd``.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.rules import Amount, Rule
from evenkeel.systems.ceph.crush.crush_map import NO_OSD, CrushMap
from evenkeel.systems.ceph.crush.failure_domains import Block, blocks, chosen_below
from evenkeel.systems.ceph.crush.placement import Pool

CLASS = "~"
"""Stands between the name of a bucket and the device class that its shadow tree is for."""


Shared = Literal["all", "apart", "none"]
"""Whether a tier may have other devices, in any domain or in others, or must be of its own."""


@dataclass(frozen=True)
class Vocabulary:
    """Tiers and tags of the nodes, to which rules add those that they need.

    Parameters
    ----------
    tiers : dict of str to list of str
        The bucket of each type that each device is in, the widest type first; "" for none.
    tags : dict of str to ndarray of bool, shape (devices,)
        Device classes.
    below : dict of str to list of str
        Tiers of single takes: a bucket's name for the devices of the take, "" for others.
    """

    tiers: dict[str, list[str]]
    tags: dict[str, NDArray[np.bool_]]
    below: dict[str, list[str]] = field(default_factory=dict)

    def condition(self, crush: CrushMap, block: Block, reached: NDArray[np.bool_]) -> list[str]:
        """Return conditions that only the devices meet which a block reaches; none for all."""
        found: list[str] = []
        meets = np.ones(crush.devices, np.bool_)
        name = _name(crush, block)
        bucket, _, device_class = name.partition(CLASS)
        if device_class in self.tags:
            found.append(f"+{device_class}")
            meets &= self.tags[device_class]
        kind = crush.by_id[block.root].type if block.root < 0 else ""
        if bucket in self.tiers.get(kind, ()):
            found.append(f"{kind}={bucket}")
            meets &= np.array([one == bucket for one in self.tiers[kind]], np.bool_)
        if np.array_equal(meets, reached):
            return found
        tag = f"below {name}"
        while tag in self.tags and not np.array_equal(self.tags[tag], reached):
            tag += "'"
        self.tags[tag] = reached
        return [f"+{tag}"]

    def tier(
        self,
        crush: CrushMap,
        block: Block,
        step: int,
        chosen: NDArray[np.int64],
        shared: "Shared",
    ) -> str:
        """Return the tier whose domains are what a block has ``chosen`` at a step.

        That is the type itself where it says the same of the devices of the take and may be shared
        with other devices.
        """
        code = block.choices[step].kind
        kind = next(name for name, own in crush.types.items() if own == code)
        names = [
            "" if at == NO_OSD else crush.by_id[at].name.partition(CLASS)[0]
            for at in chosen[step + 1].tolist()
        ]
        plain = self.tiers.get(kind, [""] * crush.devices)
        same = all(name in ("", one) for one, name in zip(plain, names, strict=True))
        outside = {one for one, name in zip(plain, names, strict=True) if not name}
        if same and (shared == "all" or (shared == "apart" and not outside & {*names} - {""})):
            return kind
        tier = f"{kind} below {_name(crush, block)}"
        while self.below.setdefault(tier, names) != names:
            tier += "'"
        return tier


def _name(crush: CrushMap, block: Block) -> str:
    return crush.by_id[block.root].name if block.root < 0 else f"osd.{block.root}"


def placed_by(crush: CrushMap, pool: Pool) -> int:
    """Return how many replicas the rule of a pool places if it finds devices for all of them."""
    return sum(block.count for block in blocks(crush, pool.rule, pool.size))


def rule_of(crush: CrushMap, pool: Pool, words: Vocabulary) -> Rule | str:
    """Say in the model's words what a pool's rule demands, or why they cannot say it."""
    taken = _merged([one for one in blocks(crush, pool.rule, pool.size) if one.count > 0])
    chosen = [chosen_below(crush, block) for block in taken]
    reached = [one[0] != NO_OSD for one in chosen]
    if (np.sum(reached, axis=0, dtype=int) > 1).any():
        return "several of its takes reach the same devices, so that positions decide"
    for block, mask in zip(taken, reached, strict=True):
        if not mask.any():
            return f"nothing is below {_name(crush, block)} that it could choose"
    alone = len(taken) == 1
    spread: dict[str, Amount] = {}
    most: dict[str, Amount] = {}
    amounts: dict[int, set[int]] = {}
    for block in taken:
        for step, choice in enumerate(block.choices):
            amounts.setdefault(choice.kind, set()).add(_each(block, step))
    for block, own in zip(taken, chosen, strict=True):
        for step, choice in enumerate(block.choices):
            each, together = (
                _each(block, step),
                prod(one.number for one in block.choices[: step + 1]),
            )
            if choice.kind > 0 and (alone or each < block.count):
                alike = len(amounts[choice.kind]) == 1
                shared: Shared = "all" if alone else "apart" if alike else "none"
                spread[words.tier(crush, block, step, own, shared)] = each
            if choice.kind > 0 and together < block.count:
                most[words.tier(crush, block, step, own, "all" if alone else "none")] = together
    conditions = [
        words.condition(crush, block, mask) for block, mask in zip(taken, reached, strict=True)
    ]
    if alone:
        return Rule(require=conditions[0], spread=spread, max_domains=most)
    place = {",".join(one): block.count for one, block in zip(conditions, taken, strict=True)}
    if len(place) < len(taken):
        return "several of its takes reach the same devices, so that positions decide"
    return Rule(place=place, spread=spread, max_domains=most)


def _each(block: Block, step: int) -> int:
    """Return how many replicas each item may hold that a block chooses at a step."""
    return prod(one.number for one in block.choices[step + 1 :])


def _merged(taken: Sequence[Block]) -> list[Block]:
    """Return blocks in which those that choose the same type below the same root are one."""
    keys = [(block.root, block.choices[0].kind) for block in taken if len(block.choices) == 1]
    again = {key for key, times in Counter(keys).items() if times > 1}
    found: list[Block] = []
    for block in taken:
        key = (block.root, block.choices[0].kind) if len(block.choices) == 1 else None
        if key not in again:
            found.append(block)
        elif found and (found[-1].root, found[-1].choices[-1].kind) == key:
            found[-1] = _joined(found[-1], block)
        else:
            found.append(block)
    return found


def _joined(one: Block, other: Block) -> Block:
    count = one.count + other.count
    return Block(one.root, (one.choices[0]._replace(number=count),), count)
