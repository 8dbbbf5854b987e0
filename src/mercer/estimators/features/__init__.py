"""Explicit features: Nyström's, random Fourier, polynomial sketches, the empirical kernel map."""
