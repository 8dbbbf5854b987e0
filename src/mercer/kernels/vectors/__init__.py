"""Kernels on vectors, by formulas over pairings; a kernel is named in its module alone."""
