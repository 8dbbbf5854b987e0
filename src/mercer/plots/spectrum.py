"""The eigenvalues of a kernel matrix, and which of them are rounding."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.engine.backend import one_blas_thread
from mercer.planning import costs
from mercer.plots.drawing.display import Display, drawn_of
from mercer.plots.drawing.matrices import kernel_of, matrix_drawn, matrix_of
from mercer.plots.drawing.style import FAINT, NEGATIVE, POSITIVE
from mercer.points import count

__all__ = ["SpectrumDisplay"]

MOST_ROWS = 1000


class SpectrumDisplay(Display):
    """|λⱼ|/max|λ| of the kernel matrix in falling order, on a logarithmic scale, with those below 0 in blue.

    The grey band is what rounding explains, |λ| ≤ eps·n·max|λ|. A negative eigenvalue above it shows that the matrix
    is not positive semi-definite, and so that the function is not a Mercer kernel.

    Parameters
    ----------
    eigenvalues : array of shape (n,)
    threshold : float
        eps·n: where the band ends.
    notes : tuple of str

    Attributes
    ----------
    positive_, negative_ : Line2D
    band_ : Polygon
    is_indefinite_ : bool
        Whether an eigenvalue is more negative than rounding explains.
    ax_, figure_, notes_
        See `Display`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.plots import SpectrumDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> SpectrumDisplay.from_kernel("gaussian(gamma=1.0)", X).is_indefinite_
    False
    >>> SpectrumDisplay.from_kernel("sigmoid(gamma=1.0, coef0=-1.0)", X).is_indefinite_
    True
    """

    def __init__(self, eigenvalues: np.ndarray, *, threshold: float, notes: tuple[str, ...] = ()) -> None:
        self.eigenvalues = eigenvalues
        self.threshold = threshold
        self.notes = notes

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw the spectrum of a model's kernel on rows.

        Parameters
        ----------
        estimator : fitted estimator of mercer
        X : array-like of shape (n, d), or objects that its kernel takes
            Of more than 1000 as many are used.
        ax : Axes, optional

        Raises
        ------
        InvalidInput
        sklearn.exceptions.NotFittedError
        """
        return cls.from_kernel(kernel_of(estimator, cls.__name__), X, ax=ax)

    @classmethod
    def from_kernel(cls, kernel: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw the spectrum of a kernel, a name or a formula on rows."""
        return cls._of(*matrix_of(kernel, X, MOST_ROWS, cls.__name__), count(X), ax)

    @classmethod
    def from_matrix(cls, K: Any, *, ax: Any = None) -> Self:
        """Draw the spectrum of a kernel matrix of shape (n, n)."""
        return cls._of(*matrix_drawn(K, MOST_ROWS, cls.__name__), len(K), ax)

    @classmethod
    def _of(cls, K: np.ndarray, drawn: np.ndarray, n: int, ax: Any) -> Self:
        unit = float(np.finfo(K.dtype if K.dtype == np.float32 else np.float64).eps)
        with one_blas_thread(costs.eigen_operations(len(K))):
            values = np.linalg.eigvalsh((K + K.T).astype(np.float64) / 2)
        return cls(values, threshold=unit * len(K), notes=(drawn_of(len(drawn), n),)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in these axes or in new ones."""
        ax = self._one(ax)
        size = float(np.abs(self.eigenvalues).max()) or 1.0
        ratios = self.eigenvalues[np.argsort(-np.abs(self.eigenvalues), kind="stable")] / size
        place, low = np.arange(1, len(ratios) + 1), self.threshold / 1e3
        shown, dots = np.maximum(np.abs(ratios), low), {"linestyle": "none", "markersize": 4}
        up = ratios >= 0
        (self.positive_,) = ax.plot(place[up], shown[up], marker="o", color=POSITIVE, label="λ ≥ 0", **dots)
        (self.negative_,) = ax.plot(place[~up], shown[~up], marker="v", color=NEGATIVE, label="λ < 0", **dots)
        self.band_ = ax.axhspan(low, self.threshold, color=FAINT, alpha=0.25, linewidth=0, label="rounding")
        self.is_indefinite_ = bool(ratios.min() < -self.threshold)
        ax.set(yscale="log", ylim=(low, 4), xlabel="eigenvalue, by size", ylabel="|λ| / max |λ|")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_title(self._verdict(ratios), fontsize="medium")
        ax.legend(fontsize="small", loc="best" if len(ratios) <= 20 else "upper right")
        self._note(ax, *self.notes)
        return self

    def _verdict(self, ratios: np.ndarray) -> str:
        """What the spectrum says of the matrix."""
        if self.is_indefinite_:
            return f"indefinite: λmin / max |λ| = {ratios.min():.2g}"
        rank = int(np.count_nonzero(ratios > self.threshold))
        return f"positive semi-definite to rounding, rank {rank} of {len(ratios)}"
