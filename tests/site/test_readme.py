"""The README: short, its tables and links are what there is; what it shows runs with the pages."""

import re
import subprocess
import tomllib

import evenkeel as ek
from evenkeel.methods.registry import METHODS
from tests.support import places

ROOT = places.ROOT
README = (ROOT / "README.md").read_text()


def test_the_table_of_methods_is_the_registry():
    table = re.search(r"<!-- methods -->\n(.*?)<!-- /methods -->", README, re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table[1], re.MULTILINE)
    assert dict(rows) == {method.name: method.summary for method in METHODS.values()}


def test_links_lead_somewhere():
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in target]
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_page_of_an_index_links_to_nothing_in_the_tree():
    shown = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["readme"]
    page = (ROOT / shown).read_text()
    assert "five lines of python" in page.lower()
    assert [one for one in re.findall(r"\]\(([^)]+)\)", page) if "://" not in one] == []


def test_the_source_distribution_takes_what_git_has_and_nothing_else():
    taken = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    names = {name for verb, *given in taken if verb in ("include", "graft") for name in given}
    assert [name for name in sorted(names) if not (ROOT / name).exists()] == []
    names |= {"kernels", "solver", "pyproject.toml", "MANIFEST.in"}  # setuptools takes them
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    kept = {line.partition("/")[0] for line in listed.stdout.splitlines()}  # none without git
    assert {one for one in kept if one[0] != "."} <= names


def test_two_minutes_are_enough():
    assert len(README.splitlines()) <= 150


def test_all_that_name_the_version_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert project["version"] == ek.__version__ == cited[1]


def test_pip_is_renewed_before_it_needs_to_know_more_than_an_old_one():
    rules = re.split(r"\n(?=[^\t\s#])", (ROOT / "Makefile").read_text())
    asking = [rule for rule in rules if "--build-constraint" in rule]
    assert len(asking) == 2
    for rule in asking:
        assert "--upgrade pip" in rule.partition("--build-constraint")[0]
