"""Resources of the scheduler: capacity of nodes, domains and groups, and throttles."""
