"""A kernel as a text over pairings, which is parsed and not evaluated as code."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NoReturn

from mercer.errors import InvalidInput, MercerError, message
from mercer.kernels.base import Kernel
from mercer.kernels.symbolic import functions
from mercer.kernels.symbolic.exactness import is_exact
from mercer.kernels.symbolic.expression import constant
from mercer.kernels.symbolic.pairing import PAIRINGS, SymbolPair

__all__ = ["Formula", "is_formula"]

_NAMES = (*PAIRINGS, "xx", "zz")
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS = ("exp", "log", "sqrt", "tanh", "sin", "cos", "abs", "minimum", "maximum", "where")
_POWER = "** for a power"
_ELSEWHERE = {
    "max": "maximum", "fmax": "maximum", "amax": "maximum", "min": "minimum", "fmin": "minimum", "amin": "minimum",
    "ln": "log", "fabs": "abs", "absolute": "abs", "pow": _POWER, "power": _POWER, "float_power": _POWER,
    "square": "a ** 2", "log1p": "log(1 + a)", "expm1": "exp(a) - 1", "reciprocal": "1 / a",
    "clip": "minimum(maximum(a, low), high)",
}  # fmt: skip
"""What formulas have for functions of Python and NumPy."""
_MAX_LENGTH, _MAX_DEPTH = 10_000, 50


@dataclass(frozen=True, repr=False)
class Formula(Kernel):
    """k(x, z) as a text of numbers, pairings, + − * / ** and functions.

    Its definiteness is unknown; `mercer.check_kernel` finds out whether it is a kernel.

    Parameters
    ----------
    text : str, default "dot"
        The pairings are ``dot`` ⟨x, z⟩, ``sqdist`` ‖x − z‖², ``l1`` ‖x − z‖₁, ``min_sum`` Σmin(xᵢ, zᵢ), ``chi2``,
        ``mismatches``, ``xx`` ‖x‖² and ``zz`` ‖z‖². ``pi`` is a number. The functions are exp, log, sqrt, tanh, sin,
        cos, abs, minimum, maximum, and where(condition, value, other).

    Raises
    ------
    InvalidInput
        If the text cannot be parsed; the message says what to write.

    Examples
    --------
    >>> Formula("1 / (1 + sqdist)")([[0.0]], [[2.0]])
    array([[0.2]])
    """

    text: str = "dot"

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            given = f"text of type {type(self.text).__name__}"
            raise InvalidInput(message("Formula", given, "give a formula such as 'exp(-0.5 * sqdist)'"))
        try:
            constant(self.formula(SymbolPair()))
        except (TypeError, ValueError, ArithmeticError) as error:
            if isinstance(error, MercerError):
                raise
            self._refuse(self.text, f"cannot be computed ({error})")

    def formula(self, pair: Any) -> Any:
        return self._value(_tree(self.text), pair, 0)

    def _value(self, tree: ast.expr, pair: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            self._refuse(self.text, "is nested too deeply")
        match tree:
            case ast.Constant(value=bool() | complex()):
                pass
            case ast.Constant(value=int() | float() as number):
                return _literal(float(number), pair)
            case ast.Name(id="pi"):
                return math.pi
            case ast.Name(id=name) if name in _NAMES:
                return getattr(pair, name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand, pair, depth + 1)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](self._value(left, pair, depth + 1), self._value(right, pair, depth + 1))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return _COMPARE[type(op)](self._value(left, pair, depth + 1), self._value(right, pair, depth + 1))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return getattr(functions, name)(*(self._value(arg, pair, depth + 1) for arg in args))
            case ast.Name(id=name) if name not in _FUNCTIONS:
                self._refuse(self.text, f"has the unknown name {name[:40]!r}", _meant(name, (*_NAMES, "pi")))
            case ast.Call(func=ast.Name(id=name)) if name not in _FUNCTIONS:
                self._refuse(self.text, f"has the unknown function {name[:40]!r}", _meant(name, _FUNCTIONS))
        given = ast.get_source_segment(self.text.strip(), tree) or ast.unparse(tree)
        self._refuse(given, "cannot be used here", _instead(tree))

    def _refuse(self, part: str, why: str, meant: str = "") -> NoReturn:
        shown = part if len(part) <= 60 else part[:57] + "..."
        advice = f"{meant}use numbers, {', '.join(_NAMES)}, pi, + - * / ** and {', '.join(_FUNCTIONS)}"
        raise InvalidInput(message("Formula", f"{shown!r} {why}", advice))

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"


def _instead(tree: ast.expr) -> str:
    """Advice for Python's own syntax that formulas do not have."""
    match tree:
        case ast.IfExp():
            return "write where(condition, value, other). Otherwise "
        case ast.BoolOp(op=op):
            return "write minimum(a, b). Otherwise " if isinstance(op, ast.And) else "write maximum(a, b). Otherwise "
        case ast.BinOp(op=ast.BitXor()):
            return f"write {_POWER}. Otherwise "
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Attribute(attr=name) if name in (*_NAMES, *_FUNCTIONS):
            return f"write {name} alone. Otherwise "
        case ast.Call(func=ast.Attribute(attr=name)) if name in _ELSEWHERE:
            return _meant(name, _FUNCTIONS)
    return ""


def _literal(value: float, pair: Any) -> Any:
    """A number; in exact tracing a node, so that operations on numbers alone round nothing either."""
    return constant(value) if is_exact.get() and isinstance(pair, SymbolPair) else value


def _meant(name: str, known: tuple[str, ...]) -> str:
    ours = _ELSEWHERE.get(name.lower(), "") if known is _FUNCTIONS else ""
    if ours and ours not in known:
        return f"write {ours}. Otherwise "
    near = [ours] if ours else get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return f"did you mean {near[0]!r}? Otherwise " if near else ""


@lru_cache(maxsize=64)
def _tree(text: str) -> ast.expr:
    if len(text) > _MAX_LENGTH:
        given = f"a formula of {len(text)} characters"
        raise InvalidInput(message("Formula", given, f"give at most {_MAX_LENGTH}, or write the kernel as a class"))
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        advice = "write it as in Python: exp(-0.5 * sqdist)"
        raise InvalidInput(message("Formula", f"{text[:80]!r} is not a formula ({error})", advice)) from error


def is_formula(text: str) -> bool:
    """Whether a text is a formula over pairings and functions, and not an expression of kernels.

    A name that is called is a kernel or a function: chi2() is the kernel, and chi2 the pairing.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> is_formula("exp(-sqdist)"), is_formula("gaussian(gamma=1.0)"), is_formula("exp(-chi2)"), is_formula("2*chi2()")
    (True, False, True, False)
    """
    try:
        return _has_pairings(text)
    except InvalidInput:
        return False


@lru_cache(maxsize=64)
def _has_pairings(text: str) -> bool:
    nodes = list(ast.walk(_tree(text)))
    called = {id(node.func): node.func for node in nodes if isinstance(node, ast.Call)}
    if any(isinstance(func, ast.Name) and func.id in _FUNCTIONS for func in called.values()):
        return True  # no kernel has the name of a function
    return any(isinstance(node, ast.Name) and node.id in _NAMES and id(node) not in called for node in nodes)
