"""Systems as small as can be: programs that stand in for their tools and keep a state in JSON."""
