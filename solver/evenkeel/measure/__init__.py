"""Judge placements: audit, bounds and comparison, in numpy alone, independent of the kernels."""
