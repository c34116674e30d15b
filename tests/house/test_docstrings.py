"""Public docstrings keep to numpydoc, and their examples run."""

import doctest
import importlib
import inspect
import linecache
import pkgutil
import re
from collections.abc import Iterator
from enum import Enum
from types import ModuleType

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import evenkeel
import evenkeel_kernels
from tests.house.doors import public

SUMMARY = {"GL08", "SS01", "SS03", "SS04", "SS06"}
NAMES = {"PR02", "PR03", "GL06", "GL07"}  # what is documented exists, in the order it has
COMPLETE = {"PR01", "PR04", "PR07", "PR10", "RT01", "RT03", "YD01"}
PUBLIC = public()
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def public_modules() -> list[str]:
    """The names of all modules whose path has no leading underscore, ``__main__`` apart."""
    names = []
    for package in (evenkeel, evenkeel_kernels):
        found = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        names += [package.__name__, *(module.name for module in found)]
    return [name for name in names if not any(part[0] == "_" for part in name.split("."))]


def public_objects(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The functions, classes and kernels that a module defines for others."""
    for name, value in vars(module).items():
        plain = inspect.unwrap(value) if callable(value) else value
        defined = inspect.isroutine(plain) or inspect.isclass(plain)
        if defined and name[0] != "_" and plain.__module__ == module.__name__:
            yield name, plain


def checks(value: object) -> set[str]:
    """What to hold against an object.

    Public names are documented in full, internal ones in a sentence.
    Enumerations, exceptions, named tuples, protocols and typed documents say it all where their
    members stand.
    Kernels take the same bundles again and again, which are described where they are declared.
    """
    if value not in PUBLIC and not is_kernel(value):
        return SUMMARY
    if inspect.isclass(value):
        listed = issubclass(value, Enum | BaseException)
        listed = listed or hasattr(value, "_fields") or hasattr(value, "__struct_fields__")
        listed = listed or getattr(value, "_is_protocol", False)
    else:
        listed = is_kernel(value)
    return SUMMARY | NAMES if listed else SUMMARY | NAMES | COMPLETE


def is_kernel(value: object) -> bool:
    """Whether ``value`` is a function among the kernels."""
    return value.__module__.startswith(evenkeel_kernels.__name__) and inspect.isroutine(value)


def faults(value: object, wanted: set[str]) -> list[str]:
    """The wanted checks that the docstring of ``value`` fails; a kernel speaks of its arrays."""
    text = inspect.getdoc(value) or ""
    if not wanted & COMPLETE and "\n---" not in text:
        found = summary_faults(text)
    else:
        errors = validate(get_doc_object(value))["errors"]
        found = [f"{code} {error}" for code, error in errors if code in wanted]
    if is_kernel(value):
        for name, parameter in inspect.signature(value).parameters.items():
            said = re.search(rf"\b{name}\b", value.__doc__ or "")
            if "ndarray" in str(parameter.annotation) and not said:
                found.append(f"array {name} is not described")
    return found


def summary_faults(text: str) -> list[str]:
    """What `validate` finds in a docstring without sections, after it has read all sources."""
    summary = text.partition("\n\n")[0]
    failed = {
        "GL08 no docstring": not text,
        "SS03 no full stop": bool(text) and not summary.endswith("."),
        "SS06 several lines": "\n" in summary,
    }
    return [fault for fault, is_so in failed.items() if is_so]


def where(value: object) -> str:
    """The full name of a public object."""
    return f"{value.__module__}.{value.__name__}"


@pytest.mark.long
@pytest.mark.parametrize("name", public_modules())
def test_docstrings_are_numpydoc(name):
    module = importlib.import_module(name)
    found = []
    for label, value in public_objects(module):
        found += [f"{label}: {fault}" for fault in faults(value, checks(value))]
        if inspect.isclass(value):
            for method, inner in vars(value).items():
                if inspect.isfunction(inner) and method[0] != "_" and inner.__doc__:
                    short = faults(inner, SUMMARY | NAMES)
                    found += [f"{label}.{method}: {fault}" for fault in short]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", [*public_modules(), "tests.conformance.protocol"])
def test_examples_run(name):
    linecache.clearcache()  # every run of an example looks at all files in it
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert failed == 0


@pytest.mark.parametrize("value", sorted(PUBLIC, key=where), ids=where)
def test_public_names_have_an_example(value):
    assert ">>>" in (value.__doc__ or "")


def undocumented(load, level):
    """Level the load."""
    return load, level


def wrongly_documented(load):
    """Level the load.

    Parameters
    ----------
    loads : (N,) float64
        Load.

    Returns
    -------
    (N,) float64
        Load again.
    """
    return load


def unfinished(load):
    return load


unfinished.__doc__ = "Level the load, node by node,\nand stop"


@pytest.mark.parametrize(
    ("function", "codes"),
    [
        (undocumented, {"PR01", "RT01"}),
        (wrongly_documented, {"PR01", "PR02"}),
        (unfinished, {"PR01", "RT01", "SS03", "SS06"}),
    ],
)
def test_the_check_sees_faults(function, codes):
    assert {fault[:4] for fault in faults(function, SUMMARY | NAMES | COMPLETE)} == codes
    some = {code for code in codes if code in SUMMARY | NAMES}
    assert {fault[:4] for fault in faults(function, SUMMARY | NAMES)} == some


def test_a_name_without_a_docstring_is_seen():
    assert [fault[:4] for fault in faults(lambda load: load, SUMMARY)] == ["GL08"]
