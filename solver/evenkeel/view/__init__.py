"""Views: what a result looks like to a person, and no decisions."""
