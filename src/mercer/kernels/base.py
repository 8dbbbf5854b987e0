"""The base class of kernels, with all that follows from a formula; sums, products, powers and views of kernels."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, ClassVar, NoReturn, Self, TypeAlias

import numpy as np

from mercer.errors import CannotTrace, InvalidInput, NotAKernel, message
from mercer.kernels import evaluation, properties
from mercer.kernels.factors import Factors, in_float64
from mercer.kernels.mixed import as_mixed_rows, numbers_of
from mercer.kernels.parameters import bandwidth, checks
from mercer.kernels.parameters.columns import checked_columns, checked_scales, position_among, shown_columns
from mercer.kernels.parameters.comparable import require_value
from mercer.kernels.parameters.resolution import Resolver, blank, from_rows
from mercer.kernels.properties import Definiteness, Properties
from mercer.kernels.rows import to_numpy
from mercer.kernels.symbolic.expression import Expression, leaves_of
from mercer.kernels.symbolic.functions import abs as absolute
from mercer.kernels.symbolic.functions import sqrt, where
from mercer.kernels.symbolic.pairing import ArrayPair, Pair, trace
from mercer.kernels.symbolic.views import Columns, LengthScales, View
from mercer.numerals import counted
from mercer.points import (
    OBJECTS,
    VECTORS,
    Space,
    as_seed,
    count,
    is_torch,
    points_of,
    require_collection,
    same_names,
    space_named,
    take,
    vectors_of,
)

__all__ = [
    "LONGEST_CHAIN",
    "Array",
    "Constant",
    "Kernel",
    "Normalized",
    "OnColumns",
    "Power",
    "Product",
    "Rescaled",
    "Scaled",
    "Sum",
    "add",
    "divide",
    "multiply",
    "subtract",
    "trace_or_none",
]

Array: TypeAlias = Any
"""A NumPy array, CSR matrix or PyTorch tensor."""


_OF_ANY_ROWS = (__name__, "mercer.kernels.vectors.products", "mercer.kernels.vectors.stationary")
"""Modules of kernels without χ² in a formula of their own, which need no trace to know it."""


_PLUMBING = {
    *("checks_data", "counts_features", "factors", "has_fast_matmul"),
    *("precedence", "prefers_large_blocks", "prepared", "rule_parameter"),
}
"""What the parts of mercer ask kernels for, and completion does not offer."""


class _NamedSpace(property):
    """The `space` of a class that only states its name."""


@dataclass(frozen=True, repr=False)
class Kernel:
    """k(x, z): a subclass is a frozen dataclass of parameters that states its `formula` over a pair of rows.

    A formula over the pairings of `pair` is evaluated on arrays, traced into an expression for the native engine, and
    composed by `+ * **`. A kernel on objects that are not vectors, or without such a formula, overrides `block`.

    Kernels are values: they are equal if type and parameters are equal, they are hashable, and they never change. Only
    `set_params` changes a kernel, because scikit-learn's protocol demands it; do not use it on a kernel that is a key
    of a dict. A class without the decorator of a dataclass is refused if it has parameters, since its equality would
    ignore them.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from mercer.kernels import Kernel
    >>> @dataclass(frozen=True, repr=False)
    ... class InverseMultiquadric(Kernel):
    ...     c: float = 1.0
    ...     def formula(self, pair):
    ...         return 1 / np.sqrt(pair.sqdist + self.c**2)
    >>> InverseMultiquadric()([[0.0], [1.0]]).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    __array_ufunc__: ClassVar[None] = None  # so that np.float64(0.5) * kernel calls the kernel's __rmul__

    rule_parameter: ClassVar[str] = "gamma"
    """The parameter that may be the rule "scale", "median" or "auto", which `resolve` replaces by a number."""

    def __new__(cls, *args: Any, **params: Any) -> Self:
        require_value(cls, Kernel)
        return super().__new__(cls)

    def __dir__(self) -> list[str]:
        """The names that completion offers: parameters, and what users call or override."""
        return [one for one in super().__dir__() if one not in _PLUMBING or one in vars(self)]

    def __init_subclass__(cls, **options: Any) -> None:
        """Derive `space` for a class that states only the space's name, `domain`."""
        super().__init_subclass__(**options)
        stated = next(vars(one) for one in cls.__mro__ if "space" in vars(one) or "domain" in vars(one))
        if "space" not in stated:
            cls.space = _NamedSpace(lambda self: space_named(self.domain))  # type: ignore[assignment]

    # ---- what a subclass states -------------------------------------------------------------------------------------

    def formula(self, pair: Any) -> Any:
        """k(x, z) as an expression over the pairings of `pair`."""
        advice = "override formula(pair), or block(X, Z)"
        raise CannotTrace(message(type(self).__name__, "this kernel has no formula over pairings", advice))

    @property
    def properties(self) -> Properties:
        """The properties that are proved for the kernel; none by default."""
        return Properties()

    @property
    def space(self) -> Space:
        """The space of the points that the kernel has values for; a class states it here or by `domain`."""
        return VECTORS

    @property
    def domain(self) -> str:
        """The name of `space`: "vectors" (rows of numbers), "precomputed" (rows of kernel values), or "any"."""
        stated = (vars(one)["space"] for one in type(self).__mro__ if "space" in vars(one))
        space: property = next(one for one in stated if not isinstance(one, _NamedSpace))
        return str(space.__get__(self).name)

    @property
    def measure(self) -> str:
        """The measure of a pair that γ multiplies: a key of `bandwidth.MEASURES`."""
        return "sqdist"

    @property
    def prefers_large_blocks(self) -> bool:
        """Whether a large block costs much less than its parts one by one."""
        return any(child.prefers_large_blocks for child in self._children().values())

    def as_objects(self, X: Array) -> Array:
        """Objects that are not a table of numbers, checked and converted to the form that `block` reads."""
        require_collection(X, type(self).__name__)
        for child in self._children().values():
            X = child.as_objects(X)
        return X

    def check_data(self, X: Array) -> None:
        """Raise InvalidInput if the kernel is not defined on these (validated) rows."""
        for views in self._histograms():
            refuse_negative(type(self).__name__, reduce(lambda rows, view: view.apply(rows), views, X))
        for child in self._children().values():
            child.check_data(X)

    @property
    def checks_data(self) -> bool:
        """Whether `check_data` reads the rows."""
        own = type(self).check_data is not Kernel.check_data
        return own or bool(self._histograms()) or any(child.checks_data for child in self._children().values())

    def _histograms(self) -> set[tuple[View, ...]]:
        """The views of the rows of which the formula of this class takes χ², which only histograms have.

        >>> from mercer.kernels import Formula
        >>> Formula("exp(-chi2)")._histograms(), Formula("min_sum")._histograms()
        ({()}, set())
        """
        if type(self).__module__ in _OF_ANY_ROWS or not self.space.vectors:
            return set()
        e = trace_or_none(self)
        pairings = () if e is None else (leaf.value for leaf in leaves_of(e) if leaf.op == "pairing")
        return {views for kind, views in pairings if kind == "chi2"}

    def prepared(self, X: Array, Z: Array | None) -> tuple[Kernel, Array, Array | None]:
        """The kernel and the rows for the computation; a kernel of tables encodes its rows as numbers first."""
        return self, X, Z

    def _of_objects(self) -> bool:
        """Whether each row must be an object that is not a vector, such as a sequence or a set of points.

        >>> from mercer.kernels import Linear, Spectrum
        >>> (0.5 * Spectrum())._of_objects(), Spectrum().on([1])._of_objects(), Linear()._of_objects()
        (True, False, False)
        """
        children = self._children().values()
        return any(child._of_objects() for child in children) if children else self.space.objects

    def _numbered(self) -> bool:
        """Whether the kernel reads precomputed kernel values."""
        return self.space.numbered

    @property
    def of_mixed_rows(self) -> bool:
        """Whether a part of the kernel reads objects in a column of the rows.

        >>> from mercer.kernels import Linear, Spectrum
        >>> (Linear().on([0]) + Spectrum().on([1])).of_mixed_rows, Spectrum().of_mixed_rows
        (True, False)
        """
        return any(child.of_mixed_rows for child in self._children().values())

    def _of_all_columns(self) -> Kernel | None:
        """A part of the kernel that reads all columns of the rows, or None."""
        children = self._children().values()
        parts = (child._of_all_columns() for child in children)
        return next((part for part in parts if part is not None), None) if children else self

    # ---- values -----------------------------------------------------------------------------------------------------

    def block(self, X: Array, Z: Array) -> Array:
        """All k(x, z) of validated rows, in the dtype of the rows; for X with itself pass the same object twice."""
        self._require_resolved()
        pair = ArrayPair(X, Z)
        return full(evaluation.on_arrays(self, pair), (X.shape[0], Z.shape[0]), pair.X)

    def diagonal(self, X: Array) -> Array:
        """All k(x, x), without the matrix; by `block`, one by one, for objects and for a kernel without a formula."""
        self._require_resolved()
        X = self._rows(X)
        without_formula = type(self).block is not Kernel.block and type(self).formula is Kernel.formula
        if self.space.objects or without_formula:
            each = (take(X, np.array([place])) for place in range(count(X)))
            return np.array([np.asarray(self.block(one, one))[0, 0] for one in each], np.float64)
        return full(evaluation.on_arrays(self, ArrayPair(X, X).x), (X.shape[0], 1), X).reshape(-1)

    @property
    def has_fast_matmul(self) -> bool:
        """Whether the kernel has `matmul`: products K V without the matrix, for example by explicit features."""
        return False

    def matmul(self, X: Array, Z: Array, V: Array) -> Array:
        """K(X, Z) V in float64; only kernels that `has_fast_matmul` have it."""
        raise NotImplementedError(type(self).__name__)

    @property
    def counts_features(self) -> bool:
        """Whether products are sums over features that are counted: they are fast if there are `factors`."""
        return False

    def factors(self, X: Array, Z: Array, room: float) -> Factors | None:
        """K(X, Z) by factors of about `room` bytes or less, for many products; None if there are none."""
        return None

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """The dense matrix of all k(x, z).

        Parameters
        ----------
        X : points of the kernel's space, such as an array of shape (n, d)
            If Z is None, parameters that depend on data are resolved on X.
        Z : points, optional
            By default X.

        Returns
        -------
        array of shape (n, m)

        Raises
        ------
        InvalidInput
            For rows that the kernel has no values for, and if Z is given while parameters still depend on data.

        Examples
        --------
        >>> from mercer.kernels import Linear
        >>> Linear()([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
        array([[11.,  2.]])
        """
        Z = None if Z is X else Z
        if Z is not None and not self.is_resolved:
            self._refuse_unresolved(f"{self!r} of two data sets")
        kernel = self if Z is not None else self.resolve(X)
        x = kernel.space.points(X, type(self).__name__, kernel.as_objects)
        if Z is not None:
            if not kernel.space.numbered:
                same_names(points_of(X).names, points_of(Z).names, type(self).__name__)
            Z = kernel.space.others(x, Z, type(self).__name__, kernel.as_objects).rows
        kernel.check_data(x.rows)
        if Z is not None:
            kernel.check_data(Z)
        return evaluation.dense(kernel, x.rows, Z)

    def _rows(self, X: Array) -> Array:
        return self.space.points(X, type(self).__name__, self.as_objects).rows

    @property
    def traceable(self) -> bool:
        """Whether the formula can be traced, so that the native engine runs it.

        Examples
        --------
        >>> from mercer.kernels import Function, Gaussian
        >>> Gaussian().traceable, Function(min).traceable
        (True, False)
        """
        return trace_or_none(self) is not None

    # ---- parameters that depend on data -----------------------------------------------------------------------------

    @property
    def is_resolved(self) -> bool:
        """Whether all parameters are numbers."""
        own = getattr(self, self.rule_parameter, None)
        return not bandwidth.is_rule(own) and all(child.is_resolved for child in self._children().values())

    def resolve(
        self,
        X: Array,
        feature_names: Iterable[str] | None = None,
        sample_weight: Array | None = None,
        random_state: Any = 0,
    ) -> Kernel:
        """The kernel with rules ("scale", "median", "auto") and names of columns replaced by numbers, given the rows X.

        Parameters
        ----------
        X : array, CSR matrix, tensor or data frame
            The training rows.
        feature_names : names of the columns, optional
            By default those of a data frame.
        sample_weight : array of shape (n,), optional
            A row of weight 2 counts as two rows, and a row of weight 0 is ignored.
        random_state : int, RandomState or None, default 0
            Draws the sample of rows that "median" uses.

        Raises
        ------
        InvalidInput
            If a rule yields no positive number for these rows, or a name of a column is unknown.

        Examples
        --------
        >>> from mercer.kernels import Gaussian
        >>> Gaussian(gamma="scale").resolve([[0.0], [2.0]])
        Gaussian(gamma=1.0)
        """
        if self.is_resolved:
            return self
        names = points_of(X).names if feature_names is None else [str(name) for name in feature_names]
        rows = to_numpy(self._rows(X))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights is not None:
            rows, weights = rows[weights > 0], weights[weights > 0]
        return self._resolved(rows, from_rows(weights, as_seed(random_state, type(self).__name__), names))

    def _resolved(self, X: Array, resolver: Resolver) -> Kernel:
        """Resolve the sub-kernels on the same rows, and the kernel's own parameters."""
        changes: dict[str, Any] = {
            name: child._resolved(X, resolver) for name, child in self._children().items() if not child.is_resolved
        }
        rule = getattr(self, self.rule_parameter, None)
        if isinstance(rule, str) and bandwidth.is_rule(rule):
            changes[self.rule_parameter] = self._from_gamma(resolver.bandwidth(rule, self.measure, X))
        return replace(self, **changes) if changes else self

    def _from_gamma(self, gamma: float) -> float:
        """The value of `rule_parameter` for a γ: a kernel with a length-scale converts it."""
        return gamma

    def _require_resolved(self) -> None:
        if not self.is_resolved:
            self._refuse_unresolved(repr(self))

    def _refuse_unresolved(self, what: str) -> NoReturn:
        given, instead = self._unresolved()
        do = f"call .resolve(X_train) first, or give {instead}"
        raise InvalidInput(message(type(self).__name__, f"{what} has parameters that depend on data, {given}", do))

    def _unresolved(self) -> tuple[str, str]:
        """The first parameter that depends on data, as it is, and what may be given instead.

        >>> from mercer.kernels import Gaussian, Linear
        >>> (Linear() + Gaussian(gamma="median"))._unresolved()
        ("gamma='median'", 'a number')
        """
        own = getattr(self, self.rule_parameter, None)
        if bandwidth.is_rule(own):
            return f"{self.rule_parameter}={own!r}", "a number"
        children = self._children().values()
        found = next((child._unresolved() for child in children if not child.is_resolved), None)
        return found or (", ".join(self._params()), "their values")

    # ---- algebra ----------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        return add(self, other) if isinstance(other, Kernel) or is_number(other) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        return add(other, self) if isinstance(other, Kernel) or is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        return multiply(self, other) if isinstance(other, Kernel) or is_number(other) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return multiply(other, self) if isinstance(other, Kernel) or is_number(other) else NotImplemented

    def __truediv__(self, other: Any) -> Kernel:
        return divide(self, other)

    def __pow__(self, exponent: float) -> Kernel:
        return Power(self, exponent)

    def __neg__(self) -> Kernel:
        return Scaled(-1.0, self)

    def __sub__(self, other: Any) -> Kernel:
        return subtract(self, other)

    def __rsub__(self, other: Any) -> Kernel:
        return subtract(other, self)

    def normalized(self) -> Kernel:
        """k(x, z)/√(k(x, x) k(z, z)), the cosine of the angle in feature space; 0 if k(x, x) or k(z, z) is 0."""
        return Normalized(self)

    def on(self, columns: int | str | Iterable[int | str]) -> Kernel:
        """The kernel on some columns: indices, or names that `resolve` looks up in a data frame.

        Examples
        --------
        >>> from mercer.kernels import Gaussian
        >>> Gaussian(gamma=1.0).on([0, 2])
        Gaussian(gamma=1.0).on([0, 2])
        """
        return OnColumns(self, columns)

    def with_length_scales(self, scales: Iterable[float]) -> Kernel:
        """The kernel k(x/scales, z/scales): each column is divided by its length-scale."""
        return Rescaled(self, scales)

    # ---- parameters -------------------------------------------------------------------------------------------------

    def _params(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}

    def _children(self) -> dict[str, Kernel]:
        return {name: value for name, value in self._params().items() if isinstance(value, Kernel)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with `deep` also those of sub-kernels, as `kernel__gamma`.

        Examples
        --------
        >>> from mercer.kernels import Gaussian
        >>> (2.0 * Gaussian(gamma=0.5)).get_params()
        {'scale': 2.0, 'kernel': Gaussian(gamma=0.5), 'kernel__gamma': 0.5}
        """
        params = self._params()
        if deep:
            for name, child in self._children().items():
                params |= {f"{name}__{inner}": value for inner, value in child.get_params().items()}
        return params

    def replace(self, **params: Any) -> Self:
        """A copy with other parameters; those of sub-kernels are named `kernel__gamma`.

        Examples
        --------
        >>> from mercer.kernels import Gaussian
        >>> (2.0 * Gaussian(gamma=0.5)).replace(kernel__gamma=1.0)
        2.0 * Gaussian(gamma=1.0)
        """
        own = {name: value for name, value in params.items() if "__" not in name}
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            head, mark, rest = name.partition("__")
            if mark:
                nested.setdefault(head, {})[rest] = value
        self._refuse_unknown(set(own) | set(nested))
        for name, inner in nested.items():
            child = own.get(name, getattr(self, name))
            if not isinstance(child, Kernel):
                advice = f"valid names are {sorted(self.get_params())}"
                given = f"{name!r} is not a kernel and has no parameters"
                raise InvalidInput(message(type(self).__name__, given, advice))
            own[name] = child.replace(**inner)
        return replace(self, **own)

    def _refuse_unknown(self, names: set[str]) -> None:
        unknown = sorted(names - set(self._params()))
        if unknown:
            known = sorted(self.get_params())
            advice = f"valid names are {known}" if known else "it has none; choose another kernel, or leave it out"
            raise InvalidInput(message(type(self).__name__, f"no parameter {unknown[0]!r}", advice))

    def set_params(self, **params: Any) -> Self:
        """Validate parameters and change this kernel in place, as scikit-learn's protocol demands; prefer `replace`.

        Sub-kernels are replaced and not changed, so that other kernels with the same sub-kernels keep their parameters.
        """
        for name, value in self.replace(**params)._params().items():
            object.__setattr__(self, name, value)
        return self

    def _set(self, name: str, value: Any) -> None:
        """Store a converted parameter; only for `__post_init__`."""
        object.__setattr__(self, name, value)

    # ---- text -------------------------------------------------------------------------------------------------------

    precedence: ClassVar[int] = 4
    """The precedence of the kernel's text: 1 for a sum, 2 for a product, 3 for a power, 4 for all others."""

    def __repr__(self) -> str:
        shown = []
        for field in fields(self):
            value = getattr(self, field.name)
            plain = type(value) is type(field.default) and not isinstance(value, np.ndarray)
            if field.init and not (plain and value == field.default):
                shown.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _bracketed(self, precedence: int) -> str:
        return repr(self) if self.precedence >= precedence else f"({self!r})"


def full(values: Any, shape: tuple[int, int], like: Array) -> Array:
    """The result of a formula as an array of this shape, in the dtype of the rows."""
    if is_torch(like):
        values = values if is_torch(values) else like.new_tensor(values)
        return values.to(like.dtype).expand(shape).contiguous()
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        given = f"the formula returned {values if values.ndim else values.item()!r:.60}"
        raise InvalidInput(message("Kernel", given, "return numbers, one for each pair"))
    if values.shape != shape:
        # A copy, because the entries of a broadcast view share memory.
        values = np.array(np.broadcast_to(values, shape))
    return values.astype(like.dtype, copy=False)


def refuse_negative(who: str, X: Array) -> None:
    """Raise InvalidInput for negative entries."""
    values = vectors_of(X).values
    if values.shape[0] and bool((values < 0).any()):
        advice = "give counts or frequencies, or choose another kernel"
        raise InvalidInput(message(who, "negative entries in the data", advice))


def trace_or_none(kernel: Kernel, exact: bool = False) -> Expression | None:
    """The traced formula, or None if it cannot be traced; with `exact` its numbers are not combined with rounding."""
    # Not cached, because `set_params` changes kernels in place.
    try:
        return trace(kernel if kernel.is_resolved else kernel._resolved(None, blank()), exact)
    except CannotTrace:
        return None


# ---- compositions: a closure theorem makes each of them a kernel (see `properties`) ----------------------------------


@dataclass(frozen=True, repr=False)
class Constant(Kernel):
    """k(x, z) = value ≥ 0, as in `kernel + number`.

    Parameters
    ----------
    value : float, default 1.0

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() + 2.0)([[1.0]])
    array([[3.]])
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        self._set("value", checks.non_negative("Constant", "value", self.value))

    def formula(self, pair: Any) -> Any:
        return self.value

    def block(self, X: Array, Z: Array) -> Array:
        # Unlike the formula, it accepts any objects: a constant may be added to a Function of strings.
        x, shape = points_of(X), (count(X), count(Z))
        return X.new_full(shape, self.value) if is_torch(X) else np.full(shape, self.value, x.dtype)

    def diagonal(self, X: Array) -> Array:
        return self.block(X, X[:1])[:, 0] if count(X) else self.block(X, X).reshape(-1)

    @property
    def has_fast_matmul(self) -> bool:
        return True

    def matmul(self, X: Array, Z: Array, V: Array) -> Array:
        return np.repeat(self.value * V.sum(axis=0, keepdims=True), count(X), axis=0)

    def factors(self, X: Array, Z: Array, room: float) -> Factors | None:
        return Factors.constant(self.value, count(X), None if Z is X else count(Z))

    @property
    def space(self) -> Space:
        return OBJECTS

    def _of_objects(self) -> bool:
        return False

    def _of_all_columns(self) -> None:
        return None

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE, stationary=True, bounded=True, infinitely_divisible=True)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, which can be added to a kernel or multiply it."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def add(left: Kernel | float, right: Kernel | float) -> Kernel:
    """left + right; a number > 0 becomes a constant kernel, and 0 is dropped, so that sum([k1, k2]) works."""
    if isinstance(left, Kernel):
        if isinstance(right, Kernel):
            return _joined(Sum, left, right)
        return left if right == 0 else _joined(Sum, left, _constant(right))
    if isinstance(right, Kernel):
        return right if left == 0 else _joined(Sum, _constant(left), right)
    raise TypeError("one of the two must be a kernel")


LONGEST_CHAIN = 16
"""Operands of operands above which a sum or a product becomes a balanced tree: then thousands of terms are not nested
too deeply to be fitted, printed or saved."""


def _joined(kind: type[_Pairwise], left: Kernel, right: Kernel) -> Kernel:
    """A sum or a product; where many are chained, a balanced tree of the same terms in the same order."""
    joined = kind(left, right)
    for side in ("left", "right"):
        one: Kernel = joined
        for _ in range(LONGEST_CHAIN):
            one = getattr(one, side)
            if not isinstance(one, kind):
                break
        else:
            return _balanced(kind, _terms(kind, joined))
    return joined


def _terms(kind: type[_Pairwise], kernel: Kernel) -> list[Kernel]:
    """The operands of nested sums or products, from the left to the right."""
    if not isinstance(kernel, kind):
        return [kernel]
    return _terms(kind, kernel.left) + _terms(kind, kernel.right)


def _balanced(kind: type[_Pairwise], terms: list[Kernel]) -> Kernel:
    half = (len(terms) + 1) // 2
    return terms[0] if len(terms) == 1 else kind(_balanced(kind, terms[:half]), _balanced(kind, terms[half:]))


def _constant(value: float) -> Constant:
    return Constant(checks.non_negative("kernel + number", "number", value, "add a number ≥ 0"))


def multiply(left: Kernel | float, right: Kernel | float) -> Kernel:
    """left · right; one of them may be a number ≥ 0."""
    if isinstance(left, Kernel):
        return _joined(Product, left, right) if isinstance(right, Kernel) else Scaled(right, left)
    if isinstance(right, Kernel):
        return Scaled(left, right)
    raise TypeError("one of the two must be a kernel")


def divide(kernel: Kernel, value: Any) -> Kernel:
    """kernel / number."""
    if isinstance(value, Kernel):
        raise NotAKernel(message("kernel / kernel", f"{kernel!r} / ({value!r})", "divide by a positive number only"))
    return Scaled(1.0 / checks.positive("kernel / number", "number", value), kernel)


def subtract(left: Any, right: Any) -> Kernel:
    """Raise NotAKernel: a difference of kernels is in general not a kernel."""
    given = f"{left!r} - {right!r} is not a kernel in general"
    raise NotAKernel(message("kernel - kernel", given, "add kernels with non-negative weights instead"))


def _require_same_space(who: str, left: Kernel, right: Kernel) -> None:
    if left._numbered() != right._numbered():
        given = f"{left!r} and {right!r}: only one of them reads precomputed kernel values"
        raise InvalidInput(message(who, given, "compute both matrices, combine them, and use Precomputed()"))


def require_kernel(who: str, kernel: Any) -> None:
    if not isinstance(kernel, Kernel):
        advice = "give a Kernel; as_kernel(...) makes one from a name"
        raise InvalidInput(message(who, f"{kernel!r} is not a kernel", advice))


def require_no_precomputed(who: str, kernel: Kernel) -> None:
    if kernel.space.numbered:
        raise InvalidInput(message(who, f"{kernel!r} reads precomputed kernel values", "transform the matrix itself"))


@dataclass(frozen=True, repr=False)
class _Pairwise(Kernel):
    """Two kernels combined entry by entry."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        for kernel in (self.left, self.right):
            require_kernel(type(self).__name__, kernel)
        _require_same_space(type(self).__name__, self.left, self.right)

    def _numbered(self) -> bool:
        return self.left._numbered()  # as right does; that `space` walks through all terms would make sums slow

    @property
    def space(self) -> Space:
        if self.of_mixed_rows:
            return OBJECTS
        return self.right.space if self.right.space.vectors else self.left.space

    def as_objects(self, X: Array) -> Array:
        if self.of_mixed_rows and (part := self._of_all_columns()) is not None:
            given = f"{part!r:.200} reads all columns, and some of them are not numbers"
            do = "say which columns each part reads: .on([...])"
            raise InvalidInput(message(type(self).__name__, given, do))
        return super().as_objects(X)


@dataclass(frozen=True, repr=False)
class Sum(_Pairwise):
    """k(x, z) = left(x, z) + right(x, z).

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(gamma=0.5) + Linear()
    Gaussian(gamma=0.5) + Linear()
    """

    precedence: ClassVar[int] = 1

    def formula(self, pair: Any) -> Any:
        return self.left.formula(pair) + self.right.formula(pair)

    def block(self, X: Array, Z: Array) -> Array:
        return self.left.block(X, Z) + self.right.block(X, Z)

    def diagonal(self, X: Array) -> Array:
        return self.left.diagonal(X) + self.right.diagonal(X)

    @property
    def has_fast_matmul(self) -> bool:
        return self.left.has_fast_matmul and self.right.has_fast_matmul

    def matmul(self, X: Array, Z: Array, V: Array) -> Array:
        return self.left.matmul(X, Z, V) + self.right.matmul(X, Z, V)

    @property
    def counts_features(self) -> bool:
        return self.left.counts_features or self.right.counts_features

    def factors(self, X: Array, Z: Array, room: float) -> Factors | None:
        left = self.left.factors(X, Z, room)
        right = None if left is None else self.right.factors(X, Z, room - left.nbytes)
        return None if left is None or right is None else left + right

    @property
    def properties(self) -> Properties:
        return properties.of_sum(self.left.properties, self.right.properties)

    def __repr__(self) -> str:
        return f"{self.left._bracketed(1)} + {self.right._bracketed(2)}"


@dataclass(frozen=True, repr=False)
class Product(_Pairwise):
    """k(x, z) = left(x, z) · right(x, z) (Schur's product theorem).

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(gamma=0.5) * Linear()
    Gaussian(gamma=0.5) * Linear()
    """

    precedence: ClassVar[int] = 2

    def formula(self, pair: Any) -> Any:
        return self.left.formula(pair) * self.right.formula(pair)

    def block(self, X: Array, Z: Array) -> Array:
        return self.left.block(X, Z) * self.right.block(X, Z)

    def diagonal(self, X: Array) -> Array:
        return self.left.diagonal(X) * self.right.diagonal(X)

    @property
    def properties(self) -> Properties:
        return properties.of_product(self.left.properties, self.right.properties)

    def __repr__(self) -> str:
        return f"{self.left._bracketed(2)} * {self.right._bracketed(3)}"


@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """k(x, z) = scale · kernel(x, z), scale ≥ 0.

    Parameters
    ----------
    scale : float ≥ 0
    kernel : Kernel

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (0.5 * Linear())([[2.0]])
    array([[2.]])
    """

    scale: float
    kernel: Kernel
    precedence: ClassVar[int] = 2

    def __post_init__(self) -> None:
        require_kernel("Scaled", self.kernel)
        why = "a negative multiple is not a kernel; give a number ≥ 0"
        self._set("scale", checks.non_negative("Scaled", "scale", self.scale, why))

    @property
    def space(self) -> Space:
        return self.kernel.space

    def formula(self, pair: Any) -> Any:
        return self.scale * self.kernel.formula(pair)

    def block(self, X: Array, Z: Array) -> Array:
        return self.scale * self.kernel.block(X, Z)

    def diagonal(self, X: Array) -> Array:
        return self.scale * self.kernel.diagonal(X)

    @property
    def has_fast_matmul(self) -> bool:
        return self.kernel.has_fast_matmul

    def matmul(self, X: Array, Z: Array, V: Array) -> Array:
        return self.scale * self.kernel.matmul(X, Z, V)

    @property
    def counts_features(self) -> bool:
        return self.kernel.counts_features

    def factors(self, X: Array, Z: Array, room: float) -> Factors | None:
        found = self.kernel.factors(X, Z, room)
        return None if found is None else found.scaled(self.scale)

    @property
    def properties(self) -> Properties:
        return properties.of_scaled(self.kernel.properties, self.scale)

    def __repr__(self) -> str:
        return f"{self.scale!r} * {self.kernel._bracketed(3)}"


@dataclass(frozen=True, repr=False)
class Power(Kernel):
    """k(x, z) = kernel(x, z)^exponent with a positive integer, or any number > 0 if the kernel is infinitely divisible.

    Parameters
    ----------
    kernel : Kernel
    exponent : float > 0

    Raises
    ------
    NotAKernel
        If the exponent is not positive, or is not an integer and the kernel is not infinitely divisible.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> (Linear() ** 2)([[2.0]])
    array([[16.]])
    >>> Gaussian(gamma=1.0) ** 0.5
    Gaussian(gamma=1.0) ** 0.5
    """

    kernel: Kernel
    exponent: int | float  # whole powers are no parameters to differentiate in
    precedence: ClassVar[int] = 3

    def __post_init__(self) -> None:
        require_kernel("Power", self.kernel)
        require_no_precomputed("Power", self.kernel)
        exponent = checks.number("Power", "exponent", self.exponent)
        if exponent <= 0:
            given = f"exponent={self.exponent!r} is not positive"
            raise NotAKernel(message("Power", given, "give a positive exponent; Constant(1.0) is the power 0"))
        if exponent != int(exponent) and not self.kernel.properties.infinitely_divisible:
            given = f"the power {exponent} of {self.kernel!r}, which is not infinitely divisible"
            raise NotAKernel(message("Power", given, "give an integer, or a Gaussian-like kernel"))
        self._set("exponent", int(exponent) if exponent == int(exponent) else exponent)

    @property
    def space(self) -> Space:
        return self.kernel.space

    def formula(self, pair: Any) -> Any:
        return self.kernel.formula(pair) ** self.exponent

    def block(self, X: Array, Z: Array) -> Array:
        return self.kernel.block(X, Z) ** self.exponent

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(X) ** self.exponent

    @property
    def properties(self) -> Properties:
        return properties.of_power(self.kernel.properties, self.exponent)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)} ** {self.exponent!r}"


@dataclass(frozen=True, repr=False)
class Normalized(Kernel):
    """k(x, z) = kernel(x, z)/√(kernel(x, x) · kernel(z, z)), and 0 where one of these is 0.

    Where one of them is negative it is NaN, which fits refuse: no feature has a negative square.

    Parameters
    ----------
    kernel : Kernel

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().normalized()([[3.0, 4.0], [0.0, 0.0]], [[1.0, 0.0]])
    array([[0.6],
           [0. ]])
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        require_kernel("Normalized", self.kernel)
        require_no_precomputed("Normalized", self.kernel)

    @property
    def space(self) -> Space:
        return self.kernel.space

    def formula(self, pair: Any) -> Any:
        k = self.kernel.formula
        return k(pair) * inverse_root(k(pair.x)) * inverse_root(k(pair.z))

    def block(self, X: Array, Z: Array) -> Array:
        values = self.kernel.block(X, Z)
        # When blocks are expensive, so is the diagonal; for K(X, X) we already have it.
        given = values.diagonal() if Z is X and self.kernel.prefers_large_blocks else self.kernel.diagonal(X)
        rows = inverse_root(given)
        columns = rows if Z is X else inverse_root(self.kernel.diagonal(Z))
        return values * rows.reshape(-1, 1) * columns.reshape(1, -1)

    def diagonal(self, X: Array) -> Array:
        d = _own(self.kernel, X)
        root = inverse_root(d)
        return d * root * root  # in this order, because root² may overflow

    @property
    def has_fast_matmul(self) -> bool:
        return self.kernel.has_fast_matmul

    def matmul(self, X: Array, Z: Array, V: Array) -> Array:
        columns = inverse_root(_own(self.kernel, Z))
        rows = columns if Z is X else inverse_root(_own(self.kernel, X))
        return rows.reshape(-1, 1) * self.kernel.matmul(X, Z, columns.reshape(-1, 1) * V)

    @property
    def counts_features(self) -> bool:
        return self.kernel.counts_features

    def factors(self, X: Array, Z: Array, room: float) -> Factors | None:
        found = self.kernel.factors(X, Z, room)
        return None if found is None else found.weighted(*map(inverse_root, self._diagonals(found, X, Z)))

    def _diagonals(self, found: Factors, X: Array, Z: Array) -> tuple[Array, Array]:
        """All k(x, x) and k(z, z) before they are normalised."""
        if found.A is found.B:
            return (found.diagonal(),) * 2
        return _own(self.kernel, X), _own(self.kernel, Z)

    @property
    def properties(self) -> Properties:
        return properties.of_normalized(self.kernel.properties)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)}.normalized()"


def _own(kernel: Kernel, X: Array) -> Array:
    """All k(x, x) in float64: squares of rows in float32 may be too small for it."""
    if getattr(X, "dtype", None) != np.float32:
        return kernel.diagonal(X)
    out = np.empty(X.shape[0])
    for part, rows in in_float64(X):
        out[part] = kernel.diagonal(rows)
    return out


def inverse_root(value: Any) -> Any:
    """1/√value, 0 for 0, and NaN for negative values, which a kernel's diagonal does not have."""
    is_nonzero = absolute(value) > 0
    return where(is_nonzero, 1 / sqrt(where(is_nonzero, value, 1.0)), 0.0)


@dataclass(frozen=True, repr=False)
class OnColumns(Kernel):
    """k(x, z) = kernel(x[columns], z[columns]).

    Parameters
    ----------
    kernel : Kernel
    columns : int, str, or iterable of these
        Indices from 0, or names, which `resolve` looks up. A kernel on objects, such as sequences, reads one column of
        an array of objects; it may be combined with kernels on columns of numbers.

    Raises
    ------
    InvalidInput
        If a kernel of objects is to read several columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, Spectrum
    >>> Linear().on([1])([[5.0, 2.0]])
    array([[4.]])
    >>> rows = np.array([[2.0, "abab"], [1.0, "ab"]], dtype=object)
    >>> (Linear().on([0]) + Spectrum(k=2).on([1]))(rows)
    array([[9., 4.],
           [4., 2.]])
    """

    kernel: Kernel
    columns: Any

    def __post_init__(self) -> None:
        require_kernel("on", self.kernel)
        require_no_precomputed("on", self.kernel)
        self._set("columns", checked_columns(self.columns))
        if self.kernel._of_objects() and len(self.columns) > 1:
            given = f"{self.kernel!r} on {counted(len(self.columns), 'column')}"
            raise InvalidInput(message("on", given, "a kernel of objects reads one column: use a kernel for each"))

    @property
    def space(self) -> Space:
        return OBJECTS if self.of_mixed_rows else VECTORS

    def _of_objects(self) -> bool:
        return False

    @property
    def of_mixed_rows(self) -> bool:
        return self.kernel._of_objects() or super().of_mixed_rows

    def _of_all_columns(self) -> None:
        return None

    def as_objects(self, X: Array) -> Array:
        rows = as_mixed_rows(X, max((c for c in self.columns if isinstance(c, int)), default=0) + 1)
        if self.is_resolved:
            self._seen(rows)
        return rows

    @property
    def has_fast_matmul(self) -> bool:
        return self.kernel._of_objects() and self.kernel.has_fast_matmul

    def matmul(self, X: Array, Z: Array, V: Array) -> Array:
        seen = self._seen(X)
        return self.kernel.matmul(seen, seen if Z is X else self._seen(Z), V)

    @property
    def counts_features(self) -> bool:
        return self.kernel.counts_features

    def factors(self, X: Array, Z: Array, room: float) -> Factors | None:
        seen = self._seen(X)
        return self.kernel.factors(seen, seen if Z is X else self._seen(Z), room)

    def _seen(self, X: Array) -> Array:
        """The chosen columns: one column of objects for a kernel of objects, else a table of numbers."""
        rows = Columns(self.columns).apply(X if points_of(X).columns else as_mixed_rows(X))
        if self.kernel._of_objects():
            return self.kernel.as_objects(rows[:, 0])
        return numbers_of(rows) if getattr(rows, "dtype", None) == np.dtype(object) else rows

    def formula(self, pair: Any) -> Any:
        return self.kernel.formula(pair.through(Columns(self.columns)))

    def block(self, X: Array, Z: Array) -> Array:
        self._require_resolved()
        seen = self._seen(X)
        return self.kernel.block(seen, seen if Z is X else self._seen(Z))

    def diagonal(self, X: Array) -> Array:
        self._require_resolved()
        mixed = getattr(X, "dtype", None) == np.dtype(object)
        return self.kernel.diagonal(self._seen(X if mixed else self._rows(X)))

    def check_data(self, X: Array) -> None:
        self.kernel.check_data(self._seen(X))

    @property
    def is_resolved(self) -> bool:
        return not any(isinstance(column, str) for column in self.columns) and self.kernel.is_resolved

    def _unresolved(self) -> tuple[str, str]:
        named = next((column for column in self.columns if isinstance(column, str)), None)
        return super()._unresolved() if named is None else (f"the column {named!r}", "its index")

    def _resolved(self, X: Array, resolver: Resolver) -> Kernel:
        indices = tuple(c if isinstance(c, int) else resolver.column(c) for c in self.columns)
        # Names in the inner kernel are those of the same table, but indices there count the columns chosen here.
        inside = replace(resolver, column=lambda name: position_among(name, indices, resolver))
        rows = None if X is None else OnColumns(self.kernel, indices)._seen(X)
        return OnColumns(self.kernel._resolved(rows, inside), indices)

    @property
    def properties(self) -> Properties:
        return properties.of_on_columns(self.kernel.properties)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)}.on({shown_columns(self.columns)})"


@dataclass(frozen=True, repr=False)
class Rescaled(Kernel):
    """k(x, z) = kernel(x/scales, z/scales), column by column.

    Parameters
    ----------
    kernel : Kernel
    scales : array-like of shape (d,)
        Positive, in the units of the columns.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().with_length_scales([1.0, 2.0])([[1.0, 2.0]])
    array([[2.]])
    """

    kernel: Kernel
    scales: Any

    def __post_init__(self) -> None:
        require_kernel("with_length_scales", self.kernel)
        require_no_precomputed("with_length_scales", self.kernel)
        self._set("scales", checked_scales(self.scales))

    def formula(self, pair: Any) -> Any:
        return self.kernel.formula(pair.through(LengthScales(self.scales)))

    def block(self, X: Array, Z: Array) -> Array:
        return self.kernel.block(*_viewed(LengthScales(self.scales), X, Z))

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(LengthScales(self.scales).apply(self._rows(X)))

    def check_data(self, X: Array) -> None:
        self.kernel.check_data(LengthScales(self.scales).apply(X))

    def _resolved(self, X: Array, resolver: Resolver) -> Kernel:
        rows = None if X is None else LengthScales(self.scales).apply(X)
        return Rescaled(self.kernel._resolved(rows, resolver), self.scales)

    @property
    def properties(self) -> Properties:
        return properties.of_rescaled_columns(self.kernel.properties)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)}.with_length_scales({list(self.scales)!r})"


def _viewed(view: View, X: Array, Z: Array) -> tuple[Array, Array]:
    seen = view.apply(X)
    return seen, seen if Z is X else view.apply(Z)


_: type[Pair] = ArrayPair  # lets mypy check that ArrayPair has every pairing
