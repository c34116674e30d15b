"""The ``leaders`` method: choose leaders of a fixed placement."""
