"""Clusters that never were: scenarios to try strategies on."""
