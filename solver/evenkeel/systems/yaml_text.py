"""Read YAML whose values JSON can hold."""

import re
from itertools import accumulate
from typing import Any

import msgspec

from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import decode_json

# how an object or a list of Kubernetes begins in the output of ``kubectl -o yaml``
OBJECTS = re.compile(
    rb"(?:(?:#.*)?\r?\n|---[ \t]*\r?\n)*(?:apiVersion|items|kind): *\S*[ \t]*\r?$", re.M
)

TOP_KEY = re.compile(r"(?m)^(apiVersion|kind|items):")

FLOAT = "tag:yaml.org,2002:float"
# what is a number in Go, and without a point a text elsewhere
LARGE = re.compile(r"-?[0-9]e\+[0-9]{1,3}")

DEEPEST, MOST_TEXT = 20, 2**28  # brackets within brackets, and characters, of a YAML file


def load_yaml(faults: FaultList, document: Document, instead: str) -> Any:
    """Return the document of a YAML file, or a list of several; None after noting a fault."""
    try:
        import yaml
    except ImportError:
        message = f"needs the package pyyaml: pip install 'evenkeel[yaml]', or {instead}"
        raise InvalidInput([Fault(document.name, "YAML", message)]) from None
    text = _parted(document.text(faults))
    depth = accumulate({"[": 1, "{": 1}.get(mark, -1) for mark in re.findall(r"[][{}]", text))
    if max(depth, default=0) > DEEPEST or len(text) > MOST_TEXT:
        faults.add(document.name, quoted(text), "is nested too deeply or too long for YAML")
        return None
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    kept = {
        first: [one for one in rules if one[0] != "tag:yaml.org,2002:timestamp"]
        for first, rules in base.yaml_implicit_resolvers.items()
    }
    loader: Any = type("_Loader", (base,), {"yaml_implicit_resolvers": kept})
    # programs in Go print large whole numbers with an exponent: ``4.398e+12``
    loader.add_implicit_resolver(FLOAT, LARGE, [*"-0123456789"])
    loader.add_constructor(FLOAT, _number)
    try:
        # few aliases can stand for very much
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=loader)):
            faults.add(document.name, "*", "has an alias: write out what it stands for")
            return None
        several = [one for one in yaml.load_all(text, Loader=loader) if one is not None]
        return several if len(several) > 1 else next(iter(several), None)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        at = f"{document.name}:{mark.line + 1}" if mark is not None else document.name
        message = str(getattr(error, "problem", None) or error)[:200]
        faults.add(at, quoted(text), f"is not valid YAML: {message}")
        return None


def _number(loader: Any, node: Any) -> float:
    found: float = loader.construct_yaml_float(node)
    whole = "e+" in node.value and found.is_integer() and abs(found) < 2**63
    return int(found) if whole else found


def _parted(text: str) -> str:
    """Return YAML with a mark between what was written to one file twice, as ``>>`` does."""
    # a key that comes again at the margin would replace all that came before it
    parts = re.split(r"(?m)^(?=---)", text)
    for i, part in enumerate(parts):
        first = TOP_KEY.search(part)
        if first and part.count(f"\n{first[1]}:") > (first.start() > 0):
            again = re.compile(rf"(?m)^(?={first[1]}:)")
            parts[i] = part[: first.end()] + again.sub("---\n", part[first.end() :])
    return "".join(parts)


def objects_as_json(faults: FaultList, document: Document) -> Document | None:
    r"""Return objects of Kubernetes as JSON, several as one list; None after noting what is wrong.

    >>> objects_as_json(FaultList(), Document("n.yaml", b"apiVersion: v1\nkind: Node\n")).data
    b'{"apiVersion":"v1","kind":"Node"}'
    """
    if document.data.lstrip().startswith(b"["):
        return _as_list(faults, document)
    if not OBJECTS.match(document.data):
        return document
    before = len(faults.faults)
    loaded = load_yaml(faults, document, "print it by kubectl get -o json")
    if isinstance(loaded, list):
        items: list[Any] = []
        for one in loaded:
            several = one.get("items") if isinstance(one, dict) else None
            items += several if isinstance(several, list) else [one]
        loaded = {"apiVersion": "v1", "items": items, "kind": "List"}
    if len(faults.faults) > before:
        return None
    try:
        return Document(document.name, msgspec.json.encode(loaded), document.path)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        faults.add(document.name, type(loaded).__name__, f"has no form in JSON: {error}")
        return None


class _Object(msgspec.Struct):
    """An object, or a list of them, of which only the kind is looked at."""

    kind: str = ""
    apiVersion: str = "v1"  # noqa: N815
    items: list[msgspec.Raw] | None = None

    def named(self, item: msgspec.Raw) -> msgspec.Raw:
        """Return an item with its kind, which a list of one kind may leave out."""
        if not self.kind.endswith("List") or self.kind == "List":
            return item
        if msgspec.json.decode(item, type=_Object).kind:
            return item
        own = msgspec.json.encode(
            {"kind": self.kind.removesuffix("List"), "apiVersion": self.apiVersion}
        )
        rest = bytes(item).lstrip()[1:].lstrip()
        return msgspec.Raw(own[:-1] + (b"" if rest.startswith(b"}") else b",") + rest)


def _as_list(faults: FaultList, document: Document) -> Document | None:
    """Return an array of objects, or of lists of them, as one list."""
    whole = decode_json(faults, document, list[msgspec.Raw])
    objects = decode_json(faults, document, list[_Object])
    if whole is None or objects is None:
        return None
    items: list[msgspec.Raw] = []
    for raw, one in zip(whole, objects, strict=True):
        if one.items is not None:
            items += map(one.named, one.items)
        elif not one.kind.endswith("List"):
            items.append(raw)
    data = msgspec.json.encode({"apiVersion": "v1", "items": items, "kind": "List"})
    return Document(document.name, data, document.path)
