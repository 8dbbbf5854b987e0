"""``mercer compare``: methods and kernels on one table, by nested cross-validation."""
