"""What there is stands on some page: public names, options, methods, formats, rules, events."""

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import evenkeel as ek
import evenkeel_kernels
from evenkeel import cli, options
from evenkeel.cli import output
from evenkeel.measure.audit import KINDS
from evenkeel.methods.options import Options
from evenkeel.methods.registry import METHODS
from evenkeel.planning.throttle import PRESETS
from evenkeel.systems.folders import form
from evenkeel.systems.registry import ROOMS, find
from evenkeel.verdict import STATUS_MEANING
from tests.house import doors
from tests.house.parsed import parsed
from tests.site.pages import DOCS

PAGES = {
    page: page.read_text() for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "decisions"
}
WORDS = set(re.findall(r"[\w-]+", "\n".join(PAGES.values())))
REFERENCE = "\n".join(text for page, text in PAGES.items() if page.parent.name == "reference")
DOCUMENTED = set(
    re.findall(r"^\.\. auto(?:class|function|exception|data):: (\S+)$", REFERENCE, re.M)
)
ROOTS = [path for package in (ek, evenkeel_kernels) for path in package.__path__]


def written(name, page):
    """Whether a page has a name as code."""
    return re.search(rf"`[^`\n]*\b{re.escape(name)}\b[^`\n]*`", PAGES[DOCS / page]) is not None


def names_of(value):
    """The names under which the reference may have a public function or class."""
    found = {f"{value.__module__}.{value.__qualname__}"}
    for door in (*doors.DOORS, doors.OPTIONS):
        module = __import__(door, fromlist=["_"])
        if value.__name__ in dir(module):
            found.add(f"{door}.{value.__name__}")
    return found


def test_every_public_name_is_in_the_reference():
    public = [value for value in doors.public() if value.__name__[0] != "_"]
    assert len(public) > 150
    missing = [f"{v.__module__}.{v.__name__}" for v in public if not names_of(v) & DOCUMENTED]
    assert not missing, "\n".join(sorted(missing))


def test_every_exported_value_is_in_the_reference():
    modules = {door: __import__(door, fromlist=["_"]) for door in doors.DOORS}
    exported = {
        f"{door}.{name}"
        for door, module in modules.items()
        for name in module.__all__
        if not inspect.ismodule(getattr(module, name))
    }
    assert exported - DOCUMENTED == set()


def test_the_reference_names_nothing_else():
    for name in DOCUMENTED:
        module, _, attribute = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=["_"]), attribute), name


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_listed(method):
    row = rf"^\| [^|]*`{method}`"
    assert re.search(row, PAGES[DOCS / "methods" / "index.md"], re.M)


def option_classes():
    """Every class of options that a method takes."""
    found = [getattr(options, name) for name in (*dir(options), "Cockroach", "Longhorn")]
    return {one for one in found if inspect.isclass(one) and issubclass(one, Options)}


def test_every_option_of_a_method_is_on_some_page():
    names = {one.name for kind in option_classes() for one in fields(kind)}
    assert len(names) > 30
    assert names - WORDS == set()


@pytest.mark.parametrize("name", ROOMS)
def test_every_format_is_on_some_page(name):
    assert any(written(name, page.relative_to(DOCS)) for page in PAGES)


def test_rules_goals_limits_and_protocols_are_on_their_pages():
    missing = [one.name for one in fields(ek.Rule) if not written(one.name, "concepts/rules.md")]
    missing += [kind for kind in KINDS if not written(kind, "concepts/rules.md")]
    for kind in (ek.Goals, ek.Cost, ek.Limits):
        missing += [one.name for one in fields(kind) if not written(one.name, "concepts/goals.md")]
    missing += [name for name in PRESETS if not written(name, "tasks/carry_out.md")]
    missing += [status for status in STATUS_MEANING if not written(status, "concepts/verdict.md")]
    assert not missing, missing


def test_the_form_of_folders_is_on_its_page():
    names = [
        field
        for kind in (form.Form, form.Setting, form.Command, form.Hold, form.WaveForm)
        for field in kind.__struct_fields__
    ]
    for room in ROOMS:
        carrier = find(room).carrier
        names += [] if carrier is None else [*carrier.checks]
    assert not [name for name in names if not written(name, "reference/folders.md")]


def test_exit_codes_are_told():
    names = ("DONE", "BROKEN", "BAD_INPUT", "FELL_SHORT", "INFEASIBLE", "INTERRUPTED")
    for code in (getattr(output, name) for name in names):
        assert re.search(rf"^\| {code} \|", PAGES[DOCS / "reference" / "cli.md"], re.M), code


@pytest.mark.parametrize(("command", "parser"), list(cli.command_parser()[1].items()))
def test_every_command_and_option_is_told(command, parser):
    page = PAGES[DOCS / "reference" / "cli.md"]
    assert f"`evenkeel {command}" in page
    long = [option for action in parser._actions for option in action.option_strings[-1:]]
    missing = [option for option in long if option != "--help" and f"`{option}" not in page]
    assert missing == []


def events():
    """Every event that is logged, in words or as the field of a record."""
    for file in (file for root in ROOTS for file in sorted(Path(root).rglob("*.py"))):
        text = file.read_text()
        if not re.search("log_event|_tell|[\"']event[\"']", text):
            continue
        for node in ast.walk(parsed(text)):
            if isinstance(node, ast.Call) and is_told(node.func):
                yield from (one.value for one in node.args if is_text(one))
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                yield from (v.value for k, v in pairs if is_text(k, "event") and is_text(v))


def is_told(function):
    """Whether what is called is ``log_event`` or ``self._tell``."""
    if isinstance(function, ast.Name):
        return function.id == "log_event"
    named = isinstance(function, ast.Attribute) and function.attr == "_tell"
    return named and ast.unparse(function.value) == "self"


def is_text(node, text=None):
    """Whether a piece of source is a text, or that one."""
    known = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return known and (text is None or node.value == text)


def test_every_log_event_is_told():
    found = set(events())
    assert {"solving", "solved", "swept", "metrics", "waiting", "damaged"} <= found
    missing = [event for event in sorted(found) if not written(event, "reference/logs.md")]
    assert not missing, missing
