"""Kernels on vectors, each by its formula over pairings."""
