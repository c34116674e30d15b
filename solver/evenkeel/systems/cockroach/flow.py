"""Constraints as they stand in a statement: lists and mappings of plain words.

The part of YAML that fits on a line: ``[+ssd, -region=eu]``, ``{"+region=us": 2}``,
``[[+zone=a], [+zone=b]]``.
"""

import re
from typing import Any

TOKEN = re.compile(
    r"\s*(?:\"([^\"\\]*)\"|'([^']*)'|([^\s\[\]{},:\"'][^\[\]{},:\"']*)|([\[\]{},:]))"
)
DEEPEST = 4


def parse_flow(text: str) -> Any:
    """Return lists, mappings, texts and whole numbers.

    Raises
    ------
    ValueError
        If the text is something else.

    Examples
    --------
    >>> parse_flow('{"+region=us,+ssd": 2, -region=eu: 1}')
    {'+region=us,+ssd': 2, '-region=eu': 1}
    >>> parse_flow("[[+zone=a], [+zone=b, +ssd]]")
    [['+zone=a'], ['+zone=b', '+ssd']]
    """
    tokens: list[tuple[str, bool]] = []
    at = 0
    text = text.strip()
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"what is {text[at : at + 20]!r}?")
        mark = found[4] is not None
        word = next(part for part in found.groups() if part is not None)
        tokens.append((word if mark or found[3] is None else word.strip(), mark))
        at = found.end()
    value, end = _value(tokens, 0, 0)
    if end != len(tokens):
        raise ValueError(f"what is {tokens[end][0]!r} at the end?")
    return value


def _value(tokens: list[tuple[str, bool]], at: int, depth: int) -> tuple[Any, int]:
    if at >= len(tokens) or depth > DEEPEST:
        raise ValueError("it ends too soon" if at >= len(tokens) else "it is nested too deeply")
    word, mark = tokens[at]
    if not mark:
        plain = word.isascii() and word.isdecimal() and len(word) < 10
        return (int(word) if plain else word), at + 1
    if word not in "[{":
        raise ValueError(f"{word!r} is not expected")
    close = "]" if word == "[" else "}"
    listed: list[Any] = []
    mapped: dict[str, Any] = {}
    at += 1
    while tokens[at : at + 1] != [(close, True)]:
        value, at = _value(tokens, at, depth + 1)
        if close == "}":
            if tokens[at : at + 1] != [(":", True)] or not isinstance(value, str):
                raise ValueError(f"a text and a colon are expected, not {str(value)[:40]!r}")
            if value in mapped:
                raise ValueError(f"{value[:40]!r} stands there twice")
            mapped[value], at = _value(tokens, at + 1, depth + 1)
        else:
            listed.append(value)
        if tokens[at : at + 1] == [(",", True)]:
            at += 1
        elif tokens[at : at + 1] != [(close, True)]:
            raise ValueError("a comma or an end is expected")
    return (listed if close == "]" else mapped), at + 1
