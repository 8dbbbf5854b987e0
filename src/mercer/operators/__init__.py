"""Linear operators that need not be stored as matrices: sums, multiples, products, centring."""

from mercer.operators.arrays import product, row_blocks
from mercer.operators.base import (
    Cast,
    Dense,
    Foreign,
    Operator,
    Product,
    Scaled,
    Submatrix,
    Sum,
    Transposed,
    as_operator,
)
from mercer.operators.cached import CachedRows, StoredLater
from mercer.operators.centering import Centered, Weighted, center_cross
from mercer.operators.norm import estimate_norm
from mercer.operators.packed import Packed
from mercer.operators.quantised import Quantised
from mercer.operators.structured import Bordered, Diagonal, Identity, LowRank

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
    "Packed",
    "Product",
    "Quantised",
    "Scaled",
    "StoredLater",
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
