"""A search over kernels and their parameters that computes what its candidates share once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.utils import Tags, _safe_indexing, deprecated, get_tags, indexable

from mercer.atomic import Atomic
from mercer.errors import InvalidInput, message, warn
from mercer.estimators.base.elsewhere import ForeignArrays
from mercer.estimators.base.parameters import NamedParameters
from mercer.estimators.search.ledger import Ledger, distinct
from mercer.estimators.search.results import as_table, chosen_row
from mercer.estimators.search.shared import NotScored, SharedRidge, shared_ridge, why_not_shared
from mercer.events import StageDone, TilesDone, emit
from mercer.events.callbacks import CalledBack
from mercer.former_names import present_fields
from mercer.keeping import keeper
from mercer.kernels import Kernel
from mercer.kernels.parameters.comparable import comparable
from mercer.points import count, fingerprint
from mercer.schemas import COLUMNS, Array, Count, Part, Schema, Value
from mercer.select.held_out import Split
from mercer.version import __version__

__all__ = ["KernelSearchCV"]

WHO = "KernelSearchCV"


class KernelSearchCV(CalledBack, Atomic, ForeignArrays, NamedParameters, GridSearchCV):
    """scikit-learn's `GridSearchCV` for kernels: the same candidates, folds, scores and winner, from shared work.

    If the estimator is `KernelRidge` or `KernelRidgeClassifier`, by itself or as the last step of a pipeline, and
    candidates differ in kernel and λ, one kernel matrix serves all folds and all λ of a kernel, and the systems of all
    of these are solved together (`mercer.select.held_out`). Scores are those of single fits to 1e-6 or better. All
    other estimators are fitted candidate by candidate, with everything else below.

    Parameters
    ----------
    estimator : scikit-learn estimator
    param_grid : dict or list of dicts
        Names of parameters and the values to try, as for `GridSearchCV`: ``{"kernel__gamma": [0.1, 1.0], "alpha":
        [0.01, 1.0]}``; ``kernel`` itself may vary.
    scoring, cv, refit, error_score
        As for `GridSearchCV`; several scorers too.
    halving : int, optional
        Race: all candidates on n/h^r rows first, with h = `halving`; the best 1/h of them on h times as many, and so on
        until the last few have seen all rows. Rows are drawn by the seed, in the proportions of the classes, and folds
        are those of all rows. None: all candidates on all rows.
    min_rows : int, default 200
        Rows of the first round of a race.
    resume : str or Path, optional
        A file for the scores so far (JSON). If it is there from an earlier search that was stopped, that search goes
        on; a file of other data, weights, folds, candidates or settings, of other code of your own classes and
        functions, or of another version of mercer, is refused.
    memory : int, str or None
        Budget in bytes or as "2GB" of the shared method, which needs 32n² bytes; None is half of what is free. Beyond
        it candidates are fitted one by one.
    random_state : int, default 0
        Seed for the rows of a race.

    Attributes
    ----------
    cv_results_, best_estimator_, best_params_, best_score_, best_index_, scorer_, n_splits_, refit_time_, multimetric_
        As of `GridSearchCV`. A race adds the columns "iter" and "n_resources" to `cv_results_`: the round in which a
        candidate was last scored, and its rows; only those of the last round can win.
    method_ : str
        The chosen method, and the reason.

    Raises
    ------
    InvalidInput
        For `halving` below 2, and a `resume` file of another search.

    Notes
    -----
    Progress: ``with mercer.observe(Progress()): search.fit(X, y)``. To save the result, save `best_estimator_`.
    sample_weight and other arguments of fit are handed to single fits, as is a scorer that is a function of the model.

    References
    ----------
    K. Jamieson, A. Talwalkar (2016). Non-stochastic best arm identification and hyperparameter optimization. AISTATS.

    Examples
    --------
    >>> from mercer import KernelRidge, KernelSearchCV
    >>> x = np.linspace(0, 6, 90)[:, None]
    >>> grid = {"kernel__gamma": [0.01, 0.5, 100.0], "alpha": [1e-3, 1.0]}
    >>> search = KernelSearchCV(KernelRidge("gaussian"), grid, cv=3).fit(x[::-1], np.sin(x[::-1, 0]))
    >>> search.best_params_, search.method_
    ({'alpha': 0.001, 'kernel__gamma': 0.5}, 'shared: one kernel matrix for 3 folds and 2 α of each kernel')
    """

    fitted: ClassVar[Schema] = COLUMNS + Schema(
        Value("scorer_"),
        Value("multimetric_", bool),
        Count("n_splits_"),
        Value("method_", str),
        Value("cv_results_", dict, varies=True),
        Count("best_index_", optional=True),
        Array("best_score_", optional=True, finite=False),
        Value("best_params_", dict, optional=True),
        Part("best_estimator_", optional=True),
        Array("refit_time_", optional=True, varies=True),
    )
    n_jobs, verbose, pre_dispatch, return_train_score = None, 0, "2*n_jobs", False
    if TYPE_CHECKING:  # which `GridSearchCV` does not annotate
        best_estimator_: Any

        def predict(self, X: Any) -> np.ndarray: ...

        def score(self, X: Any, y: Any = None, **params: Any) -> float: ...

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        cv: Any = None,
        refit: Any = True,
        error_score: Any = np.nan,
        halving: int | None = None,
        min_rows: int = 200,
        resume: Any = None,
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.error_score = error_score
        self.halving = halving
        self.min_rows = min_rows
        self.resume = resume
        self.memory = memory
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags = get_tags(self.estimator).target_tags
        return tags

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Score all candidates, and fit the best one to all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, targets)
        **params : dict
            ``groups`` goes to the splitter, everything else to the estimator's fit.
        """
        self._check_parameters()
        self.scorer_ = check_scoring(self.estimator, self.scoring)
        if y is None and get_tags(self.estimator).target_tags.required:
            raise InvalidInput(message(WHO, "requires y to be passed, but the target y is None", "give y"))
        X, y = indexable(X, y)
        groups, fit_params = params.pop("groups", None), {k: v for k, v in params.items() if v is not None}
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = [Split(np.asarray(a), np.asarray(b)) for a, b in _split(splitter, X, y, groups)]
        candidates = list(ParameterGrid(self.param_grid))
        self.n_splits_ = len(splits)
        key = "" if self.resume is None else self._key(X, y, splits, candidates, fit_params)
        ledger = Ledger(self.resume, key)
        found, rounds = self._race(X, y, splits, candidates, fit_params, ledger)
        self._complete(found)
        self.cv_results_ = as_table(candidates, found, rounds if self.halving is not None else None)
        main = self.refit if self.multimetric_ and isinstance(self.refit, str) else "score"
        if self.refit or not self.multimetric_:
            self.best_index_ = chosen_row(self.cv_results_, self.refit, main)
            if not callable(self.refit):
                self.best_score_ = float(self.cv_results_[f"mean_test_{main}"][self.best_index_])
            self.best_params_ = self.cv_results_["params"][self.best_index_]
        if self.refit:
            self._refit(X, y, fit_params)
        return self

    def _check_parameters(self) -> None:
        if self.resume is not None and keeper() is not None:
            do = "leave the one or the other out: a search that skips fits is another run"
            raise InvalidInput(message(WHO, f"resume={str(self.resume)!r} within a checkpoint", do))
        if self.halving is not None and (isinstance(self.halving, bool) or self.halving < 2):
            raise InvalidInput(message(WHO, f"halving={self.halving!r}", "give None, or a number from 2 on"))
        self.multimetric_ = isinstance(self.scoring, list | tuple | set | dict)
        if self.multimetric_:
            self._check_refit(list(self.scoring))

    def _check_refit(self, names: list[str]) -> None:
        """Refuse a `refit` that is none of several scores."""
        if self.refit is not False and not callable(self.refit) and self.refit not in names:
            given = f"refit={self.refit!r} with the scorers {', '.join(names)}"
            raise InvalidInput(message(WHO, given, "name the one that chooses, or set refit=False"))

    def _complete(self, found: list[dict[str, list[float]]]) -> None:
        """`error_score` for candidates whose fits failed; that a function gave several scores shows only now."""
        names = list(dict.fromkeys(name for one in found for name in one if name.startswith("test_")))
        if callable(self.scoring) and names != ["test_score"]:
            self.multimetric_ = True
            self._check_refit([name.removeprefix("test_") for name in names])
        for one, name in product(found, names):
            if name not in one:
                one[name] = [float(self.error_score)] * self.n_splits_

    def _key(self, X: Any, y: Any, splits: list[Split], candidates: list[Any], fit_params: dict[str, Any]) -> str:
        """All that the scores depend on: of models their parameters, because candidates are fitted anew."""
        own = [clone(self.estimator), self.scoring, self.error_score, self.halving, self.min_rows, self.random_state]
        unfitted = [{name: clone(value, safe=False) for name, value in one.items()} for one in candidates]
        return fingerprint(__version__, X, y, [tuple(split) for split in splits], unfitted, fit_params, own)

    def _refit(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        start = perf_counter()
        self.best_estimator_ = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        self.best_estimator_.fit(X, *(() if y is None else (y,)), **fit_params)
        self.refit_time_ = perf_counter() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        emit(StageDone(f"{WHO}: fit of the best", self.refit_time_))

    # ---- the race ----------------------------------------------------------------------------------------------------

    def _race(
        self, X: Any, y: Any, splits: list[Split], candidates: list[Any], fit_params: Any, ledger: Ledger
    ) -> tuple[list[dict[str, list[float]]], list[tuple[int, int]]]:
        """The scores of each candidate in its last round, with the number of the round and its rows."""
        n = count(X)
        found: list[dict[str, list[float]]] = [{} for _ in candidates]
        rounds = [(0, n)] * len(candidates)
        left, names = list(range(len(candidates))), distinct([repr(one) for one in candidates])
        self.method_ = f"none: all scores were in {self.resume!s}"  # unless a round finds some missing
        sizes = self._sizes(n, len(candidates))
        for turn, size in enumerate(sizes):
            rows = np.arange(n) if size == n else _drawn(self.estimator, y, n, size, self.random_state)
            own = [
                Split(split.train[np.isin(split.train, rows)], split.test[np.isin(split.test, rows)])
                for split in splits
            ]
            named = {f"{turn} {names[i]}": i for i in left}
            todo = {name: i for name, i in named.items() if ledger.get(name) is None}
            if todo:
                for i, scores in self._scored(X, y, rows, own, candidates, list(todo.values()), fit_params):
                    ledger.put(f"{turn} {names[i]}", scores)
                    ledger.save()
            for name, i in named.items():
                found[i], rounds[i] = ledger.get(name) or {}, (turn, size)
            if turn < len(sizes) - 1:
                main = self.refit if isinstance(self.refit, str) else None
                left = _best(found, left, max(1, -(-len(left) // int(self.halving or 1))), main)
        return found, rounds

    def _sizes(self, n: int, candidates: int) -> list[int]:
        """Rows of each round."""
        if self.halving is None:
            return [n]
        sizes = [n]
        while (
            len(sizes) <= np.log(max(candidates, 2)) / np.log(self.halving)
            and sizes[0] // self.halving >= self.min_rows
        ):
            sizes.insert(0, sizes[0] // self.halving)
        return sizes

    @property
    @deprecated("road_ is now method_")
    def road_(self) -> str:
        """The former name of `method_`."""
        return self.method_

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(present_fields(state, road_="method_"))

    # ---- scores ------------------------------------------------------------------------------------------------------

    def _scored(
        self, X: Any, y: Any, rows: Any, splits: list[Split], candidates: list[Any], which: list[int], fit_params: Any
    ) -> Iterator[tuple[int, dict[str, list[float]]]]:
        """(candidate, its scores and times on the splits), as they come."""
        tried = [candidates[i] for i in which]
        why = why_not_shared(self.estimator, tried, self.scoring, fit_params, self.memory, len(rows))
        method = None
        if not why:
            place = np.full(int(rows[-1]) + 1, -1)
            place[rows] = np.arange(len(rows))
            inner = [Split(place[split.train], place[split.test]) for split in splits]
            method = shared_ridge(
                self.estimator,
                _safe_indexing(X, rows),
                None if y is None else _safe_indexing(y, rows),
                self.scorer_,
                inner,
            )
            why = "" if method is not None else "a class is missing from the training rows of a fold"
        if method is None:
            self.method_ = f"a fit for each candidate and fold: {why}"
            yield from self._fitted(X, y, splits, candidates, which, fit_params)
            return
        groups = _by_kernel(method, candidates, which)
        most = max(len(group) for _, group in groups)
        self.method_ = f"shared: one kernel matrix for {len(splits)} folds and {most} α of each kernel"
        done = 0
        for kernel, group in groups:
            start = perf_counter()
            try:
                yield from self._shared(method, kernel, group, candidates, inner)
            except NotScored:  # single fits say what failed, and where
                self.method_ = "a fit for each candidate and fold: a scorer failed on shared predictions"
                yield from self._fitted(X, y, splits, candidates, group, fit_params)
            done += len(group)
            emit(StageDone(f"{WHO}: {kernel!r}", perf_counter() - start))
            emit(TilesDone(WHO, done, len(which)))

    def _shared(
        self, method: SharedRidge, kernel: Any, group: list[int], candidates: list[Any], splits: list[Split]
    ) -> Iterator[tuple[int, dict[str, list[float]]]]:
        start = perf_counter()
        alphas = np.array([method.alpha_of(candidates[i]) for i in group])
        scores = method.scores(kernel, alphas, splits)
        each = (perf_counter() - start) / (len(group) * len(splits))
        for column, i in enumerate(group):
            own = [by_split[column] for by_split in scores]
            if any(one is None for one in own):
                self._failed(candidates[i])
            named = [one if isinstance(one, dict) else {"score": one} for one in own]
            names = list(self.scoring) if self.multimetric_ else ["score"]
            result = {f"test_{m}": [self._number(one.get(m)) for one in named] for m in names}
            yield i, {**result, "fit_time": [each], "score_time": [0.0]}

    def _number(self, score: Any) -> float:
        return float(self.error_score if score is None else score)

    def _failed(self, candidate: dict[str, Any]) -> None:
        given = f"{candidate}: K + αI is singular on the training rows of a fold"
        text = message(WHO, given, "give a larger alpha")
        if isinstance(self.error_score, str):
            raise InvalidInput(text)
        warn(text, FitFailedWarning)

    def _fitted(
        self, X: Any, y: Any, splits: list[Split], candidates: list[Any], which: list[int], fit_params: Any
    ) -> Iterator[tuple[int, dict[str, list[float]]]]:
        failures: list[ValueError] = []
        for done, i in enumerate(which):
            grid = {name: [value] for name, value in candidates[i].items()}
            options = {"scoring": self.scoring, "cv": splits, "refit": False, "error_score": self.error_score}
            try:
                table = GridSearchCV(self.estimator, grid, **options).fit(X, y, **fit_params).cv_results_
            except ValueError as error:
                if isinstance(self.error_score, str) or "fits failed" not in str(error):
                    raise
                failures.append(error)
                if len(failures) == len(which):  # a mistake in the settings, rather than a bad candidate
                    raise
                warn(str(error), FitFailedWarning)
                yield i, {}
                continue
            names = [name.removeprefix("mean_") for name in table if name.startswith("mean_test_")]
            scores = {name: [table[f"split{s}_{name}"][0] for s in range(len(splits))] for name in names}
            yield i, scores | {name: list(table[f"mean_{name}"]) for name in ("fit_time", "score_time")}
            emit(TilesDone(WHO, done + 1, len(which)))


def _split(splitter: Any, X: Any, y: Any, groups: Any) -> Any:
    return splitter.split(X, y) if groups is None else splitter.split(X, y, groups)


def _by_kernel(method: SharedRidge, candidates: list[Any], which: list[int]) -> list[tuple[Kernel, list[int]]]:
    groups: dict[Any, tuple[Kernel, list[int]]] = {}
    for i in which:
        kernel = method.kernel_of(candidates[i])
        groups.setdefault(comparable(kernel), (kernel, []))[1].append(i)
    return list(groups.values())


def _drawn(estimator: Any, y: Any, n: int, size: int, seed: int) -> np.ndarray:
    """Rows of a round: evenly spaced in a seeded order, for classes in the order of the classes."""
    order = np.random.default_rng(seed).permutation(n)
    if y is not None and is_classifier(estimator):
        labels = np.unique(np.asarray(y), return_inverse=True)[1]
        order = order[np.argsort(labels[order], kind="stable")]
    return np.sort(order[np.linspace(0, n - 1, size).round().astype(np.intp)])


def _best(found: list[dict[str, list[float]]], left: list[int], count: int, main: str | None) -> list[int]:
    """The candidates of the best mean scores, in their order."""
    names = [name for i in left for name in found[i] if name.startswith("test_")]
    name = f"test_{main}" if f"test_{main}" in names else names[0]
    means = np.nan_to_num([np.mean(found[i].get(name, np.nan)) for i in left], nan=-np.inf)
    return sorted(left[j] for j in np.argsort(-means, kind="stable")[:count])
