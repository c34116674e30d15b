"""Who decides in a simulation: a method, a pipeline, or every node by itself."""
