"""What the end of a plan breaks, told in a sentence."""

from collections.abc import Mapping


def told_regressions(counts: Mapping[str, int]) -> str:
    """Say what an end breaks that its beginning keeps; nothing where it breaks nothing.

    Examples
    --------
    >>> told_regressions({"spread": 3, "not_kept": 1})
    ' Its end breaks rules that the beginning keeps: spread 3, not_kept 1.'
    """
    if not counts:
        return ""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in counts.items())
    return f" Its end breaks rules that the beginning keeps: {kinds}."
