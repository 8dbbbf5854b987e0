"""Solvers of (K + diag(shift)) x = b."""

from mercer.solvers.linear.system import LinearSystem

__all__ = ["LinearSystem"]
