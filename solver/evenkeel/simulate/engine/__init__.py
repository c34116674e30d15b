"""The simulated world, and what is measured of it."""
