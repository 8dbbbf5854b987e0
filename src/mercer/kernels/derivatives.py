"""Derivatives of a kernel in its parameters: one reverse sweep through the traced formula gives all of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.backend import engine, one_blas_thread
from mercer.errors import CannotTrace, InvalidInput, message
from mercer.kernels.base import Kernel
from mercer.kernels.symbolic.expression import Expression, leaves_of, nodes_of
from mercer.kernels.symbolic.pairing import ArrayPair, trace
from mercer.kernels.symbolic.values import evaluate
from mercer.kernels.symbolic.views import Circle, Columns, LengthScales

__all__ = [
    "ParametricKernel",
    "leaf_adjoints",
    "positive_parameters",
    "tunable_parameters",
    "with_parameters",
]

Floats = NDArray[np.float64]
TILE = 384
"""Most rows and columns of a tile. With 256, two threads were no faster than one: they waited for the interpreter."""
ASIDE = 5
"""Arrays of a tile beside one for each node: G and its parts, an adjoint, and a derivative's intermediate results."""
HOMOGENEOUS = {"sqdist": 2, "dot": 2, "l1": 1, "min_sum": 1, "chi2": 1, "mismatches": 0}
"""The degree of each pairing: if the columns are divided by ℓ, the pairing is divided by ℓ^degree."""


def symbol(name: str) -> Expression:
    """A parameter as a leaf of an expression."""
    return Expression("param", (), name)


def tunable_parameters(kernel: Kernel) -> dict[str, float]:
    """The positive parameters in which the traced formula can be differentiated, by name, with their values.

    Names are those of `get_params`, such as ``kernel__gamma``; each length-scale is a parameter, ``scales[0]``, ….

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Matern
    >>> tunable_parameters(2.0 * Gaussian(0.5).with_length_scales([1.0, 3.0]))
    {'scale': 2.0, 'kernel__kernel__gamma': 0.5, 'kernel__scales[0]': 1.0, 'kernel__scales[1]': 3.0}
    >>> tunable_parameters(Matern(nu=1.5))  # another ν has another formula
    {'length_scale': 1.0}
    """
    candidates = positive_parameters(kernel)
    good = {}
    for name, value in candidates.items():
        try:
            _parameters_in(_traced(kernel, {name}))
        except (CannotTrace, InvalidInput, TypeError):
            continue
        good[name] = value
    return good


def positive_parameters(kernel: Kernel, before: str = "") -> dict[str, float]:
    """All parameters that are positive, finite floats, whether or not the formula can be traced."""
    found: dict[str, float] = {}
    for name, value in kernel._params().items():
        if isinstance(value, Kernel):
            found |= positive_parameters(value, f"{before}{name}__")
        elif isinstance(value, float) and 0 < value < np.inf:
            found[before + name] = value
        elif name == "scales" and isinstance(value, tuple):
            found |= {f"{before}{name}[{j}]": float(scale) for j, scale in enumerate(value)}
    return found


def _with_symbols(kernel: Kernel, names: set[str], before: str = "") -> Kernel:
    """A copy with symbols for these parameters. It can only be traced, since its checks were not run."""
    out = copy.copy(kernel)
    for name, value in kernel._params().items():
        if isinstance(value, Kernel):
            object.__setattr__(out, name, _with_symbols(value, names, f"{before}{name}__"))
        elif before + name in names:
            object.__setattr__(out, name, symbol(before + name))
        elif name == "scales" and isinstance(value, tuple):
            marked = [f"{before}{name}[{j}]" for j in range(len(value))]
            scales = tuple(symbol(m) if m in names else v for m, v in zip(marked, value, strict=True))
            object.__setattr__(out, name, scales)
    return out


def _traced(kernel: Kernel, names: set[str]) -> Expression:
    if not kernel.is_resolved:
        advice = "call .resolve(X) first"
        raise InvalidInput(message(type(kernel).__name__, f"{kernel!r} has parameters that depend on data", advice))
    return trace(_with_symbols(kernel, names))


def _parameters_in(expression: Expression) -> None:
    """Raise CannotTrace for symbols in views other than length-scales, and for length-scales before such a view.

    The period of a circle on which squared distances are taken is the exception.
    """
    for leaf in leaves_of(expression):
        views: Any = leaf.value[1] if leaf.op in ("pairing", "self_x", "self_z") else ()
        seen = False
        for view in views:
            if isinstance(view, LengthScales):
                seen |= _has_symbols(view)
            elif view is views[-1] and isinstance(view, Circle) and leaf.value[0] == "sqdist" and not seen:
                continue
            elif not isinstance(view, Columns) and (seen or _has_symbols(view)):
                advice = "hold this parameter fixed"
                raise CannotTrace(message("derivative", f"a parameter within {type(view).__name__}", advice))


def _has_symbols(view: Any) -> bool:
    values = (getattr(view, f.name) for f in fields(view))
    return any(isinstance(one, Expression) for v in values for one in (v if isinstance(v, tuple) else (v,)))


def leaf_adjoints(expression: Expression, values: dict[Expression, Any], G: Any) -> dict[Expression, Any]:
    """Σ G ∂K/∂leaf for each leaf but constants, in the leaf's shape.

    Parameters
    ----------
    expression : Expression
    values : dict
        The value of each node, as `evaluate` stores them.
    G : array
        The derivative of a scalar function by the entries of K.

    Examples
    --------
    >>> s = Expression("pairing", (), ("dot", ()))
    >>> kept = {}
    >>> _ = evaluate(s**3, lambda leaf: np.array([[2.0]]), kept)
    >>> leaf_adjoints(s**3, kept, np.array([[1.0]]))[s]
    array([[12.]])
    """
    adjoints, found = {expression: G}, {}
    for e in reversed(values):  # every node stands after its arguments in `values`
        adjoint = adjoints.pop(e, None)
        if adjoint is None or e.op == "const":
            continue
        if not e.args:
            found[e] = adjoint
            continue
        own = [values[arg] for arg in e.args]
        for arg, part in zip(e.args, _BACK[e.op](adjoint, values[e], e.value, *own), strict=True):
            if part is not None:
                part = _summed(part, values[arg])
                adjoints[arg] = adjoints[arg] + part if arg in adjoints else part
    return found


@dataclass(frozen=True, eq=False)
class ParametricKernel:
    """The kernel at any parameters θ, and Σᵢⱼ Gᵢⱼ ∂k(xᵢ, xⱼ)/∂log θ for any symmetric G.

    Parameters
    ----------
    kernel : Kernel
        A kernel without parameters that depend on data.
    names : tuple of str
        The parameters θ, by their names in `tunable_parameters`.

    Raises
    ------
    InvalidInput
        If a name is not among the tunable parameters.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> own = ParametricKernel(Gaussian(gamma=0.5), ("gamma",))
    >>> G = np.array([[0.0, 0.5], [0.5, 0.0]])
    >>> own.contracted(np.array([0.5]), np.array([[0.0], [1.0]]), lambda rows, columns: G[rows, columns])  # ∂K₀₁/∂log γ
    array([-0.30326533])
    """

    kernel: Kernel
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        known = tunable_parameters(self.kernel)
        unknown = [name for name in self.names if name not in known]
        if unknown:
            given = f"{unknown[0]!r} of {self.kernel!r}"
            do = f"its tunable parameters are {', '.join(known)}" if known else "it has no tunable parameters"
            raise InvalidInput(message("ParametricKernel", given, do))
        object.__setattr__(self, "_expression", _traced(self.kernel, set(self.names)))

    @property
    def values(self) -> Floats:
        """The values of θ in `kernel`."""
        known = positive_parameters(self.kernel)
        return np.array([known[name] for name in self.names])

    def kernel_at(self, theta: Floats) -> Kernel:
        """The kernel with these values of θ."""
        given = dict(zip(self.names, map(float, theta), strict=True))
        return with_parameters(self.kernel, given)

    def tape(self, X: Floats) -> Tape:
        """The sweeps over all pairs of a few rows."""
        return Tape(self.__dict__["_expression"], X, X)

    def bytes(self, n: int) -> int:
        """The peak memory of `contracted` for n rows: in each thread's tile the values of all nodes, and few more.

        >>> from mercer.kernels import Gaussian
        >>> ParametricKernel(Gaussian(gamma=0.5), ("gamma",)).bytes(100) // 100**2 // 8
        9
        """
        nodes = sum(e.op not in ("const", "param") for e in nodes_of(self.__dict__["_expression"]))
        tiles = -(-n // TILE)
        threads = min(engine().threads(), tiles * (tiles + 1) // 2)
        return threads * 8 * (-(-n // max(1, tiles))) ** 2 * (nodes + ASIDE)

    def contracted(self, theta: Floats, X: Floats, G: Callable[[slice, slice], Floats]) -> Floats:
        """Σᵢⱼ Gᵢⱼ ∂Kᵢⱼ/∂log θ for a symmetric G, an entry for each parameter, by tiles that stay in the cache.

        `G(rows, columns)` gives a block of G on or below the diagonal, and for rows = columns both of its triangles.
        """
        given = dict(zip(self.names, map(float, theta), strict=True))
        expression, n = self.__dict__["_expression"], len(X)
        cuts = np.linspace(0, n, -(-n // TILE) + 1).astype(int).tolist()
        edges = [slice(*cut) for cut in pairwise(cuts)]

        def one(pair: tuple[int, int]) -> Floats:
            i, j = pair
            rows = X[edges[i]]
            tape = Tape(expression, rows, rows if i == j else X[edges[j]])
            tape.at(given)
            return (1 if i == j else 2) * tape.back(G(edges[i], edges[j]), self.names)

        pairs = [(i, j) for i in range(len(edges)) for j in range(i + 1)]
        threads = min(engine().threads(), len(pairs))
        if threads <= 1:
            return np.asarray(sum(map(one, pairs)), np.float64)
        with ThreadPoolExecutor(threads) as pool, one_blas_thread():
            return np.asarray(sum(pool.map(one, pairs)), np.float64)


def with_parameters(kernel: Kernel, given: dict[str, float], before: str = "") -> Kernel:
    """The kernel with the parameters of these names replaced.

    >>> from mercer.kernels import Gaussian
    >>> with_parameters(2.0 * Gaussian(0.5).with_length_scales([1.0, 3.0]), {"kernel__scales[1]": 4.0})
    2.0 * Gaussian(gamma=0.5).with_length_scales([1.0, 4.0])
    """
    changes: dict[str, Any] = {}
    for name, value in kernel._params().items():
        if isinstance(value, Kernel):
            changes[name] = with_parameters(value, given, f"{before}{name}__")
        elif before + name in given:
            changes[name] = given[before + name]
        elif name == "scales" and isinstance(value, tuple):
            changes[name] = tuple(given.get(f"{before}{name}[{j}]", v) for j, v in enumerate(value))
    return kernel.replace(**changes) if changes else kernel


class Tape:
    """The values of all nodes of an expression on arrays, stored for the reverse sweep.

    Pairings that do not depend on the parameters are computed once for all of them.
    """

    def __init__(self, expression: Expression, X: Floats, Z: Floats) -> None:
        self.expression, self.shape = expression, (len(X), len(Z))
        self.given: dict[str, float] = {}
        self.pairs: dict[Any, ArrayPair] = {(): ArrayPair(X, Z)}
        self.values: dict[Expression, Any] = {}

    def at(self, given: dict[str, float]) -> Floats:
        """The values with these parameters: the matrix, which is read only."""
        if given != self.given or not self.values:
            self.given, self.values = given, {}
            self.pairs = {views: pair for views, pair in self.pairs.items() if not any(map(_has_symbols, views))}
            with np.errstate(all="ignore"):
                evaluate(self.expression, self._leaf, self.values)
        return np.broadcast_to(self.values[self.expression], self.shape)

    def _leaf(self, leaf: Expression) -> Any:
        if leaf.op == "param":
            return self.given[leaf.value]
        kind, views = leaf.value
        pair: Any = self._pair(views)
        pair = {"pairing": pair, "self_x": pair.x, "self_z": pair.z}[leaf.op]
        return getattr(pair, kind)

    def _pair(self, views: Any) -> ArrayPair:
        if views not in self.pairs:
            self.pairs[views] = self._pair(views[:-1]).through(self._numeric(views[-1]))
        return self.pairs[views]

    def _numeric(self, view: Any) -> Any:
        if isinstance(view, Circle):
            return Circle(self.given[view.period.value]) if isinstance(view.period, Expression) else view
        if not isinstance(view, LengthScales):
            return view
        return LengthScales(tuple(self.given[s.value] if isinstance(s, Expression) else s for s in view.scales))

    def back(self, G: Floats, names: tuple[str, ...]) -> Floats:
        """Σ G ∂K/∂log θ."""
        totals = dict.fromkeys(names, 0.0)
        for leaf, adjoint in leaf_adjoints(self.expression, self.values, G).items():
            if leaf.op == "param":
                totals[leaf.value] += float(np.sum(adjoint)) * self.given[leaf.value]
            else:
                self._length_scales(leaf, adjoint, totals)
                self._period(leaf, adjoint, totals)
        return np.array([totals[name] for name in names])

    def _length_scales(self, leaf: Expression, G: Any, totals: dict[str, float]) -> None:
        """Add −degree · Σ G · (the column's share in the pairing) for each length-scale that is a parameter."""
        kind, views = leaf.value
        places = [i for i, v in enumerate(views) if isinstance(v, LengthScales)]
        if not any(_has_symbols(views[i]) for i in places):
            return
        shares = -HOMOGENEOUS[kind] * _shares(kind, leaf.op, self._pair(views), G)
        for i in places:
            columns = np.arange(len(views[i].scales))
            for view in views[i + 1 :]:
                columns = columns[list(view.indices)] if isinstance(view, Columns) else columns
            for share, column in zip(shares, columns, strict=True):
                scale = views[i].scales[column]
                if isinstance(scale, Expression):
                    totals[scale.value] += float(share)

    def _period(self, leaf: Expression, G: Any, totals: dict[str, float]) -> None:
        """Add −2 Σ G · Σ a sin a, a = 2π(x − z)/p in each column, for the squared distance on circles of period p."""
        name = getattr(leaf.value[1][-1].period, "value", None) if _on_circles(leaf) else None
        if name is None:
            return
        before = self._pair(leaf.value[1][:-1])
        for v, w in zip(before.X.T, before.Z.T, strict=True):
            angle = 2 * np.pi * (v[:, None] - w) / self.given[name]
            totals[name] -= 2 * float(np.sum(G * angle * np.sin(angle)))


def _on_circles(leaf: Expression) -> bool:
    views = leaf.value[1]
    return leaf.op == "pairing" and bool(views) and isinstance(views[-1], Circle)


def _shares(kind: str, op: str, pair: ArrayPair, G: Any) -> Floats:
    """Σᵢⱼ Gᵢⱼ p(vᵢ, wⱼ) for each column of the rows V and W, with p the pairing of that column alone."""
    V, W = pair.X, pair.Z
    if op != "pairing":
        V = V if op == "self_x" else W
        g = np.broadcast_to(np.asarray(G, np.float64).reshape(-1), len(V))
        return np.asarray(g @ V**2 if kind == "dot" else g @ V if kind == "min_sum" else np.zeros(V.shape[1]))
    G = np.broadcast_to(G, (len(V), len(W)))
    if kind == "dot":
        return np.asarray(np.sum(V * (G @ W), axis=0))
    if kind == "sqdist":
        V, W = V - V.mean(axis=0), W - V.mean(axis=0)
        return np.asarray(G.sum(axis=1) @ V**2 + G.sum(axis=0) @ W**2 - 2 * np.sum(V * (G @ W), axis=0))
    columns = zip(V.T[:, :, None], W.T[:, :, None], strict=True)
    return np.array([np.sum(G * getattr(ArrayPair(v, w), kind)) for v, w in columns])


def _summed(part: Any, like: Any) -> Any:
    """An adjoint, summed over the axes along which its value was broadcast."""
    shape = np.shape(like)
    if shape == np.shape(part):
        return part
    if not shape:
        return np.sum(part)
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and np.shape(part)[i] != 1)
    return np.sum(part, axis=axes, keepdims=True)


def _pow_back(g: Any, v: Any, p: Any, a: Any) -> tuple[Any]:
    return (g * p * a ** (p - 1),) if p != 1 else (g,)


def _ratio(g: Any, a: Any) -> Any:
    """g/a, and 0 where a = 0: √ has no derivative there, and a distance of 0 does not depend on the parameters."""
    a = np.asarray(a, np.float64)
    return g * np.divide(1.0, a, out=np.zeros_like(a), where=a != 0)


_BACK: dict[str, Callable[..., tuple[Any, ...]]] = {
    "neg": lambda g, v, _, a: (-g,),
    "exp": lambda g, v, _, a: (g * v,),
    "log": lambda g, v, _, a: (g / a,),
    "sqrt": lambda g, v, _, a: (0.5 * _ratio(g, v),),
    "tanh": lambda g, v, _, a: (g * (1 - v**2),),
    "sin": lambda g, v, _, a: (g * np.cos(a),),
    "cos": lambda g, v, _, a: (-g * np.sin(a),),
    "abs": lambda g, v, _, a: (g * np.sign(a),),
    "add": lambda g, v, _, a, b: (g, g),
    "sub": lambda g, v, _, a, b: (g, -g),
    "mul": lambda g, v, _, a, b: (g * b, g * a),
    "div": lambda g, v, _, a, b: (g / b, -g * v / b),
    "minimum": lambda g, v, _, a, b: (np.where(a <= b, g, 0.0), np.where(a <= b, 0.0, g)),
    "maximum": lambda g, v, _, a, b: (np.where(a >= b, g, 0.0), np.where(a >= b, 0.0, g)),
    "less": lambda g, v, _, a, b: (None, None),
    "less_equal": lambda g, v, _, a, b: (None, None),
    "where": lambda g, v, _, c, a, b: (None, np.where(c, g, 0.0), np.where(c, 0.0, g)),
    "pow": _pow_back,
}
