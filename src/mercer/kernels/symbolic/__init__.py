"""The symbolic form of a kernel: pairings of two rows, views of rows, elementwise functions, expressions."""
