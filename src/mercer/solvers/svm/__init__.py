"""Solvers of the duals of support vector machines."""
