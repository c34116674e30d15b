"""Read CRUSH maps as Ceph prints them, as JSON or as text, into `CrushMap`.

The text lists the tree and the ids of its shadow trees, one for each device class. The items of the
shadow trees are derived here as Ceph derives them when it compiles the text.

References
----------
Ceph, ``CrushCompiler`` and ``CrushWrapper::device_class_clone``.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.systems.ceph.crush.crush_map import (
    CHOOSING,
    OPERATIONS,
    Bucket,
    ChooseArg,
    CrushMap,
    CrushRule,
    Step,
    is_known,
)
from evenkeel.systems.ceph.documents import (
    BucketDump,
    BucketItem,
    ChooseArgDump,
    CrushDump,
    Device,
    RuleDump,
    StepDump,
    TypeName,
)
from evenkeel.systems.documents import Document, quoted

MOST_TRIES = 10_000  # greatest value of a tunable: more than this would only take time
# values that ``crushtool -d`` leaves out, and those that dumps of old releases do not know
LEGACY = {
    "choose_local_tries": 2, "choose_local_fallback_tries": 5, "choose_total_tries": 19,
    "chooseleaf_descend_once": 0, "chooseleaf_vary_r": 0, "chooseleaf_stable": 0,
}  # fmt: skip

FREE_IDS = 2**14  # ids of devices and buckets that even the smallest file may have
WITHOUT_RANGE = {
    "straw_calc_version", "allowed_bucket_algs", "profile", "optimal_tunables", "legacy_tunables",
    "minimum_required_version",
}  # fmt: skip


def unread_rules(found: CrushDump) -> dict[int, str]:
    """Return why rules cannot be run, by their ids: MSR rules of version 19, for instance."""
    buckets = {one.id: one for one in found.buckets}
    devices = {one.id for one in found.devices}
    types = {one.name for one in found.types}
    other: dict[int, str] = {}
    for one in found.buckets:
        if one.alg != "straw2" or one.hash != "rjenkins1":
            kind = one.alg if one.alg != "straw2" else one.hash
            way = ": ceph osd crush set-all-straw-buckets-to-straw2, since Mimic, converts them"
            other[one.id] = (
                f"bucket {one.name} chooses by {kind}, and only straw2 is supported"
                f"{way * (kind == 'straw')}"
            )

    def below(at: int, seen: set[int]) -> str:
        if at >= 0 or at not in buckets or at in seen:
            return ""
        seen.add(at)
        inside = (below(item.id, seen) for item in buckets[at].items)
        return other.get(at, "") or next((one for one in inside if one), "")

    unread: dict[int, str] = {}
    for rule in found.rules:
        for step in rule.steps:
            why = ""
            if step.op != "noop" and step.op not in OPERATIONS:
                why = f"its step {step.op} is not supported"
            elif step.op == "take" and step.item not in buckets and step.item not in devices:
                why = f"it takes {step.item_name or step.item}, which does not exist"
            elif step.op in CHOOSING and step.type not in types:
                why = f"it chooses {step.type}, a type that the map does not have"
            elif step.op == "take":
                why = below(step.item, set())
            if why:
                unread.setdefault(rule.rule_id, why)
    return unread


def crush_map_of(
    faults: FaultList,
    name: str,
    found: CrushDump,
    devices: int,
    size: int,
    unread: Collection[int] = (),
) -> CrushMap | None:
    """Build the map; None after noting what is wrong with it. ``size`` bounds the ids used."""
    # ``unread`` rules and unknown tunables are left out
    before = len(faults.faults)
    most = max(FREE_IDS, size)
    for kind, ids in (
        ("devices", [one.id for one in found.devices]),
        ("buckets", [-one.id for one in found.buckets]),
        ("items", [abs(item.id) for one in found.buckets for item in one.items]),
    ):
        if max(ids, default=0) >= most:
            faults.add(
                f"{name}: {kind}",
                max(ids),
                f"is an id beyond {most}, too large for a file of this size",
            )
    tunables = {**LEGACY} if found.tunables else {}
    for key, value in found.tunables.items():
        if key in WITHOUT_RANGE or not is_known(key):
            continue
        if not isinstance(value, int) or not 0 <= value <= MOST_TRIES:
            message = f"must be a whole number from 0 to {MOST_TRIES}"
            faults.add(f"{name}: tunables.{key}", value, message)
        else:
            tunables[key] = value
    if len(faults.faults) > before:
        return None
    known = max((one.id + 1 for one in found.devices), default=0)
    try:
        return CrushMap(
            max(known, devices),
            {one.name: one.type_id for one in found.types},
            [_bucket(one) for one in found.buckets],
            [_rule(one) for one in found.rules if one.rule_id not in unread],
            tunables,
            {
                key: [
                    ChooseArg(
                        one.bucket_id,
                        [[round(weight * 0x10000) for weight in row] for row in one.weight_set],
                        one.ids,
                    )
                    for one in sets
                ]
                for key, sets in found.choose_args.items()
            },
        )
    except InvalidInput as error:
        faults.take(error, f"{name}: ")
        return None


def _bucket(one: BucketDump) -> Bucket:
    """Return a bucket; where nothing weighs anything, CRUSH never gets there."""
    items: Sequence[tuple[int, int]] = [(item.id, item.weight) for item in one.items]
    if not any(weight for _, weight in items):
        items = []
    # rules that reach one of another algorithm are not run
    return Bucket(one.id, one.name, one.type_name, items)


def _rule(one: RuleDump) -> CrushRule:
    steps = [
        Step(step.op, step.item if step.op == "take" else step.num, step.type)
        for step in one.steps
        if step.op != "noop"
    ]
    return CrushRule(one.rule_id, one.rule_name, steps)


TOKEN = re.compile(r"#[^\n]*|\n|[{}\[\]]|[^\s{}\[\]#]+")
WORD = re.compile(r"[A-Za-z0-9_.~+-]{1,200}")
NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
DEFAULT_ARGS = str(2**64 - 1)  # how the set of substitutes for all pools, -1, is called in the text
SETTINGS = {"set_choose_tries", "set_chooseleaf_tries", "set_choose_local_tries",
            "set_choose_local_fallback_tries", "set_chooseleaf_vary_r",
            "set_chooseleaf_stable", "set_msr_descents", "set_msr_collision_tries"}  # fmt: skip
SHADOW = "~"
LOST = -(2**31)  # the number of what a rule takes that the text does not have
FREE_SHADOWS = 2**14  # shadows that even the smallest file may have


class Unfit(Exception):
    """A token that does not fit; it is noted already."""


@dataclass
class _Tree:
    """One bucket as the text has it."""

    bucket: BucketDump
    line: int
    shadows: dict[str, int] = field(default_factory=dict)


@dataclass
class _Reader:
    """The tokens of a text, taken from the front."""

    faults: FaultList
    document: Document
    tokens: list[tuple[str, int]]
    at: int = 0
    devices: dict[str, Device] = field(default_factory=dict)
    classes: dict[int, str] = field(default_factory=dict)
    types: dict[str, TypeName] = field(default_factory=dict)
    trees: dict[str, _Tree] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    found: CrushDump = field(default_factory=lambda: CrushDump([], [], [], []))

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def fail(self, message: str, value: object = None) -> Unfit:
        last = self.tokens[min(self.at, len(self.tokens) - 1)] if self.tokens else ("", 1)
        shown = last[0] if value is None else value
        self.faults.add(f"{self.document.name}:{last[1]}", quoted(shown), message)
        return Unfit()

    def word(self, what: str) -> str:
        token = self.peek()
        if not WORD.fullmatch(token):
            raise self.fail(f"{what} is expected here" + ("" if token else ": the file ends"))
        self.at += 1
        return token

    def whole(self, what: str, low: int, high: int) -> int:
        token = self.peek()
        if not NUMBER.fullmatch(token) or not low <= int(token) <= high:
            raise self.fail(f"{what} must be a whole number from {low} to {high}")
        self.at += 1
        return int(token)

    def weight(self, what: str) -> float:
        token = self.word(what)
        try:
            value = float(token)
        except ValueError:
            value = -1.0
        if not 0.0 <= value < 2**16:
            self.at -= 1
            raise self.fail(f"{what} must be a number from 0 to 65535")
        return value

    def take(self, token: str) -> None:
        if self.peek() != token:
            raise self.fail(f"{token!r} is expected here" + ("" if self.peek() else ": it ends"))
        self.at += 1

    def block(self, read_line: Callable[[], None]) -> None:
        """Read what stands in braces; after a line that does not fit, go on with the next."""
        self.take("{")
        while self.peek() not in ("}", ""):
            line = self.tokens[self.at][1]
            try:
                read_line()
            except Unfit:
                while self.peek() not in ("}", "") and self.tokens[self.at][1] <= line:
                    self.at += 1
        self.take("}")

    def statements(self) -> None:
        """Read all statements; after one that does not fit, go on behind its block or line."""
        while self.at < len(self.tokens):
            begin = self.at
            try:
                self._statement()
            except Unfit:
                opened = [token for token, _ in self.tokens[begin : self.at]]
                depth = opened.count("{") - opened.count("}")
                while self.at < len(self.tokens) and depth > 0:
                    depth += {"{": 1, "}": -1}.get(self.peek(), 0)
                    self.at += 1
                line = self.tokens[max(self.at, begin + 1) - 1][1]
                while self.at < len(self.tokens) and self.tokens[self.at][1] <= line:
                    self.at += 1

    def _statement(self) -> None:
        kind = self.word("a statement")
        if kind == "tunable":
            name = self.word("the name of a tunable")
            self.found.tunables[name] = self.whole(name, 0, 2**31 - 1)
        elif kind == "device":
            self._device()
        elif kind == "type":
            number = self.whole("a type", 0, 2**16 - 1)
            name = self.word("the name of a type")
            self.types[name] = TypeName(number, name)
        elif kind == "rule":
            self._rule()
        elif kind == "choose_args":
            self._choose_args()
        elif kind in self.types:
            self._bucket(kind)
        else:
            self.at -= 1
            raise self.fail("is not a statement of a CRUSH map, nor a type of buckets")

    def _device(self) -> None:
        number = self.whole("a device", 0, 2**31 - 1)
        name = self.word("the name of a device")
        if name in self.devices:
            self.at -= 1
            raise self.fail("is already the name of a device")
        self.devices[name] = Device(number, name)
        if self.peek() == "class":
            self.at += 1
            self.classes[number] = self.word("a device class")

    def _bucket(self, kind: str) -> None:
        name, line = self.word("the name of a bucket"), self.tokens[self.at - 1][1]
        if name in self.trees:
            self.at -= 1
            raise self.fail("is already the name of a bucket")
        tree = _Tree(BucketDump(0, name, kind, []), line)
        self.block(lambda: self._bucket_line(tree))
        if tree.bucket.id >= 0:
            raise self.fail("has no id below 0", name)
        self.trees[name] = tree

    def _bucket_line(self, tree: _Tree) -> None:
        key = self.word("id, alg, hash or item")
        if key == "id":
            number = self.whole("the id of a bucket", -(2**31), -1)
            self.taken.add(number)
            if self.peek() == "class":
                self.at += 1
                tree.shadows[self.word("a device class")] = number
            else:
                tree.bucket.id = number
        elif key == "alg":
            tree.bucket.alg = self.word("an algorithm")
        elif key == "hash":
            token = self.word("a hash")
            tree.bucket.hash = "rjenkins1" if token == "0" else token
        elif key == "item":
            self._item(tree)
        else:
            self.at -= 1
            raise self.fail("is none of id, alg, hash and item")

    def _item(self, tree: _Tree) -> None:
        name, weight = self.word("the name of an item"), None
        known = self.devices.get(name)
        child = self.trees.get(name)
        if known is None and child is None:
            self.at -= 1
            raise self.fail("is not a device or bucket above")
        while self.peek() in ("weight", "pos"):
            key = self.word("")
            if key == "pos":
                self.whole("a position", 0, 2**16)
            else:
                weight = fixed(self.weight("a weight"))
        if child is not None:
            total = sum(item.weight for item in child.bucket.items)
            weight = min(total, 2**32 - 1) if weight is None else weight
            tree.bucket.items.append(BucketItem(child.bucket.id, weight))
        elif known is not None:
            tree.bucket.items.append(BucketItem(known.id, 0x10000 if weight is None else weight))

    def _rule(self) -> None:
        name = self.word("the name of a rule") if self.peek() != "{" else ""
        rule = RuleDump(-1, name, [])
        self.block(lambda: self._rule_line(rule))
        if rule.rule_id < 0:
            raise self.fail("has no id", name)
        self.found.rules.append(rule)

    def _rule_line(self, rule: RuleDump) -> None:
        key = self.word("id, type, min_size, max_size or step")
        if key in ("id", "ruleset"):
            rule.rule_id = self.whole("the id of a rule", 0, 255)
        elif key == "type":
            self.word("a type of pools")
        elif key in ("min_size", "max_size"):
            setattr(rule, key, self.whole(key, 0, 2**31))
        elif key == "step":
            self._step(rule)
        else:
            self.at -= 1
            raise self.fail("is none of id, type, min_size, max_size and step")

    def _step(self, rule: RuleDump) -> None:
        kind = self.word("a step")
        if kind == "take":
            item, text = self._taken_item()
            rule.steps.append(StepDump("take", item=item, item_name=text))
        elif kind in ("choose", "chooseleaf"):
            how = self.word("firstn or indep")
            number = self.whole("a number of items", -1000, 1000)
            self.take("type")
            rule.steps.append(
                StepDump(f"{kind}_{how}", num=number, type=self.word("a type of buckets"))
            )
        elif kind == "choosemsr":
            number = self.whole("a number of items", -1000, 1000)
            self.take("type")
            rule.steps.append(StepDump(kind, num=number, type=self.word("a type of buckets")))
        elif kind in SETTINGS:
            rule.steps.append(StepDump(kind, num=self.whole(kind, 0, 1000)))
        elif kind == "emit":
            rule.steps.append(StepDump("emit"))
        elif kind != "noop":
            self.at -= 1
            raise self.fail("is not a step of a rule")

    def _taken_item(self) -> tuple[int, str]:
        """Return what is taken, by number and name; a number that nothing has for what is lost."""
        name = self.word("the name of a bucket or device")
        if self.peek() != "class":
            if name in self.trees:
                return self.trees[name].bucket.id, name
            return (self.devices[name].id, name) if name in self.devices else (LOST, name)
        self.at += 1
        device_class = self.word("a device class")
        text = f"{name}{SHADOW}{device_class}"
        tree = self.trees.get(name)
        if tree is None or device_class not in {*self.classes.values(), *tree.shadows}:
            return LOST, text
        return self._shadow_id(tree, device_class), text

    def _shadow_id(self, tree: _Tree, device_class: str) -> int:
        """Return the id of a shadow; the first that is free where the text names none."""
        if device_class not in tree.shadows:
            free = -1 - len(self.taken)
            while free in self.taken:
                free -= 1
            self.taken.add(free)
            tree.shadows[device_class] = free
        return tree.shadows[device_class]

    def _choose_args(self) -> None:
        name = self.word("the number of a pool")
        self.take("{")
        sets: list[ChooseArgDump] = []
        while self.peek() == "{":
            sets.append(self._choose_arg())
        self.take("}")
        self.found.choose_args["-1" if name == DEFAULT_ARGS else name] = sets

    def _choose_arg(self) -> ChooseArgDump:
        found = ChooseArgDump(0)
        self.block(lambda: self._choose_arg_line(found))
        return found

    def _choose_arg_line(self, found: ChooseArgDump) -> None:
        key = self.word("bucket_id, weight_set or ids")
        if key == "bucket_id":
            found.bucket_id = self.whole("the id of a bucket", -(2**31), -1)
        elif key == "ids":
            found.ids = [self.whole("an id", -(2**31), 2**31 - 1) for _ in self._listed()]
        elif key == "weight_set":
            found.weight_set = [
                [self.weight("a weight") for _ in self._listed()] for _ in self._listed()
            ]
        else:
            self.at -= 1
            raise self.fail("is none of bucket_id, weight_set and ids")

    def _listed(self) -> Iterator[None]:
        """Yield once for each entry of a list in brackets."""
        self.take("[")
        while self.peek() not in ("]", ""):
            yield
        self.take("]")

    def shadows(self) -> Iterator[BucketDump]:
        """Yield the shadow of each bucket for each device class, items before their parents."""
        ids: dict[tuple[int, str], tuple[int, int]] = {}
        named = chain.from_iterable(tree.shadows for tree in self.trees.values())
        classes = [*dict.fromkeys(chain(self.classes.values(), named))]
        if len(classes) * len(self.trees) > max(FREE_SHADOWS, len(self.document.data)):
            message = f"are too many classes of devices for {len(self.trees)} buckets"
            self.faults.add(self.document.name, len(classes), message)
            return
        for device_class in classes:
            for tree in self.trees.values():
                items = []
                for item in tree.bucket.items:
                    if item.id >= 0 and self.classes.get(item.id) == device_class:
                        items.append(item)
                    elif (item.id, device_class) in ids:
                        items.append(BucketItem(*ids[item.id, device_class]))
                own = self._shadow_id(tree, device_class)
                total = min(sum(item.weight for item in items), 2**32 - 1)
                ids[tree.bucket.id, device_class] = (own, total)
                name = f"{tree.bucket.name}{SHADOW}{device_class}"
                yield BucketDump(own, name, tree.bucket.type_name, items)


def fixed(weight: float) -> int:
    """Return a weight in 16.16 fixed point, by way of single precision as Ceph's compiler does.

    >>> fixed(1.0), fixed(3.638)
    (65536, 238419)
    """
    return min(int(np.float32(weight) * np.float32(65536.0)), 2**32 - 1)


def read_crush_text(faults: FaultList, document: Document) -> CrushDump:
    """Read the text of a CRUSH map, noting each statement that cannot be read."""
    tokens, line = [], 1
    for token in TOKEN.findall(document.text(faults)):
        if token == "\n":
            line += 1
        elif not token.startswith("#"):
            tokens.append((token, line))
    reader = _Reader(faults, document, tokens)
    reader.statements()
    found = reader.found
    found.devices = [*reader.devices.values()]
    found.types = [*reader.types.values()]
    found.buckets = [*(tree.bucket for tree in reader.trees.values()), *reader.shadows()]
    return found
