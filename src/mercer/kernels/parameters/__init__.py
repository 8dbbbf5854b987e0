"""Parameters of kernels: checks of values, equality, and rules that are resolved from data."""
