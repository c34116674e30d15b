"""Controllers of a simulation: a method, a plan, a pipeline, or every node by itself."""
