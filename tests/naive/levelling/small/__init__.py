"""Plain twins of the kernels for small clusters."""
