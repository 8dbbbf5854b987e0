"""Lloyd's algorithm in feature space, and its starts."""
