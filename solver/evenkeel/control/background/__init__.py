"""Background calculations of a pipeline, and the executors that run them."""
