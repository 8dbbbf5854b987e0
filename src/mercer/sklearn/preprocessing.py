"""`KernelCenterer`, which is scikit-learn's own: it takes a matrix that is there, and subtracts its means."""

from sklearn.preprocessing import KernelCenterer

__all__ = ["KernelCenterer"]
