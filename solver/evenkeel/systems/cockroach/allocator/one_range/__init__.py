"""One decision about one range, as the simulator asks for it."""
