"""Stand-ins of systems: minimal programs that replace their tools and keep state in JSON."""
