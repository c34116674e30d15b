"""Read and write plans as JSON files, with one step per line."""
