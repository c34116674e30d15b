"""Controllers of a simulation: a method, a plan or a pipeline."""
