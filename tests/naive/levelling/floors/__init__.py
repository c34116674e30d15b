"""Plain twins of the kernels that fill nodes up to their floors."""
