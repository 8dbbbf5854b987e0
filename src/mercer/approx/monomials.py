"""Explicit feature maps of polynomial kernels ("Kernel methods", eqs. 5.1 and 5.4 to 5.9)."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import comb, factorial, prod
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from mercer.atomic import Atomic
from mercer.errors import InvalidInput, message
from mercer.mixins import BaseEstimator, TransformerMixin
from mercer.points import on_host, parse_memory, require, require_table
from mercer.schemas import COLUMNS, Count, Schema

__all__ = ["MonomialFeatures"]

MOST_FEATURES = 10_000_000
"""More features are refused: even their names would take too much memory."""

HIGHEST_DEGREE = 1000


class MonomialFeatures(Atomic, TransformerMixin, BaseEstimator):
    r"""φ(x) = all monomials of x of some degrees, with weights such that ⟨φ(x), φ(z)⟩ = k(x, z).

    ========  ==========================  ==========================================================================
    kind      k(x, z) with s = ⟨x, z⟩     φ(x)
    ========  ==========================  ==========================================================================
    "power"   s^k                         x_i₁ ⋯ x_iₖ for all tuples of k indices
    "all"     (s + c)^k                   √(C(k, j) c^(k−j)) times those of j indices, j = k, …, 0
    "sum"     1 + s + … + s^k             those of j indices, j = 0, …, k: (5.5) is k = 3
    ========  ==========================  ==========================================================================

    Parameters
    ----------
    degree : int from 1 to 1000, default 3
        k.
    coef0 : float ≥ 0, default 1.0
        c; used by the kind "all".
    kind : {"power", "all", "sum"}, default "sum"
        The kernel is `Polynomial(k, coef0=0)`, `Polynomial(k, coef0=c)` or `MonomialSum(k)`.
    distinct : bool, default False
        By default x₁x₂ and x₂x₁ are separate features, as in the chapter: 1 + d + d² + d³ features. With True each
        monomial occurs once, times the square root of its multiplicity: C(d + k, k) features with the same inner
        products.
    memory : int, str or None
        Budget for the result of `transform`, in bytes or as "2GB"; None means half of the free memory.

    Attributes
    ----------
    n_output_features_ : int
        Number of features.
    n_features_in_ : int
        Columns of X.

    Raises
    ------
    InvalidInput
        If the features are too many to be built.

    Examples
    --------
    >>> MonomialFeatures(2, kind="power").fit_transform([[1.0, 2.0, 3.0]])
    array([[1., 2., 3., 2., 4., 6., 3., 6., 9.]])
    >>> MonomialFeatures(3).fit_transform([[2.0]])
    array([[1., 2., 4., 8.]])
    >>> features = MonomialFeatures(2, 0.5, kind="all", distinct=True).fit([[1.0, 2.0]])
    >>> features.transform([[1.0, 2.0]]).round(4)
    array([[1.    , 2.8284, 4.    , 1.    , 2.    , 0.5   ]])
    >>> features.get_feature_names_out().tolist()
    ['x0 x0', 'x0 x1', 'x1 x1', 'x0', 'x1', '1']
    """

    fitted: ClassVar[Schema] = COLUMNS + Schema(Count("n_output_features_"))

    def __init__(
        self,
        degree: int = 3,
        coef0: float = 1.0,
        kind: Literal["power", "all", "sum"] = "sum",
        *,
        distinct: bool = False,
        memory: float | str | None = None,
    ) -> None:
        self.degree = degree
        self.coef0 = coef0
        self.kind = kind
        self.distinct = distinct
        self.memory = memory

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the features, and raise MemoryExceeded if those of X exceed the budget; y is ignored."""
        self._check_parameters()
        X = on_host(X, "MonomialFeatures")
        require_table(X, "MonomialFeatures")
        X = validate_data(self, X, dtype=(np.float64, np.float32))
        self.n_output_features_ = sum(self._count(j) for j, _ in self._orders())
        if self.n_output_features_ > MOST_FEATURES:
            many = self.n_output_features_  # can have more digits than Python prints
            count = str(many) if many < 10**18 else "more than 10¹⁸"
            given = f"degree={self.degree} on {X.shape[1]} columns, which gives {count} features"
            do = f"use the kernel itself, which costs O(d) per pair; at most {MOST_FEATURES} features are built"
            raise InvalidInput(message("MonomialFeatures", given, do))
        self._require(X)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """φ of each row, of shape (m, features), in the dtype of X."""
        check_is_fitted(self)
        X = on_host(X, "MonomialFeatures")
        require_table(X, "MonomialFeatures")
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32))
        self._require(X)
        blocks, weights = {0: np.ones((len(X), 1), X.dtype)}, dict(self._orders())
        for j in range(1, self.degree + 1):
            blocks[j] = self._distinct(X, j) if self.distinct else _times(blocks[j - 1], X)
        return np.hstack([X.dtype.type(weight) * blocks[j] for j, weight in weights.items()])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The monomials as products of column names; the constant is "1"."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        tuples = combinations_with_replacement if self.distinct else _all_tuples
        return np.array([" ".join(t) or "1" for j, _ in self._orders() for t in tuples(names, j)], dtype=object)

    # ---- the table --------------------------------------------------------------------------------------------------

    def _orders(self) -> list[tuple[int, float]]:
        """(j, weight) for each degree j, in the order of the features."""
        k, c = int(self.degree), float(self.coef0)
        if self.kind == "power":
            return [(k, 1.0)]
        if self.kind == "sum":
            return [(j, 1.0) for j in range(k + 1)]
        return [(j, float(np.sqrt(comb(k, j) * c ** (k - j)))) for j in range(k, -1, -1) if c > 0 or j == k]

    def _count(self, j: int) -> int:
        d = self.n_features_in_
        return comb(d + j - 1, j) if self.distinct else d**j

    def _distinct(self, X: np.ndarray, j: int) -> np.ndarray:
        """Each monomial of degree j once, times √(j!/Π mᵢ!) with the exponents mᵢ."""
        index = np.array(list(combinations_with_replacement(range(X.shape[1]), j)))
        times = [
            factorial(j) // prod(factorial(m) for m in np.unique(t, return_counts=True)[1].tolist()) for t in index
        ]
        out = np.sqrt(np.array(times, np.float64)).astype(X.dtype) * X[:, index[:, 0]]
        for column in index.T[1:]:
            out *= X[:, column]
        return out

    def _check_parameters(self) -> None:
        def refuse(name: str, do: str) -> None:
            raise InvalidInput(message("MonomialFeatures", f"{name}={getattr(self, name)!r}", do))

        k = self.degree
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            refuse("degree", "give an integer ≥ 1")
        if k > HIGHEST_DEGREE:
            refuse("degree", f"give at most {HIGHEST_DEGREE}: features of higher degrees overflow")
        if self.kind not in ("power", "all", "sum"):
            refuse("kind", 'choose "power", "all" or "sum"')
        if not (isinstance(self.coef0, Real) and 0 <= self.coef0 < np.inf):
            refuse("coef0", "give a number ≥ 0: with a negative one k is not a Mercer kernel")

    def _require(self, X: np.ndarray) -> None:
        what = f"MonomialFeatures of {len(X)} rows and {self.n_output_features_} features"
        need = 2 * X.dtype.itemsize * len(X) * self.n_output_features_
        do = ["fewer rows at a time", "the kernel instead of its features"]
        require(need, parse_memory(self.memory), what, do)


def _times(block: np.ndarray, X: np.ndarray) -> np.ndarray:
    """All products of a monomial and a coordinate; the coordinate varies fastest."""
    return (block[:, :, None] * X[:, None, :]).reshape(len(X), -1)


def _all_tuples(names: Any, j: int) -> Any:
    return product(names, repeat=j)
