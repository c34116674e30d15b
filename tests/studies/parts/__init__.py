"""Very large clusters in parts."""
