"""Kernel canonical correlation and kernel partial least squares."""
