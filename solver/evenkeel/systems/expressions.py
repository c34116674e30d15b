"""Names of other systems as words of our expressions, in which some characters mean something."""

from urllib.parse import quote

KEPT = " /:@()[]{}.*"
"""Characters, besides letters, digits and ``_.-~``, that mean nothing in an expression."""


def word(text: str) -> str:
    """Return a name as a word that an expression can hold; no two names become the same.

    Examples
    --------
    >>> word("ssd"), word("a=b,c")
    ('ssd', 'a%3Db%2Cc')
    """
    kept = quote(text, safe=KEPT, errors="surrogatepass")
    return kept if kept == kept.strip() else quote(text, safe="", errors="surrogatepass")
