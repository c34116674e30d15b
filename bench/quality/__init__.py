"""How good the answers are, as tables."""
