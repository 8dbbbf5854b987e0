"""How much training points, and positions of a sequence, contribute to f(x) = b + Σⱼ αⱼ k(x, xⱼ)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.estimators.base.expansion import Expansion
from mercer.estimators.base.indefinite import known_values
from mercer.kernels.sequences import position_weights as weights_of_positions
from mercer.points import points_of

__all__ = ["Explanation", "explain", "position_weights"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Contributions αⱼ k(x, xⱼ) of training points to an output at some rows; with the intercept they sum to it.

    Attributes
    ----------
    output : str
        The name of the explained output.
    prediction : array of shape (rows,)
        f(x).
    intercept : float
        b: prediction = intercept + contributions.sum(axis=1).
    contributions : array of shape (rows, n)
        αⱼ k(x, xⱼ), in the order of the training points.
    similarities : array of shape (rows, n)
        k(x, xⱼ).
    coefficients : array of shape (n,)
        αⱼ.
    order : array of int of shape (rows, n)
        Training points by falling |contribution|: places in `X_fit_`, which has no rows of weight 0.
    points : str
        The kind of the points: "training point", "landmark", "support vector" or "kept row".
    parts : list or None
        For kernels that can tell it: for each row what its parts contribute, as (part, weight). Those of a sequence
        are its positions with their symbols, for the kernels that `position_weights` knows.
    rows : array of int of shape (n,) or None
        Of support vectors, their rows in the fit.

    Examples
    --------
    >>> import mercer
    >>> from mercer.kernels import Gaussian
    >>> model = mercer.KernelRidge(Gaussian(gamma=1.0), alpha=0.01).fit([[0.0], [1.0], [5.0]], [1.0, 2.0, 7.0])
    >>> print(mercer.explain(model, [[0.9]]))
    f(x) = 1.99 = 0 (intercept) + 3 terms αⱼ k(x, xⱼ)
      1.85      1.87 × 0.99        training point 1
      0.138     0.31 × 0.445       training point 0
      3.47e-07  6.93 × 5.01e-08    training point 2
    """

    output: str
    prediction: np.ndarray
    intercept: float
    contributions: np.ndarray
    similarities: np.ndarray
    coefficients: np.ndarray
    order: np.ndarray = field(repr=False)
    points: str = "training point"
    parts: list[Any] | None = None
    rows: np.ndarray | None = field(default=None, repr=False)

    def named(self, j: int) -> str:
        """The training point with this place, and its row in the fit if the places are not those of the rows."""
        return f"{self.points} {j}" + ("" if self.rows is None else f", row {self.rows[j]}")

    def top(self, count: int = 5, row: int = 0) -> list[tuple[int, float]]:
        """The training points that carry most of a row's output, with their contributions.

        >>> import mercer
        >>> model = mercer.KernelRidge("linear", alpha=1.0).fit([[1.0], [-3.0]], [1.0, -3.0])
        >>> mercer.explain(model, [2.0]).top(1)[0][0]
        1
        """
        return [(int(j), float(self.contributions[row, j])) for j in self.order[row, :count]]

    def lines(self, row: int = 0, count: int = 5) -> Iterator[str]:
        """The lines of text for one row."""
        n = self.contributions.shape[1]
        name = "f" if self.output == "" else f"f[{self.output}]"
        yield (f"{name}(x) = {self.prediction[row]:.3g} = {self.intercept:.3g} (intercept) + {n} terms αⱼ k(x, xⱼ)")
        for j in self.order[row, :count]:
            terms = f"{self.coefficients[j]:.3g} × {self.similarities[row, j]:.3g}"
            yield f"  {self.contributions[row, j]:<8.3g}  {terms:<17}  {self.named(j)}"
        if n > count:
            rest = self.contributions[row, self.order[row, count:]]
            yield f"  {rest.sum():<8.3g}  the other {len(rest)}"
        for part, weight in [] if self.parts is None else self.parts[row][:count]:
            yield f"  {weight:<8.3g}  part {part!r}"

    def __str__(self) -> str:
        return "\n".join(line for row in range(min(len(self.prediction), 5)) for line in self.lines(row))


def explain(model: Any, X: Any, output: int | None = None) -> Explanation:
    """The terms αⱼ k(x, xⱼ) of a model's output at x, sorted by size: the training points that carry it.

    Parameters
    ----------
    model : fitted estimator, or a pipeline, search or model of a table (of ``mercer fit``) that ends with one
        One whose output is a kernel expansion f(x) = b + Σⱼ αⱼ k(x, xⱼ): ridge regression and classification (the
        decision function), least mean squares, discriminants, kernel PCA, partial least squares, canonical correlation
        (first view), support vector machines (each pair of classes), online learners. On landmarks the points are
        these, of online learners the rows that they kept.
    X : a row, array-like of shape (rows, d), or a sequence of objects
    output : int, optional
        The target, class (as its place in ``classes_``) or component; by default the first. Of two classes the decision
        function has one output, which is positive for the second.

    Returns
    -------
    Explanation

    Raises
    ------
    InvalidInput
        For models whose output is not a kernel expansion (distances, clusters).

    Notes
    -----
    A contribution is not a cause: points that are alike share what one of them alone would carry.

    An estimator takes part by ``_expansion()``, which returns an `Expansion`; a kernel with parts (positions, k-mers)
    by ``weights_of_parts(x, points, coefficients)``, a list of (part, weight) whose weights sum to Σⱼ αⱼ k(x, xⱼ).

    Examples
    --------
    >>> import numpy as np, mercer
    >>> X = np.linspace(0, 6, 30).reshape(-1, 1)
    >>> model = mercer.KernelRidge("gaussian(gamma=1.0)", alpha=0.1, fit_intercept=True).fit(X, np.sin(X).ravel())
    >>> found = mercer.explain(model, [[1.5]])
    >>> bool(np.isclose(found.intercept + found.contributions.sum(), model.predict([[1.5]])[0]))
    True
    """
    model, rows, expansion, place = _opened("explain", model, X, output)
    cross = model._cross(rows)
    K = known_values(np.asarray(cross.toarray(), np.float64), cross, "explain")
    alpha = np.asarray(expansion.coefficients[:, place], np.float64)
    terms = K * alpha
    order = np.argsort(-np.abs(terms), axis=1, kind="stable")
    bias = float(expansion.intercept[place])
    return Explanation(
        output=expansion.names[place],
        prediction=bias + terms.sum(axis=1),
        intercept=bias,
        contributions=terms,
        similarities=K,
        coefficients=alpha,
        order=order,
        points=expansion.points,
        parts=_parts(model, rows, alpha),
        rows=expansion.rows,
    )


def position_weights(model: Any, X: Any, output: int | None = None) -> list[np.ndarray]:
    """How much each position of each sequence x adds to a model's output f(x) = b + Σⱼ αⱼ k(x, xⱼ).

    The sum over the positions of x is f(x) − b, less what constants in the kernel add.

    Parameters
    ----------
    model : fitted estimator, or a pipeline or search that ends with one
        As for `explain`, with `Spectrum`, `GappedKmer` or `Mismatch`, or sums, multiples and normalised forms of them.
    X : sequences, or one string
    output : int, optional
        As for `explain`.

    Returns
    -------
    list of arrays
        For each x one number for each of its symbols: characters, or tokens; words if all parts of the kernel count
        words.

    Raises
    ------
    InvalidInput
        For other models and kernels.

    Notes
    -----
    A window of x adds Σⱼ αⱼ · (how often xⱼ has what the window shows). Each of the k symbols that are compared gets
    one k-th of it: for `Spectrum` all of the window, for `GappedKmer` and `Mismatch` those of each choice of places. A
    position is in several windows and has the sum. A normalised kernel divides the weights of x by √k(x, x), which
    depends on all of its positions: the weights still sum to f(x) − b, but f would not change by the weight of a
    position if its symbol changed.

    Examples
    --------
    >>> import mercer, numpy as np
    >>> from mercer.kernels import Spectrum
    >>> model = mercer.KernelRidgeClassifier(Spectrum(2)).fit(["xxab", "abyy", "xxyy", "yxyx"], [1, 1, 0, 0])
    >>> (weights,) = mercer.position_weights(model, ["yyabx"])
    >>> int(weights.argmax())
    2
    >>> bool(np.isclose(weights.sum() + model.intercept_[0], model.decision_function(["yyabx"])[0]))
    True
    """
    model, rows, expansion, place = _opened("position_weights", model, X, output)
    if not model._space().objects:
        given = f"{model.kernel_!r:.80}, whose rows are not sequences"
        do = "use Spectrum, GappedKmer or Mismatch, or sums, multiples and normalised forms of them"
        raise InvalidInput(message(f"position_weights({type(model).__name__})", given, do))
    alpha = np.asarray(expansion.coefficients[:, place], np.float64)
    return weights_of_positions(model.kernel_, model.kernel_.as_objects(rows), model.X_fit_, alpha)


def _opened(who: str, model: Any, X: Any, output: int | None) -> tuple[Any, Any, Expansion, int]:
    """The estimator within, the rows as it sees them, its expansion, and the column of the output in the expansion."""
    model, X = _innermost(model, X)
    who = f"{who}({type(model).__name__})"
    expansion: Expansion | None = model._expansion() if hasattr(model, "_expansion") else None
    if expansion is None:
        given = "its output is not a sum of terms αⱼ k(x, xⱼ)"
        do = "explain a ridge model, a support vector machine, a discriminant, or scores of components"
        raise InvalidInput(message(who, given, do))
    check_is_fitted(model)
    return model, _rows(model, X), expansion, _place(who, expansion, output)


def _innermost(model: Any, X: Any) -> tuple[Any, Any]:
    """The estimator within searches, pipelines and models of tables, and the rows as it sees them."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            X, model = (model[:-1].transform(X) if len(model.steps) > 1 else X), model[-1]
        elif hasattr(model, "_explained"):
            model, X = model._explained(X)
        else:
            return model, X


def _rows(model: Any, X: Any) -> Any:
    """A single row as a table of one row."""
    if model._space().objects:
        return [X] if isinstance(X, str) else X
    if points_of(X).columns:
        return X
    table = np.asarray(X)
    return table[None, :] if table.ndim == 1 else table


def _place(who: str, expansion: Expansion, output: int | None) -> int:
    outputs = expansion.coefficients.shape[1]
    place = 0 if output is None else output
    if isinstance(place, bool) or not isinstance(place, int | np.integer) or not 0 <= place < outputs:
        raise InvalidInput(message(who, f"output={output!r}", f"give a whole number from 0 to {outputs - 1}"))
    return int(place)


def _parts(model: Any, rows: Any, alpha: np.ndarray) -> list[Any] | None:
    """The contributions of the parts of each row, for kernels that define parts."""
    weights = getattr(model.kernel_, "weights_of_parts", None)
    if weights is None:
        return None if not model._space().objects else _positions(model, rows, alpha)
    return [sorted(weights(x, model.X_fit_, alpha), key=lambda one: -abs(one[1])) for x in rows]


def _positions(model: Any, rows: Any, alpha: np.ndarray) -> list[Any] | None:
    """The contribution of each position of a sequence, with its symbol, if the kernel has such features."""
    rows = model.kernel_.as_objects(rows)
    try:
        found = weights_of_positions(model.kernel_, rows, model.X_fit_, alpha)
    except InvalidInput:
        return None
    parts = []
    for x, weights in zip(rows, found, strict=True):
        symbols = x if len(x) == len(weights) else x.split()
        pairs = zip(enumerate(symbols), weights.tolist(), strict=True)
        parts.append(sorted(pairs, key=lambda one: -abs(one[1])))
    return parts
