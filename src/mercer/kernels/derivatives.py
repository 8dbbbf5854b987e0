"""Derivatives of a kernel in its parameters: one reverse sweep through the traced formula gives all of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import CannotTrace, InvalidInput, message
from mercer.kernels.base import Kernel
from mercer.kernels.symbolic.expression import Expression, constant, leaves_of
from mercer.kernels.symbolic.functions import cos, sin, where
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
    """All parameters that are positive, finite floats, whether or not the formula can be traced.

    An integer is one where the class declares a float, and no integer: ``gamma: float = 1``.
    """
    found: dict[str, float] = {}
    declared = {one.name for one in fields(kernel) if one.type in ("float", float)} if is_dataclass(kernel) else ()
    for name, value in kernel._params().items():
        if isinstance(value, Kernel):
            found |= positive_parameters(value, f"{before}{name}__")
        elif (isinstance(value, float) or (type(value) is int and name in declared)) and 0 < value < np.inf:
            found[before + name] = float(value)
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
        The value of each node, as `evaluate` stores them. If each node stands for itself, the derivatives are formulas.
    G : array
        The derivative of a scalar function by the entries of K.

    Examples
    --------
    >>> s = Expression("pairing", (), ("dot", ()))
    >>> kept = {}
    >>> _ = evaluate(s**3, lambda leaf: np.array([[2.0]]), kept)
    >>> leaf_adjoints(s**3, kept, np.array([[1.0]]))[s]
    array([[12.]])
    >>> leaf_adjoints(s**3, {s: s, s**3: s**3}, 1.0)[s]
    mul(3.0, pow(dot, 2.0))
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
    """The formula of a kernel with symbols for its parameters θ, and its derivatives.

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
    >>> own.slopes({"gamma": 0.5})  # ∂k/∂γ
    {'gamma': neg(mul(exp(mul(-0.5, sqdist)), sqdist))}
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

    @cached_property
    def expression(self) -> Expression:
        """The formula."""
        return _traced(self.kernel, set(self.names))

    @cached_property
    def _slopes(self) -> dict[Expression, Expression]:
        """∂k/∂leaf for each parameter, and for each pairing of rows that were moved by parameters."""
        nodes: dict[Expression, Any] = {}
        evaluate(self.expression, lambda leaf: leaf, nodes)
        found = leaf_adjoints(self.expression, dict(zip(nodes, nodes, strict=True)), 1.0)
        moved = {leaf: leaf.op == "param" or any(map(_has_symbols, leaf.value[1])) for leaf in found}
        return {leaf: constant(slope) for leaf, slope in found.items() if moved[leaf]}

    def slopes(self, given: dict[str, float]) -> dict[Expression, Expression]:
        """∂k/∂leaf at these parameters, as formulas without symbols, for each leaf that depends on parameters."""

        def numeric(leaf: Expression) -> Any:
            if leaf.op == "param":
                return given[leaf.value]
            kind, views = leaf.value
            return Expression(leaf.op, (), (kind, tuple(_numeric(view, given) for view in views)))

        done: dict[Expression, Any] = {}
        return {leaf: constant(evaluate(slope, numeric, done)) for leaf, slope in self._slopes.items()}

    def tape(self, X: Floats, Z: Floats, given: dict[str, float] | None = None) -> Tape:
        """The sweeps over all pairs of a few rows."""
        return Tape(self.expression, X, Z, given)


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

    def __init__(self, expression: Expression, X: Floats, Z: Floats, given: dict[str, float] | None = None) -> None:
        self.expression, self.shape = expression, (len(X), len(Z))
        self.given = given or {}
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
            self.pairs[views] = self._pair(views[:-1]).through(_numeric(views[-1], self.given))
        return self.pairs[views]

    def back(self, G: Floats, names: tuple[str, ...]) -> Floats:
        """Σ G ∂K/∂log θ."""
        return self.gathered(leaf_adjoints(self.expression, self.values, G), names)

    def gathered(self, adjoints: dict[Expression, Any], names: tuple[str, ...]) -> Floats:
        """Σ G ∂K/∂log θ from the adjoints of the leaves."""
        totals = dict.fromkeys(names, 0.0)
        for leaf, adjoint in adjoints.items():
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


def _numeric(view: Any, given: dict[str, float]) -> Any:
    """The view with numbers for its symbols."""
    if isinstance(view, Circle):
        return Circle(given[view.period.value]) if isinstance(view.period, Expression) else view
    if not isinstance(view, LengthScales):
        return view
    return LengthScales(tuple(given[s.value] if isinstance(s, Expression) else s for s in view.scales))


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
    """An adjoint, summed over the axes along which its value was broadcast; a formula stays what it is."""
    if isinstance(like, Expression):
        return part
    shape = np.shape(like)
    if shape == np.shape(part):
        return part
    if not shape:
        return np.sum(part)
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and np.shape(part)[i] != 1)
    return np.sum(part, axis=axes, keepdims=True)


def _pow_back(g: Any, v: Any, p: Any, a: Any) -> tuple[Any]:
    if p == 1:
        return (g,)
    return (p * v * _ratio(g, a) if 0 < p < 1 else g * p * a ** (p - 1),)


def _ratio(g: Any, a: Any) -> Any:
    """g/a, and 0 where a = 0: roots have no derivative there, and a distance of 0 does not depend on the parameters."""
    return where(a > 0, g, 0.0) / where(a > 0, a, 1.0)


_BACK: dict[str, Callable[..., tuple[Any, ...]]] = {
    "neg": lambda g, v, _, a: (-g,),
    "exp": lambda g, v, _, a: (g * v,),
    "log": lambda g, v, _, a: (g / a,),
    "sqrt": lambda g, v, _, a: (0.5 * _ratio(g, v),),
    "tanh": lambda g, v, _, a: (g * (1 - v**2),),
    "sin": lambda g, v, _, a: (g * cos(a),),
    "cos": lambda g, v, _, a: (-g * sin(a),),
    "abs": lambda g, v, _, a: (where(a < 0, -g, where(a > 0, g, 0.0)),),
    "add": lambda g, v, _, a, b: (g, g),
    "sub": lambda g, v, _, a, b: (g, -g),
    "mul": lambda g, v, _, a, b: (g * b, g * a),
    "div": lambda g, v, _, a, b: (g / b, -g * v / b),
    "minimum": lambda g, v, _, a, b: (where(a <= b, g, 0.0), where(a <= b, 0.0, g)),
    "maximum": lambda g, v, _, a, b: (where(a >= b, g, 0.0), where(a >= b, 0.0, g)),
    "less": lambda g, v, _, a, b: (None, None),
    "less_equal": lambda g, v, _, a, b: (None, None),
    "where": lambda g, v, _, c, a, b: (None, where(c, g, 0.0), where(c, 0.0, g)),
    "pow": _pow_back,
}
