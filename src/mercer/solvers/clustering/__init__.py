"""Lloyd's algorithm in feature space, and its initial clusters."""
