"""Is it a Mercer kernel? Proof, evidence and refutation put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, MercerError, NotAKernel, message
from mercer.gram import KernelOperator
from mercer.kernels import Kernel, TableKernel, as_kernel
from mercer.kernels.base import trace_or_none
from mercer.kernels.parameters.resolution import blank
from mercer.operators import Dense
from mercer.points import as_seed, points_of, vectors_of
from mercer.validity.arithmetic.ranges import Domain
from mercer.validity.proofs.known import known_ranges
from mercer.validity.proofs.proof import Proof, prove
from mercer.validity.report import KernelReport
from mercer.validity.rows import domain_of, needs_columns, widths_to_draw
from mercer.validity.spectrum import Spectrum, spectrum_of
from mercer.validity.witnesses.budget import MOST_WORK, Budget
from mercer.validity.witnesses.points import DIMENSIONS, adversarial, large, spread, subsets
from mercer.validity.witnesses.search import Search, Subject
from mercer.validity.witnesses.witness import Gap, Witness

__all__ = ["check_kernel", "check_values", "check_vectors"]

MOST_OBJECTS = 200
"""Objects whose matrix is searched: each pair is a call of the function."""

MOST_ROWS = 5000
"""Rows of X whose spectrum is looked at; of more a seeded sample."""

MOST_COLUMNS = 32
"""Columns of points that are drawn for a formula over whole rows: further ones of zeros change no pairing."""

DENSE_MATRIX = 3000
"""Rows of a given matrix up to which all of its eigenvalues are computed: the question is about this matrix alone."""


def check_kernel(
    k: Kernel | str | Any,
    X: Any = None,
    *,
    n_features: int | None = None,
    non_negative: bool | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    random_state: Any = 0,
) -> KernelReport:
    """Whether Σᵢⱼ zᵢzⱼ k(xᵢ, xⱼ) ≥ 0 for all points and all z: a proof, or a witness against it, and evidence.

    Parameters
    ----------
    k : Kernel, str or callable
        A kernel, its name or an expression, a formula over pairings such as "exp(-sqdist**1.5)", or a function
        f(X, Z) of blocks.
    X : array-like of shape (n, d), or a sequence of objects, optional
        Rows to look at; they also fix d and the parameters that depend on data. For ``Precomputed()`` the square
        matrix. Without X the question is about every number of columns, and of kernels on objects, which cannot be
        drawn, only what is proved of them is told.
    n_features : int, optional
        d, where X is not given: some functions are kernels in few columns only.
    non_negative : bool, optional
        Whether to ask about rows without negative entries only, for which the pairings ``chi2`` and ``min_sum`` of
        histograms are meant. By default where the kernel refuses others, and where a formula over these two is asked
        about an X that has no others.
    vary : dict of name to values, optional
        Parameters to go through, as ``{"gamma": [0.1, 1.0]}``; the verdict of each choice is in the report, and for a
        value that the kernel refuses, why.
    random_state : int, RandomState or None, default 0
        Of the points that are drawn.

    Returns
    -------
    KernelReport

    Notes
    -----
    A refutation never rests on rounding: the points of a witness are short decimals and zᵀKz < 0 is shown by interval
    arithmetic on the formula. Where there is no formula (a Python function, a given matrix) the values are taken to be
    right to 64 units in the last place, and the report says so. That no witness was found is no proof.

    Raises
    ------
    InvalidInput
        For what is not proved of a kernel on objects without X, for columns by name without X, and where every choice
        in `vary` is refused.

    References
    ----------
    B. Schölkopf, A. Smola (2002). Learning with kernels, chapters 2 and 13. Chapters 002 (5.4) and 004 of the textbook.

    Examples
    --------
    >>> import mercer
    >>> from mercer.kernels import Gaussian, Linear, Sigmoid
    >>> print(mercer.check_kernel(Gaussian(gamma=1.0) + Linear()).derivation)
    Gaussian(gamma=1.0) + Linear() is PSD  [sum]
    ├─ exp(−‖x − z‖²) is PSD  [Schoenberg: exp(−ψ) of a CND ψ]
    │  └─ ‖x − z‖² is CND  [squared Euclidean distance: ‖x‖² + ‖z‖² − 2⟨x, z⟩]
    └─ ⟨x, z⟩ is PSD  [inner product: ‖Σ cᵢxᵢ‖² ≥ 0]
    >>> mercer.check_kernel(Sigmoid(gamma=1.0)).is_mercer
    False
    """
    seed = as_seed(random_state, "check_kernel")
    kernel = as_kernel(k)
    if vary:
        return _varied(kernel, X, vary, {"n_features": n_features, "non_negative": non_negative, "random_state": seed})
    if X is None and isinstance(kernel, TableKernel):  # about every row of numbers that a table's can become
        n_features, kernel = len(kernel.features), kernel.vector_kernel
    if X is not None:
        kernel, X, _ = kernel.prepared(X, None)
    if X is not None and kernel.space.objects:
        X = kernel.as_objects(X)
        kernel = kernel.resolve(X)
    if kernel.space.numbered:
        return _check_matrix(kernel, X)
    if kernel.space.objects and not (kernel.is_resolved and trace_or_none(kernel)):
        return _check_objects(kernel, X, seed)
    kernel, rows = _resolved(kernel, X)
    domain = domain_of(kernel, rows, trace_or_none(kernel), n_features, non_negative)
    return check_vectors(kernel, domain, rows, seed)


def check_vectors(
    kernel: Kernel, domain: Domain, rows: Any, seed: int = 0, most_columns: int = MOST_COLUMNS, work: float = MOST_WORK
) -> KernelReport:
    """A report on a kernel of rows of numbers; points are drawn in no more than so many columns, for so much work."""
    found = Search(Subject(kernel, trace_or_none(kernel, exact=True), domain=domain, budget=Budget(work)))
    proof = prove(kernel, domain)
    spectrum, notes = (None, []) if rows is None else _on_rows(kernel, rows, found, seed)
    scale = 1.0 if rows is None else spread(_dense(rows[:1000]))
    _search(found, domain, scale, proof.psd is not None, seed, most_columns)
    return _report(kernel, str(domain), proof, found, spectrum, notes)


def _varied(kernel: Kernel, X: Any, vary: Mapping[str, Sequence[Any]], options: dict[str, Any]) -> KernelReport:
    """The report of the choice that fails by most (or of the first one), with the verdicts of all."""
    reports, verdicts, refused = [], [], None
    for values in product(*vary.values()):
        params = dict(zip(vary, values, strict=True))
        try:
            reports.append(check_kernel(kernel.replace(**params), X, **options))
            verdicts.append((params, reports[-1].verdict))
        except (InvalidInput, NotAKernel) as error:
            refused = refused or error
            verdicts.append((params, f"refused: {error}"))
    if refused is not None and not reports:
        raise refused
    if not reports:
        raise InvalidInput(message("check_kernel", f"vary={vary!r} has no values", "give a sequence for each name"))
    first = min(reports, key=lambda one: (one.witness is None, one.worst))
    return _with(first, by_parameters=tuple(verdicts))


def _with(report: KernelReport, **changes: Any) -> KernelReport:
    return KernelReport(**{**vars(report), **changes})


def _resolved(kernel: Kernel, X: Any) -> tuple[Kernel, Any]:
    """Numbers for what depends on data: from X, or 1 without it; and the validated rows."""
    if X is not None:
        K = KernelOperator(kernel, X)
        return K.kernel, K.X
    if kernel.is_resolved:
        return kernel, None
    if needs_columns(kernel):
        raise InvalidInput(message("check_kernel", f"{kernel!r} names columns", "give X, a data frame that has them"))
    return kernel._resolved(None, blank()), None


def _dense(rows: Any) -> Any:
    """As float64 rows that are no matrix of zeros left out."""
    return np.ascontiguousarray(vectors_of(rows).dense(), np.float64)


def _search(found: Search, domain: Domain, scale: float, proved: bool, seed: int, most: int = MOST_COLUMNS) -> None:
    """Adversarial points, more of them where nothing is proved and nothing found."""
    kernel = found.subject.kernel
    most = most if found.subject.expression is not None else domain.d or most
    widths = widths_to_draw(kernel, domain.d, DIMENSIONS, most)
    for d in widths:
        sets = adversarial(d, seed, domain, scales=(1.0,) if proved else (1.0, 0.3, 3.0, 0.1, 10.0, 0.6))
        found.look(sets)
        if scale != 1.0:
            found.look(scale * points for points in adversarial(d, seed + 1, domain, scales=(1.0, 0.3)))
        if not proved and scale == 1.0:
            found.look(adversarial(d, seed + 2, domain, scales=(0.03, 30.0, 1.7)))
    if not proved and not found.suspicious:
        for d in widths[:3]:
            found.look(large(d, seed, domain, scale))


def _on_rows(kernel: Kernel, rows: Any, found: Search, seed: int) -> tuple[Spectrum, list[str]]:
    """The spectrum of the rows in their own precision; those that carry λmin, and some others, for the search."""
    n, notes = rows.shape[0], []
    if n > MOST_ROWS:
        rows = rows[np.sort(np.random.default_rng(seed).choice(n, MOST_ROWS, replace=False))]
        notes.append(f"the spectrum is that of {MOST_ROWS} of the {n} rows, drawn at random")
    try:
        spectrum = spectrum_of(KernelOperator(kernel, rows))
    except MercerError as error:
        raise InvalidInput(message("check_kernel", f"no kernel matrix of X ({error})", "give other rows")) from error
    found.look(_dense(rows[index]) for index in [spectrum.leading, *subsets(rows.shape[0], seed)])
    return spectrum, notes


def _report(
    kernel: Kernel, domain: str, proof: Proof, found: Search, spectrum: Spectrum | None, notes: list[str]
) -> KernelReport:
    witness, gap = found.witness(), found.gap()
    if gap is not None and (witness is not None or proof.psd is not None):
        notes.append(f"{gap}: the {'witness' if witness else 'proof'} is about points where it has one; {gap.advice}")
    if witness is None and found.suspicious:
        notes.append(f"λmin/λmax = {found.worst:.1e} on a point set could not be confirmed beyond rounding")
    if found.subject.budget.spent and witness is None:
        notes.append(
            f"the search was cut short: not decided within the work that a formula of {_nodes(found)} may take"
        )
    if witness is None and spectrum is not None and spectrum.is_indefinite:
        notes.append(
            f"on X the matrix in {spectrum.dtype} has λmin/λmax = {spectrum.ratio:.1e}, which the formula in higher "
            "precision does not confirm: rounding; give X in float64"
        )
    e = trace_or_none(kernel)
    return KernelReport(
        kernel=kernel,
        domain=domain,
        verdict=_verdict(proof, witness, gap, found.sets),
        derivation=None if witness else proof.psd,
        witness=witness,
        gap=gap,
        conditional=proof.conditional,
        spectrum=spectrum,
        sets=found.sets,
        worst=found.worst,
        smallest_diagonal=found.smallest_diagonal,
        largest_cosine=found.largest_cosine,
        conditional_worst=found.conditional_worst,
        ranges=() if proof.psd is not None and not witness else tuple(known_ranges(e)),
        obstacles=proof.obstacles,
        notes=tuple(notes),
    )


def _nodes(found: Search) -> str:
    return f"{found.subject.nodes} operation{'s' * (found.subject.nodes != 1)}"


def _verdict(proof: Proof, witness: Witness | None, gap: Gap | None, sets: int) -> str:
    if witness is not None:
        return "refuted"
    if gap is not None and (proof.psd is None or not sets):  # of what has no value anywhere, anything is true
        return "undefined"
    if proof.psd is None:
        return "supported"
    return "declared" if proof.declared else "proved"


def _check_matrix(kernel: Kernel, X: Any) -> KernelReport:
    """A given matrix: the question is about this one alone."""
    if X is None:
        raise InvalidInput(message("check_kernel", "a precomputed kernel without its matrix", "give X = k(rows, rows)"))
    K = KernelOperator(kernel, X)
    if K.shape[0] != K.shape[1]:
        raise InvalidInput(message("check_kernel", f"a matrix of shape {K.shape}", "give k(X, X): a square matrix"))
    matrix = np.asarray(K.toarray())
    report = check_values(kernel, matrix, None, f"the {len(matrix)} points of the matrix")
    measured = report.verdict == "supported" and report.spectrum is not None and report.spectrum.rank is not None
    return _with(report, verdict="measured") if measured else report


def _check_objects(kernel: Kernel, X: Any, seed: int) -> KernelReport:
    """A function of any objects: their matrix is computed once and searched; rows of numbers are drawn, too."""
    if X is None:
        proof = prove(kernel) if kernel.is_resolved else None
        if proof is not None and proof.psd is not None and not proof.declared:
            return _report(kernel, "all objects that it takes", proof, Search(Subject(kernel, None)), None, [])
        given = f"{kernel!r} of objects that are not known"
        raise InvalidInput(message("check_kernel", given, "give X, the objects (or rows) to look at"))
    X = points_of(X).items
    is_table = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"
    rows: Any = np.asarray(X, X.dtype if X.dtype == np.float32 else np.float64) if is_table else list(X)
    n = len(rows)
    index = np.sort(np.random.default_rng(seed).permutation(n)[:MOST_OBJECTS])
    some = rows[index] if is_table else [rows[i] for i in index]
    # Of two lists that are not one: both k(x, z) and k(z, x) are asked for.
    matrix = np.asarray(kernel.block(some, some.copy()), np.float64)
    who = "the objects of X" if n <= MOST_OBJECTS else f"{MOST_OBJECTS} of the {n} objects of X"
    report = check_values(kernel, matrix, some, who)
    if report.witness is not None or not is_table:
        return report
    found = Search(Subject(kernel, None, unit=_unit(matrix)))
    _search(found, Domain(d=rows.shape[1]), spread(rows), False, seed)
    notes = [*report.notes, "rows were drawn, besides those of X"]
    return _report(kernel, str(Domain(d=rows.shape[1])), prove(kernel), found, report.spectrum, notes)


def check_values(kernel: Kernel, matrix: Any, objects: Any, who: str, unit: float | None = None) -> KernelReport:
    """A report on a function of which a matrix of values is all that is looked at; `objects` name its rows.

    `unit` is the eps of the values' precision, by default what they look like.
    """
    unit = _unit(matrix) if unit is None else unit
    found = Search(Subject(kernel, None, matrix=np.asarray(matrix, np.float64), objects=objects, unit=unit))
    symmetric = (matrix + matrix.T) / 2
    spectrum = spectrum_of(Dense(symmetric, symmetric=True), most=300, eps=unit, dense=DENSE_MATRIX)
    n = len(matrix)
    found.look([np.arange(n)] if n <= 300 else [spectrum.leading, *subsets(n)])
    if n > 300 and spectrum.is_indefinite and not found.suspicious:
        found.look([np.arange(n)])
    return _report(kernel, who, prove(kernel), found, spectrum, [])


def _unit(matrix: Any) -> float:
    """eps of the precision in which values were computed: float32 where all are float32 numbers, but not all whole."""
    single = np.asarray(matrix, np.float32)
    is_single = bool(np.all(single == matrix)) and not bool(np.all(np.rint(single) == single))
    return float(np.finfo(np.float32 if is_single else np.float64).eps)
