"""CPU time of the main calls, warm."""
