"""The README: its examples run elsewhere; its tables and commands are what there is."""

import re

import pytest

from evenkeel.cli import main
from evenkeel.strategies.registry import METHODS
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


def test_the_commands_run(tmp_path, monkeypatch, capsys):
    """On a smaller cluster than the reader's, so that it takes a moment only."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```sh\n(evenkeel generate .*?)```", README, re.DOTALL)[1]
    lines = [line.partition("#")[0].split()[1:] for line in block.splitlines()]
    assert [line[0] for line in lines] == ["generate", "check", "solve", "explain"]
    lines[0] += ["--partitions", "500", "--nodes", "40"]
    assert [main(line) for line in lines] == [0, 1, 0, 0]
    assert (tmp_path / "placed.npz").exists()
    assert (tmp_path / "moves.csv").read_text().startswith("kind,partition,slot,from,to,bytes\n")


@pytest.mark.parametrize("target", re.findall(r"^make (\S+)", README, re.MULTILINE))
def test_make_has_the_targets(target):
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
