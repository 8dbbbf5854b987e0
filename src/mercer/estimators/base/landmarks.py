"""Landmarks that an estimator chooses: how many, the memory they take, and the feature space they span."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.approx.landmarks import choose_landmarks
from mercer.approx.nystroem import inverse_root
from mercer.errors import InvalidInput, message
from mercer.factorizations.pivoted_cholesky import BLOCK
from mercer.gram import KernelOperator

__all__ = [
    "LandmarkSpan",
    "count_landmarks",
    "fewest_landmarks",
    "given_count",
    "landmark_bytes",
    "landmark_rows",
    "pool_rows",
]

POOL = 10
"""Rows for each landmark among which pivoted Cholesky chooses; more of them, drawn at random, add little but cost."""

CHECKED_WHOLE, CHECKED_ROWS = 20_000, 512
"""Rows up to which an approximation is compared with the kernel on all rows, and on how many of more."""

CHUNK = 1 << 22
"""Entries of k(rows, landmarks) at a time."""


def count_landmarks(n: int, k: int | None) -> int:
    """max(5k, √n log n), n at most.

    >>> count_landmarks(10_000, 10), count_landmarks(10_000, 500), count_landmarks(20, None)
    (921, 2500, 13)
    """
    return max(1, min(n, max(5 * (k or 0), int(np.sqrt(n) * np.log(n)))))


def fewest_landmarks(n: int, k: int | None) -> int:
    """max(2k, 20), n at most: a small budget lowers the default no further."""
    return min(n, max(2 * (k or 0), 20))


def given_count(who: str, how: Any, count: int | None) -> int | None:
    """The number of landmarks: that of an array, or `count`.

    >>> given_count("KernelPCA", "pivoted", None), given_count("KernelPCA", [3, 5], None)
    (None, 2)
    """
    if isinstance(how, str):
        return count
    m = int((np.shape(how) or (1,))[0])
    if m < 1:
        raise InvalidInput(message(who, f"landmarks={how!r}", "give at least one"))
    return m


def landmark_bytes(n: int, m: int) -> int:
    """Memory for m landmarks of n rows: four m × m matrices, the rows of the pool, and one chunk of features.

    >>> landmark_bytes(10**6, 1000)
    188708864
    """
    return 8 * (4 * m * m + min(n, POOL * m) * (m + 120) + 2 * min(n * m, CHUNK))


def pool_rows(K: KernelOperator, pool: int) -> int:
    """Bytes for this many rows among which landmarks are chosen, and for the engine's copies of them."""
    n, pool = K.shape[0], min(K.shape[0], pool)
    return (K.x.nbytes * pool // n if pool < n else 0) + K.copies_of_few(BLOCK, pool)


def landmark_rows(K: KernelOperator, m: int) -> int:
    """Bytes for the landmarks and for copies of rows: of the pool, or of a chunk of features or residuals."""
    n = K.shape[0]
    some, chunk = n if n <= CHECKED_WHOLE else CHECKED_ROWS, min(n, -(-CHUNK // m))
    one = K.x.nbytes / max(n, 1)
    checked = one * (some if some < n else 0) + K.copies_of(some, min(n, max(1, CHUNK // max(m, some))))
    return int(max(pool_rows(K, POOL * m), checked, K.copies_of(chunk, m)) + one * m)


class LandmarkSpan(NamedTuple):
    """The span of φ(b₁), …, φ(b_m), in which φ(x) has the coordinates K_mm^(−½) k_m(x)."""

    landmarks: Any
    """bⱼ, rows as the kernel takes them."""
    matrix: np.ndarray
    """K_mm in float64."""
    root: np.ndarray
    """K_mm^(−½) over the eigenvalues above rounding."""
    rank: int
    """How many eigenvalues these are."""

    @classmethod
    def chosen(cls, who: str, how: Any, K: KernelOperator, X: Any, m: int, seed: int) -> LandmarkSpan:
        """Up to m landmarks among the rows X of K, or the given ones; `how` is that of `choose_landmarks`."""
        _, landmarks = choose_landmarks(who, how, K, X, m, seed, POOL * m)
        matrix = cls.between(landmarks, K)
        # Entries are in float64 for float32 rows too, so that the root may be cut at float64's rounding.
        return cls(landmarks, matrix, *inverse_root(matrix, float(np.finfo(np.float64).eps)))

    @staticmethod
    def between(landmarks: Any, K: KernelOperator) -> np.ndarray:
        """K_mm in float64; a precomputed kernel's is in the matrix of the fit."""
        if K.kernel.space.numbered:
            return np.asarray(K.block(landmarks, landmarks), np.float64)
        return np.asarray(KernelOperator(K.kernel, landmarks, dtype=np.float64).toarray())
