"""CockroachDB's cases by category; each module has CATEGORIES, from names to what answers them."""
