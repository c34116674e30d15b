"""Plans as folders that an operator reviews, and runs on the real system wave by wave."""
