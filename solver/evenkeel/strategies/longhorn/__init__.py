"""Longhorn: replica auto-balance and replica scheduling, and a plan for all volumes at once."""
