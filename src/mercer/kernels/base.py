"""The base class of all kernels: one formula, and everything that follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from mercer.arrays import as_rows, as_seed, is_torch, require_collection
from mercer.errors import CannotTrace, InvalidInput, message
from mercer.kernels import bandwidth, evaluation
from mercer.kernels.comparable import require_value
from mercer.kernels.pairing import ArrayPair, Pair, trace
from mercer.kernels.properties import Properties
from mercer.kernels.resolution import Resolver, blank, from_rows
from mercer.kernels.rows import column_names, to_numpy

if TYPE_CHECKING:
    from mercer.kernels.expression import Expression

__all__ = ["Array", "Kernel", "trace_or_none"]

Array: TypeAlias = Any
"""A NumPy array, CSR matrix or PyTorch tensor."""


@dataclass(frozen=True, repr=False)
class Kernel:
    """k(x, z): a subclass is a frozen dataclass of parameters that states its `formula` over a pair of rows.

    A formula over the pairings of `pair` is evaluated on arrays, traced into an expression for the native engine, and
    composed by `+ * **`. A kernel on other objects, or with a formula that cannot be traced, overrides `block`.
    Kernels are values: equal when type and parameters are equal, hashable, never changed; `set_params` is the one
    exception, because scikit-learn's protocol demands it (do not use it on a kernel that is a key of a dict). A class
    with parameters that its equality does not see is refused: it lacks the decorator.

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

    __array_ufunc__: ClassVar[None] = None  # np.float64(0.5) * kernel is the kernel's own product.
    reads: ClassVar[str] = "rows"  # or "columns", those chosen; or "objects", such as sequences and sets of points
    rule_parameter: ClassVar[str] = "gamma"
    """The parameter that may be the rule "scale", "median" or "auto" until `resolve`."""

    def __new__(cls, *args: Any, **params: Any) -> Self:
        require_value(cls, Kernel)
        return super().__new__(cls)

    # ---- what a subclass states -------------------------------------------------------------------------------------

    def formula(self, pair: Any) -> Any:
        """k(x, z) as an expression over the pairings of `pair`."""
        advice = "override formula(pair), or block(X, Z)"
        raise CannotTrace(message(type(self).__name__, "this kernel has no formula over pairings", advice))

    @property
    def properties(self) -> Properties:
        """What is proved about the kernel; nothing by default."""
        return Properties()

    @property
    def domain(self) -> str:
        """Rows of numbers are "vectors", rows of kernel values "precomputed", whatever else is accepted "any"."""
        return "vectors"

    @property
    def measure(self) -> str:
        """What γ multiplies: a key of `bandwidth.MEASURES`."""
        return "sqdist"

    @property
    def whole(self) -> bool:
        """Whether a block costs much less than its parts one by one, so that matrices are made in large blocks."""
        return any(child.whole for child in self._children().values())

    def as_objects(self, X: Array) -> Array:
        """What is no table of numbers, checked and in the form that `block` reads; as it is, unless a kernel asks
        more.
        """
        require_collection(X, type(self).__name__)
        for child in self._children().values():
            X = child.as_objects(X)
        return X

    def check_data(self, X: Array) -> None:
        """Raise InvalidInput where the kernel is no kernel on these (validated) rows."""
        for child in self._children().values():
            child.check_data(X)

    def prepared(self, X: Array, Z: Array | None) -> tuple[Kernel, Array, Array | None]:
        """The kernel and the rows that are computed with: other than these where a kernel of tables encodes them."""
        return self, X, Z

    # ---- values -----------------------------------------------------------------------------------------------------

    def block(self, X: Array, Z: Array) -> Array:
        """All k(x, z) of validated rows, in their dtype; pass the same object twice for X with itself."""
        self._require_resolved()
        pair = ArrayPair(X, Z)
        return full(evaluation.on_arrays(self, pair), (X.shape[0], Z.shape[0]), pair.X)

    def diagonal(self, X: Array) -> Array:
        """All k(x, x), without the matrix."""
        self._require_resolved()
        X = self._rows(X)
        return full(evaluation.on_arrays(self, ArrayPair(X, X).x), (X.shape[0], 1), X).reshape(-1)

    @property
    def folds(self) -> bool:
        """Whether `product` is there: K V by a way that makes no matrix, such as explicit features."""
        return False

    def product(self, X: Array, Z: Array, V: Array) -> Array:
        """K(X, Z) V in float64, where the kernel `folds` vectors into its features."""
        raise NotImplementedError(type(self).__name__)

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """The dense matrix of all k(x, z); parameters that depend on data are resolved on X when Z is None.

        >>> from mercer.kernels import Linear
        >>> Linear()([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
        array([[11.,  2.]])
        """
        Z = None if Z is X else Z
        if Z is not None and not self.is_resolved:
            given = f"{self!r} of two data sets has parameters that depend on data"
            raise InvalidInput(message(type(self).__name__, given, "call .resolve(X_train) first, or give a number"))
        kernel = self if Z is not None else self.resolve(X)
        Z = None if Z is None else kernel._rows(Z)
        X = kernel._rows(X)
        kernel.check_data(X)
        if Z is not None:
            kernel.check_data(Z)
        return evaluation.dense(kernel, X, Z)

    def _rows(self, X: Array) -> Array:
        return as_rows(X, who=type(self).__name__) if self.domain == "vectors" else self.as_objects(X)

    @property
    def traceable(self) -> bool:
        """Whether the formula can be traced, so that the native engine runs it.

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
        """The kernel with "scale", "median", "auto" and column names replaced by numbers found in X.

        Parameters
        ----------
        X : array, CSR matrix, tensor or data frame
            The training rows.
        feature_names : names of the columns, optional
            By default those of a data frame.
        sample_weight : array of shape (n,), optional
            A row of weight 2 counts as two, one of weight 0 as none.
        random_state : int, RandomState or None, default 0
            For the sample of rows that "median" looks at.

        Examples
        --------
        >>> from mercer.kernels import Gaussian
        >>> Gaussian(gamma="scale").resolve([[0.0], [2.0]])
        Gaussian(gamma=1.0)
        """
        if self.is_resolved:
            return self
        names = column_names(X) if feature_names is None else [str(name) for name in feature_names]
        rows = to_numpy(self._rows(X))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights is not None:
            rows, weights = rows[weights > 0], weights[weights > 0]  # Weight 0 is an absent row.
        return self._resolved(rows, from_rows(weights, as_seed(random_state, type(self).__name__), names))

    def _resolved(self, X: Array, resolver: Resolver) -> Kernel:
        """Replace what is this kernel's own, then its sub-kernels on the same rows."""
        changes: dict[str, Any] = {
            name: child._resolved(X, resolver) for name, child in self._children().items() if not child.is_resolved
        }
        rule = getattr(self, self.rule_parameter, None)
        if isinstance(rule, str) and bandwidth.is_rule(rule):
            changes[self.rule_parameter] = self._from_gamma(resolver.bandwidth(rule, self.measure, X))
        return replace(self, **changes) if changes else self

    def _from_gamma(self, gamma: float) -> float:
        """The rule's parameter for a γ; other than γ itself for length-scales."""
        return gamma

    def _require_resolved(self) -> None:
        if not self.is_resolved:
            advice = "call .resolve(X_train) first, or give a number"
            raise InvalidInput(message(type(self).__name__, f"{self!r} has parameters that depend on data", advice))

    # ---- algebra (imported late, because compositions are kernels themselves) ----------------------------------------

    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import add, is_number

        return add(self, other) if isinstance(other, Kernel) or is_number(other) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import add, is_number

        return add(other, self) if isinstance(other, Kernel) or is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import is_number, multiply

        return multiply(self, other) if isinstance(other, Kernel) or is_number(other) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import is_number, multiply

        return multiply(other, self) if isinstance(other, Kernel) or is_number(other) else NotImplemented

    def __truediv__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import divide

        return divide(self, other)

    def __pow__(self, exponent: float) -> Kernel:
        from mercer.kernels.algebra import Power

        return Power(self, exponent)

    def __neg__(self) -> Kernel:
        from mercer.kernels.algebra import Scaled

        return Scaled(-1.0, self)

    def __sub__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import subtract

        return subtract(self, other)

    def __rsub__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import subtract

        return subtract(other, self)

    def normalized(self) -> Kernel:
        """k(x, z)/√(k(x, x) k(z, z)): the cosine of the angle in feature space; 0 where k(x, x) = 0."""
        from mercer.kernels.algebra import Normalized

        return Normalized(self)

    def on(self, columns: int | str | Iterable[int | str]) -> Kernel:
        """The kernel on some columns: indices, or names that `resolve` looks up in a data frame.

        >>> from mercer.kernels import Gaussian
        >>> Gaussian(gamma=1.0).on([0, 2])
        Gaussian(gamma=1.0).on([0, 2])
        """
        from mercer.kernels.columns import OnColumns

        return OnColumns(self, columns)

    def with_length_scales(self, scales: Iterable[float]) -> Kernel:
        """The kernel of the rows whose columns are divided by these length-scales."""
        from mercer.kernels.columns import Rescaled

        return Rescaled(self, scales)

    # ---- parameters -------------------------------------------------------------------------------------------------

    def _params(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}

    def _children(self) -> dict[str, Kernel]:
        return {name: value for name, value in self._params().items() if isinstance(value, Kernel)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with `deep` those of sub-kernels too, as `kernel__gamma`.

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
        """A copy with other parameters, those of sub-kernels as `kernel__gamma`.

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
                raise InvalidInput(message(type(self).__name__, f"{name!r} is no kernel and has no parameters", advice))
            own[name] = child.replace(**inner)
        return replace(self, **own)

    def _refuse_unknown(self, names: set[str]) -> None:
        unknown = sorted(names - set(self._params()))
        if unknown:
            known = sorted(self.get_params())
            advice = f"valid names are {known}" if known else "it has none; choose another kernel, or leave it out"
            raise InvalidInput(message(type(self).__name__, f"no parameter {unknown[0]!r}", advice))

    def set_params(self, **params: Any) -> Self:
        """Change this kernel in place, validated, as scikit-learn's protocol demands; `replace` leaves it as it is.

        Sub-kernels are replaced, not changed, so that other kernels which share them keep their parameters.
        """
        for name, value in self.replace(**params)._params().items():
            object.__setattr__(self, name, value)
        return self

    def _set(self, name: str, value: Any) -> None:
        """For `__post_init__` only: store a normalised parameter."""
        object.__setattr__(self, name, value)

    # ---- text -------------------------------------------------------------------------------------------------------

    precedence: ClassVar[int] = 4
    """How tightly the text of the kernel binds: 1 sum, 2 product, 3 power, 4 atom."""

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
    """What a formula returned, as an array of this shape in the dtype of the rows."""
    if is_torch(like):
        values = values if is_torch(values) else like.new_tensor(values)
        return values.to(like.dtype).expand(shape).contiguous()
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        given = f"the formula returned {values if values.ndim else values.item()!r:.60}"
        raise InvalidInput(message("Kernel", given, "return numbers, one for each pair"))
    if values.shape != shape:
        # Copied: a broadcast view would share its entries.
        values = np.array(np.broadcast_to(values, shape))
    return values.astype(like.dtype, copy=False)


def trace_or_none(kernel: Kernel, exact: bool = False) -> Expression | None:
    """The traced formula, with its numbers as they are written if `exact`; None where it cannot be traced."""
    # Not kept from call to call: a kernel may be changed in place, and its formula may read what changes.
    try:
        return trace(kernel if kernel.is_resolved else kernel._resolved(None, blank()), exact)
    except CannotTrace:
        return None


_: type[Pair] = ArrayPair  # mypy: the reference implementation has every pairing.
