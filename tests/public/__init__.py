"""Situations that users reported in public, and what is right for each."""
