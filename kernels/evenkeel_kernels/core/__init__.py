"""Code that all searches share: problem, incremental state, feasibility, scans and hashes."""
