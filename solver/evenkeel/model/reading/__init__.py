"""Read and validate single values, arrays and names."""
