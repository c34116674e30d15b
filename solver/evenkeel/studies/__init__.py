"""Studies that solve one cluster many times, such as sweeps and frontiers."""
