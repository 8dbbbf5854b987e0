"""The kernel perceptron: gradient descent in α (slides on kernel methods), and the rule that learns from mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.estimators.base.classifier import ScoreClassifier, top_class
from mercer.estimators.base.expansion import Expansion
from mercer.estimators.base.indefinite import known_values
from mercer.estimators.base.labels import labelled
from mercer.estimators.descent.learning import EARLY, check_descent, frames_kept, largest_eigenvalue, made_all_steps
from mercer.estimators.ridge.least_squares import LeastSquaresClassifier
from mercer.gram import KernelOperator
from mercer.keeping import Trail
from mercer.operators import Operator
from mercer.schemas import Array, Count, Indices, Record, Schema
from mercer.solvers import (
    BatchLMS,
    ClassificationProblem,
    LeastSquares,
    LMSState,
    PerceptronRule,
    PerceptronState,
    Solution,
    Status,
    solve,
)

__all__ = ["KernelPerceptron"]

STEP_SHARE = 0.95
"""The step size is this over λmax, the limit below which the objective falls: the rest is for the error of λmax."""

METHODS = ("gradient", "plain", "voted", "averaged")

VOTE_ENTRIES = 1 << 22
"""Values of the voters' f that are there at once."""


class ExampleGram(Operator):
    """V ↦ A Aᵀ V with A = (κ₀1, K W^½): the columns are the examples, the dummy first, as functions of the rows.

    Gradient descent in α on ‖y − Aα‖² is α = Aᵀβ with β := β + 2η W(y − AAᵀβ), so that it is least mean squares with
    this matrix.
    """

    def __init__(self, K: Operator, weights: np.ndarray | None, constant: float) -> None:
        self.K, self.constant = K, constant
        self.w = None if weights is None else weights[:, None]
        super().__init__(K.shape, np.float64, symmetric=True)

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        return np.asarray(self.K @ self._weighted(self.K @ V) + self.constant**2 * V.sum(axis=0))

    def coefficients(self, beta: np.ndarray) -> np.ndarray:
        """α of shape (1 + n, ·), the dummy's first: Aᵀβ; a row of weight w is w examples with one coefficient."""
        return np.vstack([self.constant * beta.sum(axis=0), self._weighted(self.K @ beta)])

    def _weighted(self, V: np.ndarray) -> np.ndarray:
        return V if self.w is None else self.w.astype(V.dtype) * V


class KernelPerceptron(LeastSquaresClassifier):
    r"""α_k := α_k − η ∂ε/∂α_k, ε(α) = Σᵢ wᵢ (yᵢ − f(xᵢ))², f(x) = Σₙ αₙ κ(xₙ, x) + α₀, yᵢ ∈ {−1, +1} for each class.

    This is ``method="gradient"``: α₀ is the bias, the coefficient of a dummy example x₀ with κ(x₀, x) = 1,
    ∂ε/∂α_k = −2 Σᵢ wᵢ (yᵢ − f(xᵢ)) κ(x_k, xᵢ), and all start at 0. The other methods are Rosenblatt's rule, which
    learns from mistakes alone: if the true class is not ahead, αᵢ gains 1 in it and loses 1 in its best rival.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions.
    method : {"gradient", "plain", "voted", "averaged"}, default "gradient"
        The default is the chapter's; "averaged" errs less on most tables, and takes less time (docs/defaults.md).
        "plain" keeps the last α; "averaged" the mean of α over all visits; "voted" lets every α that there was vote,
        once for each visit that it stood for, which takes a kernel value and a sum for each update in every prediction.
    fit_intercept : bool, default True
        The dummy example; without it α₀ = 0.
    step_size : float or "auto", default "auto"
        η of the gradient; "auto" is 0.95/λmax(AᵀWA) with A = (1, K). The objective falls in every step if
        η < 1/λmax, and λmax comes from LAPACK or a block Krylov method, with an error below a thousandth.
    max_iter : int, default 1000
        Steps; passes over the rows for the other methods.
    tol : float or None, default 1e-3
        For "gradient", on the norm of the gradient relative to the first; for the others, on the share of mistakes in a
        pass. With None all of `max_iter` steps are made, or passes until one is without mistakes, and that is no
        failure.
    class_weight : dict, "balanced" or None
        Multiplies the sample weights.
    shuffle : bool, default True
        A new order of the rows in each pass; "gradient" has none.
    keep_history : int or bool, default False
        Keep α before the first step, and after each step (1 or True) or each so many: `history_`.
    random_state : int, RandomState or None, default 0
        Seed for the orders.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free. K is stored if it takes at most 40 % of it.

    Attributes
    ----------
    classes_ : array of shape (c,)
    dual_coef_ : array of shape (n, 1) for two classes, (n, c) otherwise
        αₙ.
    intercept_ : array of shape (1,) or (c,)
        α₀.
    step_size_ : float
        η as used ("gradient").
    n_iter_ : int
        Steps or passes made.
    history_ : array of shape (frames, 1 + n, 1 or c)
        α with α₀ first, if `keep_history` is given; `staged_decision_function` makes the film of it. With "voted" it
        is the plain α.
    votes_ : dict
        After "voted": the rows, classes and amounts of the updates, for how many visits each stood, and the value of
        the dummy example, 0 without an intercept.
    kernel_, X_fit_, report_
        The kernel as resolved, the rows of the expansion of f, and the report on method and accuracy.
    compression_loss_ : float
        After `compress`: the share of ‖f‖ that was lost.

    Notes
    -----
    A row of weight w counts as w rows: its error is multiplied by w, and as it is w examples of equal coefficients, so
    is its step; in the other methods it is visited w times in succession, and what is left of w is a part of a visit:
    αᵢ gains and loses that much. Gradient descent goes fast along the first eigenvectors of K and slowly along the
    last: to stop early regularises.

    References
    ----------
    The textbook's slides on kernel methods: the kernel perceptron with squared error loss.
    F. Rosenblatt (1958). The perceptron. Psychological Review 65. Y. Freund, R. Schapire (1999). Large
    margin classification using the perceptron algorithm. Machine Learning 37.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPerceptron
    >>> from mercer.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = KernelPerceptron(Gaussian(1.0), keep_history=True, max_iter=50, tol=None).fit(X, [0, 0, 1, 1])
    >>> model.predict(X).tolist(), model.history_.shape
    ([0, 0, 1, 1], (51, 5, 1))
    """

    fitted: ClassVar[Schema] = ScoreClassifier.fitted + Schema(
        Array("step_size_", optional=True),
        Count("n_iter_"),
        Array("history_", "frames n+1 *targets", optional=True, finite=False),
        Record(
            "votes_",
            (
                Indices("rows", "updates", of="n"),
                Indices("classes", "updates", of="classes"),
                Indices("rivals", "updates", of="classes"),
                Array("amounts", "updates"),
                Array("visits", "updates"),
                Array("constant", optional=True),  # not in older files
            ),
            optional=True,
        ),
    )

    early: ClassVar[str] = EARLY
    tuned: ClassVar[str] = "method"

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        method: Literal["gradient", "plain", "voted", "averaged"] = "gradient",
        fit_intercept: bool = True,
        step_size: float | str = "auto",
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        class_weight: dict[Any, float] | str | None = None,
        shuffle: bool = True,
        keep_history: int | bool = False,
        random_state: int = 0,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.method = method
        self.fit_intercept = fit_intercept
        self.step_size = step_size
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.keep_history = keep_history
        self.random_state = random_state
        self.memory = memory

    tol: Any
    votes_: dict[str, Any]

    # ---- fit --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Descend, or learn from mistakes, from α = 0.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
            At least two classes, numbers or text.
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        self._check_parameters()
        X, y = labelled(self, X, y)
        X, Y, weights = self._indicators(X, y, self._weights(sample_weight, X))
        K, self.report_ = self._begin(X, weights)
        self._kernel_size(K)  # refuses values that are not finite
        operator = self._stored(K, Y.shape[1])
        solve_by = self._descend if self.method == "gradient" else self._learn_from_mistakes
        with self.report_.stage("descent" if self.method == "gradient" else "passes"):
            alpha, frames, solution = solve_by(operator, Y, weights)
        self.intercept_, self.dual_coef_, self.n_iter_ = alpha[0], alpha[1:], solution.steps
        if self.keep_history:
            self.history_ = frames
        self._judge(solution)
        return self

    def _stored(self, K: KernelOperator, outputs: int) -> Operator:
        """K in memory if it fits."""
        report, frames = self.report_, frames_kept(self)
        report.method = "gradient descent in α" if self.method == "gradient" else f"{self.method} perceptron"
        fewer = ["fewer rows", *(["a larger keep_history, of fewer frames"] if frames else [])]
        held = 8 * K.shape[0] * (outputs * (12 + 2 * frames) + 256)
        return self._in_memory(K, held, report, fewer, products=self.method == "gradient")

    def _descend(
        self, K: Operator, Y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, Solution[Any]]:
        """α = Aᵀβ and β by least mean squares, whose step is 2η."""
        gram = ExampleGram(K, weights, float(self.fit_intercept))
        limit = 1 / (largest_eigenvalue(gram, weights, self.report_, self._seed()) or 1.0)
        self.step_size_ = STEP_SHARE * limit if self.step_size == "auto" else float(self.step_size)
        self.report_.notes.append(f"step size {self.step_size_:.3g}, of at most 1/λmax = {limit:.3g}")
        rule = BatchLMS(2 * self.step_size_, float(self.tol or 0.0), int(self.max_iter))
        betas = Trail(lambda state, _: state.X if self._keeps(state) else None)
        solution = solve(rule, LeastSquares(gram, Y, weights), each=betas)
        stacked = gram.coefficients(np.hstack([solution.x, *betas.arrays])).reshape(1 + len(Y), -1, Y.shape[1])
        return stacked[:, 0].copy(), np.moveaxis(stacked[:, 1:], 1, 0).copy(), solution

    def _learn_from_mistakes(
        self, K: Operator, Y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, Solution[Any]]:
        """α of the two classes, or of all; of two f₀ = −f₁, and only the second is kept."""
        labels = (Y[:, 0] > 0).astype(np.int64) if Y.shape[1] == 1 else Y.argmax(axis=1)
        problem = ClassificationProblem(K, labels, len(self.classes_), weights, float(self.fit_intercept))
        kept = slice(1, None) if Y.shape[1] == 1 else slice(None)
        averaged = self.method == "averaged"
        frames = Trail(
            lambda state, _: (state.averaged if averaged else state.A)[:, kept] if self._keeps(state) else None
        )
        rule = PerceptronRule(
            averaged=averaged,
            tol=0.0 if self.tol is None else float(self.tol),
            max_steps=int(self.max_iter),
            shuffle=bool(self.shuffle),
            seed=self._seed(),
        )
        solution = solve(rule, problem, each=frames)
        if self.method == "voted":
            self._keep_votes(solution.state, labels)
        return solution.x[:, kept], np.array(frames.arrays), solution

    def _keeps(self, state: LMSState | PerceptronState) -> bool:
        """Whether `history_` has this state."""
        return bool(self.keep_history) and state.steps % int(self.keep_history) == 0

    def _keep_votes(self, state: PerceptronState, labels: np.ndarray) -> None:
        stood = np.diff(np.append(state.since, state.visits))
        self.votes_ = {
            "rows": state.rows,
            "classes": labels[state.rows],
            "rivals": state.others,
            "amounts": state.amounts,
            "visits": stood,
            "constant": float(self.fit_intercept),
        }
        self.report_.notes.append(f"{len(stood)} classifiers vote")

    def _judge(self, solution: Solution[Any]) -> None:
        """Report the run; if it diverged, the note on the step size has its limit."""
        report = self.report_
        by_mistakes = self.method != "gradient"
        if by_mistakes:
            state = solution.state
            report.notes.append(f"{len(state.rows)} updates in {solution.steps} passes")
            report.notes.append(f"{state.missed:.2%} mistakes in the last pass, {solution.residual:.2%} by the answer")
        if made_all_steps(self.tol, solution, report):
            return
        if solution.status is Status.DIVERGED:
            report.method += f" with step size {self.step_size_:.3g} (see the note on its limit)"
        if by_mistakes:
            solution = Solution(solution.x, solution.status, solution.steps, solution.state.missed, solution.state)
            if solution.status is Status.MAX_STEPS:
                report.notes.append("no f separates these rows, or only after more passes: allow mistakes (tol=)")
        self._account(report, solution, self.tol or 0.0)

    def _advice(self, status: Status) -> str:
        slow = self.method == "gradient" and status is Status.MAX_STEPS
        return super()._advice(status) + (', or choose method="averaged", max_iter=50' if slow else "")

    # ---- parameters and new rows ------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._checked_choice("method", *METHODS)
        check_descent(self)

    def _decide(self, X: Any) -> np.ndarray:
        return self._votes(X) if "votes_" in vars(self) else super()._decide(X)

    def _votes(self, X: Any) -> np.ndarray:
        """The share of the votes for each class, of shape (m, c); for two that of the second less the first's."""
        K, votes, c = self._cross(X), self.votes_, len(self.classes_)
        total, u, m = votes["visits"].sum(), len(votes["visits"]), K.shape[0]
        constant = float(votes.get("constant", self.fit_intercept))
        signs = np.zeros((u, c))
        signs[np.arange(u), votes["classes"]] = votes["amounts"]
        signs[np.arange(u), votes["rivals"]] = -votes["amounts"]
        shares, step = np.zeros((m, c)), max(1, VOTE_ENTRIES // max(u * c, 1))
        for i in range(0, m, step):
            rows = np.arange(i, min(i + step, m))
            k = (
                known_values(np.asarray(K.rows(rows), np.float64), K, "KernelPerceptron", i)[:, votes["rows"]]
                + constant
            )
            F = np.cumsum(k[:, :, None] * signs, axis=1)
            for j in range(c):
                shares[rows, j] = (F.argmax(axis=2) == j) @ votes["visits"] / (total or 1.0)
        return shares[:, 1:] - shares[:, :1] if c == 2 else shares

    def _expansion(self) -> Expansion:
        if "votes_" in vars(self):
            given = "votes of many functions, whose share is not a sum of terms αⱼ k(x, xⱼ)"
            raise InvalidInput(message("KernelPerceptron", given, 'choose method="averaged" before fit'))
        return super()._expansion()

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Σₙ αₙκ(xₙ, x) + α₀ for each α that `history_` kept, one after the other: the film of the surface.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Yields
        ------
        array of shape (m,) for two classes, (m, c) otherwise
        """
        self._require_history("staged_decision_function")
        K = self._cross(X)
        for frame in self.history_:
            scores = known_values(np.asarray(K @ frame[1:]), K, "KernelPerceptron") + frame[0]
            yield scores[:, 0] if len(self.classes_) == 2 else scores

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """The class of the largest score, for each α that `history_` kept: see `staged_decision_function`."""
        for scores in self.staged_decision_function(X):
            yield top_class(scores, self.classes_)
