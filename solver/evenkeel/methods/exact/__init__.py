"""Exact answers for small clusters: CP-SAT, with a proof."""
