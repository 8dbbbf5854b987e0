"""check_kernel: combines proofs, evidence and refutations in one report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, MercerError, NotAKernel, message
from mercer.gram import KernelOperator
from mercer.gram.compiler import canonical_form
from mercer.kernels import Kernel, TableKernel, as_kernel
from mercer.kernels.base import trace_or_none
from mercer.kernels.parameters.resolution import blank
from mercer.numerals import counted
from mercer.operators import Dense
from mercer.points import as_seed, points_of, sample_rows, vectors_of
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
"""Most objects whose matrix is searched, because each entry calls the function."""

MOST_ROWS = 5000
"""Most rows of X for the spectrum; of more rows a random sample is used."""

MOST_COLUMNS = 32
"""Points for a formula over whole rows are drawn in at most this many columns: zeros change no pairing."""

DENSE_MATRIX = 3000
"""All eigenvalues of a given matrix are computed up to this size, because the answer is about this matrix only."""


def check_kernel(
    k: Kernel | str | Any,
    X: Any = None,
    *,
    n_features: int | None = None,
    non_negative: bool | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    random_state: Any = 0,
) -> KernelReport:
    """Whether Σᵢⱼ zᵢzⱼ k(xᵢ, xⱼ) ≥ 0 for all points and all z: a proof, a witness against it, or evidence.

    Parameters
    ----------
    k : Kernel, str or callable
        A kernel, its name or an expression, a formula over pairings such as "exp(-sqdist**1.5)", or a function
        f(X, Z) of blocks.
    X : array-like of shape (n, d), or a sequence of objects, optional
        Rows to check. They also fix d and the parameters that depend on data. For ``Precomputed()`` X is the square
        matrix. Without X the answer is about any number of columns. A kernel on objects can only be proved without X,
        because objects cannot be drawn at random.
    n_features : int, optional
        d, if X is not given. Some functions are kernels for few columns only.
    non_negative : bool, optional
        Whether only rows without negative entries are considered, which the pairings ``chi2`` and ``min_sum`` of
        histograms require. By default this holds if the kernel refuses other rows, or if the formula uses one of these
        pairings and X has no negative entries.
    vary : dict of name to values, optional
        Parameter values to try, such as ``{"gamma": [0.1, 1.0]}``. The report has the verdict for each choice, or the
        reason why the kernel refuses it.
    random_state : int, RandomState or None, default 0
        Seed for the random points.

    Returns
    -------
    KernelReport

    Raises
    ------
    InvalidInput
        For a kernel on objects that is neither proved nor given X, for columns by name without X, and if the kernel
        refuses every choice in `vary`.

    Notes
    -----
    A refutation never depends on rounding: the points of a witness are short decimals, and interval arithmetic on the
    formula shows that zᵀKz < 0. Without a formula (a Python function, a given matrix), the values are assumed to be
    exact to 64 units in the last place, and the report says so. A search without a witness is not a proof.

    References
    ----------
    B. Schölkopf, A. Smola (2002). Learning with kernels. MIT Press. Chapters 2 (Kernels) and 13 (Designing kernels).
    The textbook's chapters "Kernel methods" (5.4) and "Kernels and nonlinearity" (theorem 5.1).

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
    if X is None and isinstance(kernel, TableKernel):  # considers all rows of numbers that encoded tables can have
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


def check_vectors(kernel: Kernel, domain: Domain, rows: Any, seed: int = 0, work: float = MOST_WORK) -> KernelReport:
    """A report on a kernel of rows of numbers, with a search of at most `work` operations.

    Without rows it is kept, because a fit and `check_kernel` ask the same, and searches fit the same kernel many times.
    """
    e = trace_or_none(kernel, exact=True)
    try:
        kept = {} if rows is not None or e is None else _reports(canonical_form(e), _identity(kernel), domain, seed)
    except TypeError:  # a view that cannot be hashed
        kept = {}
    for most, (report, spent) in kept.items():
        if most == work or (most < work and not spent):
            return _with(report, kernel=kernel)
    found = Search(Subject(kernel, e, domain=domain, budget=Budget(work)))
    proof = prove(kernel, domain)
    spectrum, notes = (None, []) if rows is None else _on_rows(kernel, rows, found, seed)
    scale = 1.0 if rows is None else spread(_dense(rows[:1000]))
    _search(found, domain, scale, proof.psd is not None, seed)
    report = _report(kernel, str(domain), proof, found, spectrum, notes)
    kept[work] = report, found.subject.budget.spent
    return report


@lru_cache(maxsize=256)
def _reports(*key: Any) -> dict[float, tuple[KernelReport, bool]]:
    """Reports by their limit of work, which was reached or not. The key holds all that they depend on otherwise."""
    return {}


def _identity(kernel: Kernel) -> tuple[Any, ...]:
    """What tells kernels of the same formula apart; the kernel itself can change."""
    return str(type(kernel)), repr(kernel), kernel.properties


def _varied(kernel: Kernel, X: Any, vary: Mapping[str, Sequence[Any]], options: dict[str, Any]) -> KernelReport:
    """The report of the choice with the most negative witness, or of the first choice, with the verdicts of all."""
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
        do = "give at least one value for each name"
        raise InvalidInput(message("check_kernel", f"vary={vary!r}, which has no values", do))
    first = min(reports, key=lambda one: (1, 0.0) if one.witness is None else (0, one.worst))
    return _with(first, by_parameters=tuple(verdicts))


def _with(report: KernelReport, **changes: Any) -> KernelReport:
    return KernelReport(**{**vars(report), **changes})


def _resolved(kernel: Kernel, X: Any) -> tuple[Kernel, Any]:
    """The kernel with parameters that depend on data resolved on X (or 1 without X), and the validated rows."""
    if X is not None:
        K = KernelOperator(kernel, X)
        return K.kernel, K.X
    if kernel.is_resolved:
        return kernel, None
    if needs_columns(kernel):
        given = f"{kernel!r}, which names columns, without X"
        raise InvalidInput(message("check_kernel", given, "give X, a data frame with these columns"))
    return kernel._resolved(None, blank()), None


def _dense(rows: Any) -> Any:
    """The rows as a dense array of float64."""
    return np.ascontiguousarray(vectors_of(rows).dense(), np.float64)


def _search(found: Search, domain: Domain, scale: float, proved: bool, seed: int) -> None:
    """Search adversarial points, and more of them if neither a proof nor a negative eigenvalue was found."""
    kernel = found.subject.kernel
    most = MOST_COLUMNS if found.subject.expression is not None else domain.d or MOST_COLUMNS
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


def _on_rows(kernel: Kernel, rows: Any, found: Search, seed: int) -> tuple[Spectrum | None, list[str]]:
    """The spectrum of the rows in their own precision, if all have values.

    Adds rows with large entries in λmin's vector to the search.
    """
    n, notes = rows.shape[0], []
    if n > MOST_ROWS:
        rows = rows[sample_rows(n, MOST_ROWS, seed)]
        notes.append(f"the spectrum is that of {MOST_ROWS} of the {n} rows, drawn at random")
    try:
        K = KernelOperator(kernel, rows)
        with np.errstate(all="ignore"):
            known = np.isfinite(K.diagonal())
        if not known.all():
            found.look([_dense(rows[~known][:1])])
            notes.append(f"X has rows without a finite k(x, x), the first of them {int(np.argmin(known))}: no spectrum")
            return None, notes
        spectrum = spectrum_of(K)
    except MercerError as error:
        given = f"X, whose kernel matrix cannot be computed ({error})"
        raise InvalidInput(message("check_kernel", given, "give other rows")) from error
    found.look(_dense(rows[index]) for index in [spectrum.leading, *subsets(rows.shape[0], seed)])
    return spectrum, notes


def _report(
    kernel: Kernel, domain: str, proof: Proof, found: Search, spectrum: Spectrum | None, notes: list[str]
) -> KernelReport:
    witness, gap = found.witness(), found.gap()
    if gap is not None and (witness is not None or proof.psd is not None):
        notes.append(f"{gap}: the {'witness' if witness else 'proof'} holds where k has values; {gap.advice}")
    if witness is None and found.suspicious:
        notes.append(f"λmin/λmax = {found.worst:.1e} on a point set could not be confirmed beyond rounding")
    if found.subject.budget.spent and witness is None:
        notes.append(f"undecided: the search for a formula of {_nodes(found)} ended at its limit of work")
    if witness is None and spectrum is not None and spectrum.is_indefinite:
        notes.append(
            f"on X the matrix in {spectrum.dtype} has λmin/λmax = {spectrum.ratio:.1e}; the formula in higher "
            "precision does not confirm it, so it is rounding; give X in float64"
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
    return counted(found.subject.nodes, "operation")


def _verdict(proof: Proof, witness: Witness | None, gap: Gap | None, sets: int) -> str:
    if witness is not None:
        return "refuted"
    if gap is not None and (proof.psd is None or not sets):  # any proof holds for a function without values
        return "undefined"
    if proof.psd is None:
        return "supported"
    return "declared" if proof.declared else "proved"


def _check_matrix(kernel: Kernel, X: Any) -> KernelReport:
    """The report on a given matrix, about this matrix only."""
    if X is None:
        raise InvalidInput(message("check_kernel", "a precomputed kernel without its matrix", "give X = k(rows, rows)"))
    K = KernelOperator(kernel, X)
    if K.shape[0] != K.shape[1]:
        raise InvalidInput(message("check_kernel", f"a matrix of shape {K.shape}", "give k(X, X): a square matrix"))
    matrix = np.asarray(K.toarray())
    report = check_values(kernel, matrix, None, f"the {counted(len(matrix), 'point')} of the matrix")
    measured = report.verdict == "supported" and report.spectrum is not None and report.spectrum.rank is not None
    return _with(report, verdict="measured") if measured else report


def _check_objects(kernel: Kernel, X: Any, seed: int) -> KernelReport:
    """The report on a function of any objects, from their matrix. For rows of numbers, points are drawn too."""
    if X is None:
        proof = prove(kernel) if kernel.is_resolved else None
        if proof is not None and proof.psd is not None and not proof.declared:
            return _report(kernel, "all objects that it takes", proof, Search(Subject(kernel, None)), None, [])
        given = f"{kernel!r}, a kernel on objects, without X"
        raise InvalidInput(message("check_kernel", given, "give X, the objects (or rows) to check"))
    X = points_of(X).items
    is_table = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"
    rows: Any = np.asarray(X, X.dtype if X.dtype == np.float32 else np.float64) if is_table else list(X)
    n = len(rows)
    index = np.sort(np.random.default_rng(seed).permutation(n)[:MOST_OBJECTS])
    some = rows[index] if is_table else [rows[i] for i in index]
    # Two different lists, so that the function computes both k(x, z) and k(z, x).
    matrix = np.asarray(kernel.block(some, some.copy()), np.float64)
    who = "the objects of X" if n <= MOST_OBJECTS else f"{MOST_OBJECTS} of the {n} objects of X"
    report = check_values(kernel, matrix, some, who)
    if report.witness is not None or not is_table:
        return report
    found = Search(Subject(kernel, None, unit=_unit(matrix)))
    _search(found, Domain(d=rows.shape[1]), spread(rows), False, seed)
    notes = [*report.notes, "random rows were checked too"]
    return _report(kernel, str(Domain(d=rows.shape[1])), prove(kernel), found, report.spectrum, notes)


def check_values(kernel: Kernel, matrix: Any, objects: Any, who: str, unit: float | None = None) -> KernelReport:
    """A report on a function from a matrix of its values, whose rows are named by `objects`.

    `unit` is the rounding of the values. By default it is guessed from the values.
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
    """The eps of the values' precision: that of float32 if all are float32 numbers and not all are integers."""
    single = np.asarray(matrix, np.float32)
    is_single = bool(np.all(single == matrix)) and not bool(np.all(np.rint(single) == single))
    return float(np.finfo(np.float32 if is_single else np.float64).eps)
