"""Random dumps of systems, as their tools print them: a module each, and ``dump(draw)`` in it."""
