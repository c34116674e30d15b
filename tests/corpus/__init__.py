"""Digests of answers to stored inputs: every method, plans, sessions, readers and commands."""
