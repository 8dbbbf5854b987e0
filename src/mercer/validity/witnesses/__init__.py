"""Point sets that refute a kernel: the search for them, and the bound that makes one certain."""
