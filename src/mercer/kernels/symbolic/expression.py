"""The symbolic form of a kernel: an immutable tree, which arithmetic and NumPy's functions build."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from mercer.errors import CannotTrace, message
from mercer.kernels.symbolic.exactness import is_exact, rounds_nothing

__all__ = ["BINARY", "LEAVES", "UNARY", "Expression", "constant", "leaves_of", "node", "nodes_of", "power", "tracing"]

LEAVES = ("const", "param", "pairing", "self_x", "self_z")
UNARY = ("neg", "exp", "log", "sqrt", "tanh", "sin", "cos", "abs")
BINARY = ("add", "sub", "mul", "div", "minimum", "maximum", "less", "less_equal")
_ARITY = dict.fromkeys(LEAVES, 0) | dict.fromkeys(UNARY, 1) | dict.fromkeys(BINARY, 2) | {"pow": 1, "where": 3}

_is_tracing: ContextVar[bool] = ContextVar("mercer_tracing", default=False)


@contextmanager
def tracing(exact: bool = False) -> Iterator[None]:
    """A context in which a formula is traced: `==` between expressions raises CannotTrace.

    With `exact`, numbers are combined only if that rounds nothing.
    """
    tokens = _is_tracing.set(True), is_exact.set(exact)
    try:
        yield
    finally:
        _is_tracing.reset(tokens[0])
        is_exact.reset(tokens[1])


WRITE_WHERE = (
    "write where(pair.sqdist > 1, a, b), maximum(a, b) or minimum(a, b), of mercer.kernels.functions, which take all "
    "pairs at once"
)


def _cannot(what: str) -> NoReturn:
    advice = "use the functions of mercer.kernels.functions, or override block(X, Z)"
    raise CannotTrace(message("Expression", what, advice))


@dataclass(frozen=True, eq=False, repr=False)
class Expression:
    """A node op(args) with an optional value; arithmetic and NumPy's functions build larger nodes.

    `==` and `hash` compare the structure.

    ===================================================  ====  =========================================
    op                                                   args  value
    ===================================================  ====  =========================================
    const                                                0     float
    param                                                0     name; only in derivatives, never in a program
    pairing                                              0     (kind, views)
    self_x, self_z                                       0     (kind, views), of a row with itself
    neg exp log sqrt tanh sin cos abs                    1     none
    add sub mul div minimum maximum less less_equal      2     none
    pow                                                  1     exponent, float
    where                                                3     none
    ===================================================  ====  =========================================

    Parameters
    ----------
    op : str
        The operation, of the table above.
    args : tuple of Expression
    value : object

    Raises
    ------
    CannotTrace
        If there is no such operation with that many arguments.

    Examples
    --------
    >>> s = Expression("pairing", (), ("sqdist", ()))
    >>> np.exp(-0.5 * s)
    exp(mul(-0.5, sqdist))
    """

    op: str
    args: tuple[Expression, ...] = ()
    value: Any = None

    def __post_init__(self) -> None:
        if _ARITY.get(self.op) != len(self.args):
            _cannot(f"no op {self.op!r} with {len(self.args)} arguments exists")
        # Cached, because a shared node would otherwise be hashed once for each path that leads to it.
        object.__setattr__(self, "_hash", hash((self.op, self.args, self.value)))

    def __hash__(self) -> int:
        return int(self.__dict__["_hash"])

    def __eq__(self, other: object) -> bool:
        if _is_tracing.get() or not isinstance(other, Expression):
            _cannot("== cannot be traced")
        if self is other:
            return True
        return hash(self) == hash(other) and (self.op, self.value, self.args) == (other.op, other.value, other.args)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the cached hash, because hashes of strings differ between processes.
        return Expression, (self.op, self.args, self.value)

    def __repr__(self) -> str:
        if self.op in ("const", "param"):
            return repr(self.value)
        if self.op in LEAVES:
            kind, views = self.value
            kind = str(kind)
            where = {"pairing": "", "self_x": "_x", "self_z": "_z"}[self.op]
            return kind + where + "".join(f"[{view!r}]" for view in views)
        shown = [repr(arg) for arg in self.args] + ([repr(self.value)] if self.op == "pow" else [])
        return f"{self.op}({', '.join(shown)})"

    # ---- arithmetic -------------------------------------------------------------------------------------------------

    def __neg__(self) -> Expression:
        return node("neg", self)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return node("abs", self)

    def __add__(self, other: Any) -> Expression:
        return node("add", self, other)

    def __radd__(self, other: Any) -> Expression:
        return node("add", other, self)

    def __sub__(self, other: Any) -> Expression:
        return node("sub", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return node("sub", other, self)

    def __mul__(self, other: Any) -> Expression:
        return node("mul", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return node("mul", other, self)

    def __truediv__(self, other: Any) -> Expression:
        return node("div", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return node("div", other, self)

    def __pow__(self, other: Any) -> Expression:
        return _pow(self, other)

    def __rpow__(self, other: Any) -> Expression:
        return _pow(constant(other), self)

    def __lt__(self, other: Any) -> Expression:
        return node("less", self, other)

    def __le__(self, other: Any) -> Expression:
        return node("less_equal", self, other)

    def __gt__(self, other: Any) -> Expression:
        return node("less", other, self)

    def __ge__(self, other: Any) -> Expression:
        return node("less_equal", other, self)

    # ---- operations that need a number, which a symbol is not -------------------------------------------------------

    def __bool__(self) -> bool:
        what = "a condition on symbols has no truth value, in if, and, or, max and min"
        raise CannotTrace(message("Expression", what, WRITE_WHERE))

    def __float__(self) -> float:
        _cannot("float() of a symbol")

    def __int__(self) -> int:
        _cannot("int() of a symbol")

    def __index__(self) -> int:
        _cannot("a symbol used as an index")

    def __iter__(self) -> Iterator[Any]:
        _cannot("iteration over a symbol")

    def __len__(self) -> int:
        _cannot("len() of a symbol")

    def __getitem__(self, index: Any) -> Any:
        _cannot("indexing of a symbol")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        _cannot("conversion of a symbol to an array")

    # ---- NumPy's protocols ------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Expression:
        build = _UFUNCS.get(ufunc)
        if build is None or method != "__call__" or kwargs:
            _cannot(f"numpy.{ufunc.__name__} cannot be traced this way")
        return build(*inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Expression:
        if func is np.where and len(args) == 3 and not kwargs:
            return node("where", *args)
        if func is np.clip and len(args) == 3 and not kwargs:
            values, low, high = args
            values = values if low is None else node("maximum", values, low)
            return constant(values) if high is None else node("minimum", values, high)
        _cannot(f"numpy.{func.__name__} cannot be traced this way")


def constant(value: Any) -> Expression:
    """A number as a `const` node; an expression is returned unchanged."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (numbers.Real, np.bool_)):
        return Expression("const", (), float(value))
    _cannot(f"a {type(value).__name__} beside a symbol")


def node(op: str, *args: Any) -> Expression:
    """op(args), simplified by constant folding and by rules that hold for all values, NaN and infinity included."""
    terms = tuple(constant(arg) for arg in args)
    if op == "where":
        return _where(*terms)
    if all(term.op == "const" for term in terms):
        values = [term.value for term in terms]
        found = _fold(op, *values)
        if rounds_nothing(op, found, *values):
            return constant(found)
    simplify = _SIMPLIFY.get(op)
    simpler = simplify(*terms) if simplify else None
    return Expression(op, terms) if simpler is None else simpler


def _fold(op: str, *values: float) -> float:
    with np.errstate(all="ignore"):
        return float(_NUMPY[op](*map(np.float64, values)))


def _is(term: Expression, value: float) -> bool:
    return term.op == "const" and bool(term.value == value)


def _scaled(factor: float, term: Expression) -> Expression:
    """factor · term, merged with a constant factor of the term if the product of the two factors is in range."""
    if factor == 1.0:
        return term
    if factor == -1.0:
        return node("neg", term)
    if term.op == "neg":
        return _scaled(-factor, term.args[0])
    if term.op == "mul" and term.args[0].op == "const":
        inner = term.args[0].value
        if _is_ordinary(factor * inner) and rounds_nothing("mul", factor * inner, factor, inner):
            return _scaled(factor * inner, term.args[1])
    return Expression("mul", (constant(factor), term))


def _is_ordinary(value: float) -> bool:
    return 1e-300 < abs(value) < 1e300


def _add(a: Expression, b: Expression) -> Expression | None:
    if _is(a, 0.0):
        return b
    if _is(b, 0.0):
        return a
    return node("sub", a, b.args[0]) if b.op == "neg" else None


def _sub(a: Expression, b: Expression) -> Expression | None:
    if _is(b, 0.0):
        return a
    if _is(a, 0.0):
        return node("neg", b)
    return node("add", a, b.args[0]) if b.op == "neg" else None


def _mul(a: Expression, b: Expression) -> Expression | None:
    if a.op == "const":
        return _scaled(a.value, b)
    return _scaled(b.value, a) if b.op == "const" else None


def _div(a: Expression, b: Expression) -> Expression | None:
    if b.op == "const" and _is_ordinary(b.value) and rounds_nothing("div", 1.0 / b.value, 1.0, b.value):
        return _scaled(1.0 / b.value, a)
    return None


def _neg(a: Expression) -> Expression | None:
    if a.op == "neg":
        return a.args[0]
    if a.op == "mul" and a.args[0].op == "const":
        return _scaled(-a.args[0].value, a.args[1])
    return None


def _where(condition: Expression, a: Expression, b: Expression) -> Expression:
    if condition.op == "const":
        return a if condition.value else b
    return Expression("where", (condition, a, b))


def _pow(a: Any, b: Any) -> Expression:
    base, exponent = constant(a), _settled(constant(b))
    if exponent.op == "const":
        power = float(exponent.value)
        if base.op == "const":
            found = _fold("power", base.value, power)
            if rounds_nothing("power", found, base.value, power):
                return constant(found)
        if power == 1.0:
            return base
        return constant(1.0) if power == 0.0 else Expression("pow", (base,), power)
    if base.op == "const" and base.value > 0:
        return node("exp", node("mul", node("log", base), exponent))
    if _is_parametric(exponent):
        return node("exp", node("mul", exponent, node("log", base)))
    _cannot("a power whose exponent is not a number")


def _settled(e: Expression) -> Expression:
    """The value of an exponent without pairings, which exact tracing may have left as an expression of numbers."""
    if e.op in LEAVES or not is_exact.get() or not (_is_parametric(e) and not _has_parameter(e)):
        return e
    return constant(_number(e))


def _number(e: Expression) -> float:
    """The value of an expression that consists of numbers only."""
    if e.op == "const":
        return float(e.value)
    args = [*map(_number, e.args)]
    if e.op == "pow":
        return float(power(args[0], e.value))
    if e.op == "where":
        return args[1] if args[0] else args[2]
    return _fold(e.op, *args)


def _has_parameter(e: Expression) -> bool:
    return e.op == "param" or any(map(_has_parameter, e.args))


def _is_parametric(e: Expression) -> bool:
    """Whether an expression consists of parameters and numbers only, so that it does not depend on the pair."""
    return e.op in ("const", "param") or (e.op not in LEAVES and all(map(_is_parametric, e.args)))


_SIMPLIFY: dict[str, Callable[..., Expression | None]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg,
}  # fmt: skip

_NUMPY: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "abs": np.abs, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "minimum": np.minimum,
    "maximum": np.maximum, "less": np.less, "less_equal": np.less_equal, "power": np.power,
}  # fmt: skip


def _op(name: str) -> Callable[..., Expression]:
    return lambda *args: node(name, *args)


_UFUNCS: dict[Any, Callable[..., Expression]] = {
    **{function: _op(name) for name, function in _NUMPY.items() if name != "power"},
    np.greater: lambda a, b: node("less", b, a),
    np.greater_equal: lambda a, b: node("less_equal", b, a),
    np.power: _pow,
    np.float_power: _pow,
    np.square: lambda a: _pow(a, 2),
    np.reciprocal: lambda a: node("div", 1.0, a),
    np.fabs: _op("abs"),
    np.positive: constant,
}


def leaves_of(expression: Expression) -> set[Expression]:
    """The nodes without arguments, constants included."""
    return {e for e in nodes_of(expression) if not e.args}


def nodes_of(expression: Expression) -> set[Expression]:
    """All different nodes."""
    found, todo = set[Expression](), [expression]
    while todo:
        e = todo.pop()
        if e not in found:
            found.add(e)
            todo += e.args
    return found


def power(base: Any, exponent: float) -> Any:
    """base^exponent; for a positive integer exponent by multiplications, so that small powers are exact."""
    if exponent == int(exponent) and exponent > 0:
        return _integer_power(base, int(exponent))
    return base**exponent


def _integer_power(base: Any, exponent: int) -> Any:
    """base^exponent by repeated squaring, for an exponent ≥ 1."""
    result, square = None, base
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        square = square * square if exponent else square
    return result
