"""Commands that ask what would be: simulations, sweeps and frontiers."""
