"""Events of a simulation: failures, drains, added nodes, changes of load."""
