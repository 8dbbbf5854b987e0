"""Exact and interval arithmetic on formulas, and the ranges of their values."""
