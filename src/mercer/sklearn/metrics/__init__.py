"""`pairwise`: kernel matrices with scikit-learn's words."""

from mercer.sklearn.metrics import pairwise

__all__ = ["pairwise"]


def __dir__() -> list[str]:
    return sorted(__all__)
