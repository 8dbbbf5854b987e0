"""Linear operators that need not be matrices: sums, scalings, products, centring."""

from mercer.operators.base import Operator, row_blocks  # isort: skip - the module that the others stand on
from mercer.operators.algebra import (
    Cast,
    Foreign,
    Product,
    Scaled,
    Sum,
    Transposed,
    as_operator,
)
from mercer.operators.caching import CachedRows, Submatrix
from mercer.operators.centering import Centered, Weighted, center_cross
from mercer.operators.dense import Bordered, Dense, Diagonal, Identity, LowRank, product
from mercer.operators.norm import estimate_norm
from mercer.operators.quantised import Quantised

__all__ = [
    "Bordered",
    "CachedRows",
    "Cast",
    "Centered",
    "Dense",
    "Diagonal",
    "Foreign",
    "Identity",
    "LowRank",
    "Operator",
    "Product",
    "Quantised",
    "Scaled",
    "Submatrix",
    "Sum",
    "Transposed",
    "Weighted",
    "as_operator",
    "center_cross",
    "estimate_norm",
    "product",
    "row_blocks",
]


def __dir__() -> list[str]:
    return sorted(__all__)
