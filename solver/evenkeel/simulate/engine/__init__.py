"""The simulator: its event loop, the simulated cluster, the recorded history, and checks."""
