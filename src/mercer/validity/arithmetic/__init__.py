"""Exact and interval arithmetic, and the ranges of what a formula is made of."""
