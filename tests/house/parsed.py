"""Source, parsed once for all tests that look at it."""

import ast
import functools


@functools.cache
def parsed(source: str) -> ast.Module:
    """Return the tree of a module; who reads it does not change it."""
    return ast.parse(source)
