"""Proofs that a formula is positive semi-definite, by closure rules."""
