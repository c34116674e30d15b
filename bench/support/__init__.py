"""Inputs, references and timing that benchmarks share."""
