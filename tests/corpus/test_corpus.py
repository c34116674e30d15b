"""Answers are those that were recorded."""

import pytest

from tests.corpus.answers import answers
from tests.corpus.recorded import differing


@pytest.mark.long
def test_every_answer_is_the_recorded_one():
    assert differing(dict(answers())) == []
