"""Control: what runs again and again on a cluster that changes."""
