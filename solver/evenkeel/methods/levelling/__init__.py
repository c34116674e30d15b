"""The ``balance`` method with ``Goals``: repair, place, and balance with the fewest moves."""
