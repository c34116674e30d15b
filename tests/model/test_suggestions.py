"""Suggestions: the closest word, and nothing harmful for something harmless."""

import subprocess
import sys

import pytest

import evenkeel as ek
from evenkeel.model.reading.keywords import HARMFUL, did_you_mean


@pytest.mark.parametrize(
    "word", ["pin", "unpin", "keep", "train", "brain", "frozen", "plain", "town"]
)
def test_nothing_harmful_is_proposed_for_something_else(word):
    assert did_you_mean(word, HARMFUL) == ""
    assert did_you_mean(f"--{word}", [f"--{one}" for one in HARMFUL]) == ""


@pytest.mark.parametrize(
    ("word", "meant"), [("darin", "drain"), ("dwon", "down"), ("dorp", "drop"), ("forc", "force")]
)
def test_who_all_but_wrote_it_is_asked(word, meant):
    assert did_you_mean(word, HARMFUL) == f"; did you mean {meant!r}?"


@pytest.mark.parametrize("word", ["pins", "keep", "trane", "rain"])
def test_changes_propose_no_other_verb(word):
    with pytest.raises(ek.InvalidInput) as wrong:
        ek.Changes(**{word: "n0"})
    assert not any(f"'{one}'" in str(wrong.value) for one in HARMFUL)


def test_the_command_line_proposes_none_either():
    done = subprocess.run(
        [sys.executable, "-m", "evenkeel", "simulate", "x.json", "--town", "n1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0 and "--town" in done.stderr
    assert "--down" not in done.stderr
