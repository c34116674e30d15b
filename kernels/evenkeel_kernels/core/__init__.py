"""What every search shares: the problem, its incremental state, feasibility, scans and hashes."""
