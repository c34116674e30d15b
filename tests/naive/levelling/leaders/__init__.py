"""Plain twins of the kernels that level leaders."""
