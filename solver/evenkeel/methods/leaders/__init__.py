"""The ``leaders`` method: who leads, replicas staying where they are."""
