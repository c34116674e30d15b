"""Resources: what changes take from nodes, domains, groups and throttles."""
