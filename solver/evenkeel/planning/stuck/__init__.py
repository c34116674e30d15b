"""Stuck: what waits in vain is let loose by other orders and by detours."""
