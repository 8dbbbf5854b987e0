"""Gaussian processes: distributions of functions, given rows and targets."""
