"""Plans as folders, carried out against stand-ins of systems."""
