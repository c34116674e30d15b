"""Account: what a plan says of itself, why its steps wait and how far it has come."""
