"""Kernels on vectors, by formulas over pairings."""
