"""Files in and out: one room per system, and no decisions."""
