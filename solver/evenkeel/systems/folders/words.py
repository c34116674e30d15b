"""Names of others in texts for people: nothing in them does anything where the text goes."""

import re

LONGEST = 120
"""Characters of a name that are shown."""


def shown(name: str) -> str:
    r"""Return a name as one harmless word, in quotes unless it is plain.

    Examples
    --------
    >>> shown("orders-17"), shown("a\n`b`")
    ('orders-17', '"a\\n\\u0060b\\u0060"')
    """
    if re.fullmatch(r"[A-Za-z0-9_.:@/%+-]{1,120}", name, re.ASCII):
        return name
    return f'"{plain(name[:LONGEST])}"' + ("..." if len(name) > LONGEST else "")


def plain(text: str) -> str:
    """Return a text in which all but plain letters, digits and signs are numbers."""
    return re.sub(r"[^A-Za-z0-9_.:@/%+ =,;()-]", _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return {"\n": r"\n", "\t": r"\t"}.get(found[0], f"\\u{ord(found[0]):04x}")
