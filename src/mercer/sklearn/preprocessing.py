"""`KernelCenterer`, which is scikit-learn's own: it takes a computed matrix, and subtracts its means."""

from sklearn.preprocessing import KernelCenterer

__all__ = ["KernelCenterer"]
