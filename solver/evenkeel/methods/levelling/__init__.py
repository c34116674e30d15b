"""The ``balance`` method with ``Goals``: mend, place, and level with the fewest moves."""
