"""Plan the steps from one placement to another, safe at every instant."""
