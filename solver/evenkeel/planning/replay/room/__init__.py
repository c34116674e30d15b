"""Room: whether places hold what comes, whatever the clock does."""
