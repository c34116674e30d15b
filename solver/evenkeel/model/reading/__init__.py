"""Single values, arrays and names as people hand them in."""
