"""Random dumps of systems, as their tools print them: a module with ``dump(draw)`` for each."""
