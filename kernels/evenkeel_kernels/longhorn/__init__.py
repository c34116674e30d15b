"""Kernels of Longhorn's replica auto-balance."""
