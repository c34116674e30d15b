"""Plans as folders: what an operator reviews and runs on the real system, wave by wave."""
