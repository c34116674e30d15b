"""Evenkeel decides where replicas live."""
