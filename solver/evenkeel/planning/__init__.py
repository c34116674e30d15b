"""Planning: from two placements to steps that are safe at every instant."""
