"""Read and validate the arguments that describe a cluster."""
