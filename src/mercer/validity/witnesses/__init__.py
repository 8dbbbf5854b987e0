"""Point sets that refute a kernel: the search for them, and their confirmation by rigorous bounds."""
