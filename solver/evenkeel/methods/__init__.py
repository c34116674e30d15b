"""Methods: algorithms that make a placement, each with a name in the registry."""
