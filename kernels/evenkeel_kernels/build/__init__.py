"""How kernels are compiled, cached and counted: the decorators every kernel wears."""
