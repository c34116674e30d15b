"""The ``balance`` method with a ``Cost``: minimise a weighted sum."""
