"""Changes: what each partition goes through on its way, and what must hold meanwhile."""
