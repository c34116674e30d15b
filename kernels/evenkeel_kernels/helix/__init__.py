"""Kernels of Apache Helix's strategies, bit for bit."""
