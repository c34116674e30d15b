"""A cluster held ready: changes in, audited answers out, at the cost of the change."""
