"""Kernels as text: a parser for expressions over names of kernels, which evaluates no code."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache, partial, reduce
from inspect import signature
from typing import Any, NoReturn

from mercer.errors import InvalidInput, message
from mercer.kernels.base import LONGEST_CHAIN, Kernel
from mercer.kernels.conventions import PAIRWISE, Names, completed
from mercer.kernels.symbolic.pairing import PAIRINGS
from mercer.kernels.values import Function
from mercer.kernels.vectors.formula import Formula, is_formula

__all__ = ["as_kernel", "kernel_names", "parse", "register"]

_NAMES: dict[str, type[Kernel]] = {name: type(kernel) for name, kernel in PAIRWISE.items()}
"""The classes that `register` got, and those of scikit-learn's names."""
_METHODS = ("normalized", "on", "with_length_scales")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_WIDTHS = ("sigma", "length_scale", "lengthscale", "bandwidth", "width", "std")
"""What others call the parameter of a Gaussian kernel that is a length."""
_MAX_LENGTH = 10_000
_MAX_DEPTH = 50
_MAX_RANGE = 1_000_000


def register(*classes: type[Kernel]) -> None:
    """Make classes known by their names. This module cannot import them all, because some of them parse texts."""
    _NAMES.update({one.__name__.lower(): one for one in classes})


def kernel_names() -> tuple[str, ...]:
    """The names that `parse` knows.

    Examples
    --------
    >>> "gaussian" in kernel_names()
    True
    """
    return tuple(sorted(_NAMES))


_OF_KERNLAB = {
    "rbfdot": "gaussian(gamma=sigma)",
    "laplacedot": "matern(nu=0.5, length_scale=1/sigma)",
    "vanilladot": "linear()",
    "polydot": "polynomial(degree=degree, gamma=scale, coef0=offset)",
    "tanhdot": "sigmoid(gamma=scale, coef0=offset)",
    "stringdot": "spectrum(k=length) or subsequence(length=length, decay=lambda)",
}
"""Kernels of R's kernlab, whose σ is our γ."""


def as_kernel(given: Any, names: Names = PAIRWISE) -> Kernel:
    """A kernel from a name, an expression, a formula over pairings, or a function; a kernel is returned unchanged.

    Parameters
    ----------
    given : Kernel, str or callable
        A text is a name ("gaussian"), an expression ("0.5*gaussian(gamma=0.1) + linear()"), or a formula over pairings
        ("exp(-sqdist)"). A function f(X, Z) takes blocks of rows.
    names : mapping, optional
        The kernels of scikit-learn's names "rbf", "poly", "sigmoid" and "laplacian", alone and in expressions. By
        default they have the defaults of scikit-learn's pairwise functions, and in an estimator those of its
        counterpart. All other names have their class's own defaults.

    Raises
    ------
    InvalidInput
        If it is none of these, or a text cannot be parsed.

    Examples
    --------
    >>> as_kernel("gaussian"), as_kernel("rbf"), as_kernel("poly(degree=2)")
    (Gaussian(), Gaussian(gamma='auto'), Polynomial(degree=2, gamma='auto'))
    >>> as_kernel("1 / (1 + sqdist)")
    Formula('1 / (1 + sqdist)')

    The name of a kernel alone is the kernel, although a pairing may have the same name:

    >>> as_kernel("chi2"), as_kernel("exp(-chi2)")
    (Chi2(), Formula('exp(-chi2)'))
    """
    if isinstance(given, Kernel):
        return given
    if isinstance(given, str):
        return _named(given, names) or (Formula(given) if is_formula(given) else parse(given, names))
    if callable(given) and not isinstance(given, type):
        return Function(given)
    if isinstance(given, type) and issubclass(given, Kernel):
        called = f"{given.__name__}({'' if given.__name__.lower() in _NAMES else '...'})"
        given = f"{given.__name__} is not a kernel but a class of kernels"
        raise InvalidInput(message("kernel", given, f"give an instance, {called}"))
    advice = f"give a Kernel, a function f(X, Z), or a name: {', '.join(kernel_names())}"
    raise InvalidInput(message("kernel", f"{given!r} is not a kernel", advice))


def _named(text: str, names: Names) -> Kernel | None:
    """The kernel of a text that is just a name, as most are; it needs no syntax tree."""
    key = text.strip().lower()
    return names[key] if key in names else _NAMES[key]() if key in _NAMES else None


def parse(text: str, names: Names = PAIRWISE) -> Kernel:
    """The kernel of an expression such as "0.5*gaussian(gamma=0.1)+linear()"; no code is evaluated.

    Parameters
    ----------
    text : str
        Names of kernels in upper or lower case, `+ * / **`, numbers, and the methods on, normalized and
        with_length_scales.
    names : mapping, optional
        The kernels of scikit-learn's names, as for `as_kernel`.

    Raises
    ------
    InvalidInput
        If the text cannot be parsed; the message shows the part that is wrong.

    Examples
    --------
    >>> parse("gaussian(gamma='median').on([0, 2]) + 2*polynomial(degree=2)")
    Gaussian(gamma='median').on([0, 2]) + 2.0 * Polynomial(degree=2)
    """
    if not isinstance(text, str):
        raise InvalidInput(message("parse", f"a {type(text).__name__}", "give an expression in a string"))
    kernel = _Reader(text, names).value(_tree(text), 0)
    if not isinstance(kernel, Kernel):
        raise InvalidInput(message("parse", f"{_short(text)} is not a kernel", "name at least one kernel"))
    return kernel


@lru_cache(maxsize=64)
def _tree(text: str) -> ast.expr:
    if len(text) > _MAX_LENGTH:
        given = f"an expression of {len(text)} characters"
        raise InvalidInput(message("parse", given, f"give at most {_MAX_LENGTH}, or compose the kernel in Python"))
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        advice = "write it as in Python: 0.5*gaussian(gamma=0.1) + linear()"
        why = error.msg if isinstance(error, SyntaxError) else error
        raise InvalidInput(message("parse", f"{_short(text)} is not an expression ({why})", advice)) from error


_signature = lru_cache(maxsize=256)(signature)


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _meant(name: str, called: str, accepted: Iterable[str]) -> str:
    """Advice for a parameter that a kernel does not have."""
    if name.lower() in _WIDTHS and "gamma" in accepted:
        return "give gamma, γ = 1/(2σ²) for a length σ; " if called.lower() in ("gaussian", "rbf") else ""
    near = get_close_matches(name.lower(), accepted, n=1)
    return f"did you mean {near[0]!r}? Otherwise " if near else ""


class _Reader:
    """Walks through the syntax tree of a text, and refuses all nodes but those listed here."""

    def __init__(self, text: str, names: Names) -> None:
        self.text, self.names = text, names

    def refuse(self, tree: ast.AST, why: str, advice: str) -> NoReturn:
        part = ast.get_source_segment(self.text.strip(), tree) if isinstance(tree, ast.expr) else None
        raise InvalidInput(message("parse", f"{_short(part or self.text)} {why}", advice))

    def value(self, tree: ast.expr, depth: int) -> Any:
        """A kernel or a number."""
        if depth > _MAX_DEPTH:
            do = f"give at most {_MAX_DEPTH} levels, or compose the kernel in Python"
            self.refuse(tree, "is nested too deeply", do)
        match tree:
            case ast.BinOp(op=op) if type(op) in _OPERATORS:
                return self.chain(tree, type(op), depth)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand, depth + 1)
            case ast.Name(id=name):
                return self.builder(tree, name)()
            case ast.Call(func=ast.Name(id=name)):
                return self.call(tree, self.builder(tree, name), depth)
            case ast.Call(func=ast.Attribute(value=inner, attr=method)):
                return self.call(tree, self.method(tree, inner, method, depth), depth)
            case ast.Constant(value=bool() | complex()):
                self.refuse(tree, "is not a kernel", "give a kernel or a real number")
            case ast.Constant(value=int() | float() as number):
                return number
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitXor):
            self.refuse(tree, "cannot be read here", "write ** for a power")
        self.refuse(tree, "cannot be read here", "use kernels, numbers, + * / ** and " + ", ".join(_METHODS))

    def chain(self, tree: ast.expr, op: type[ast.operator], depth: int) -> Any:
        """a + b + c + …, which Python's tree nests once for each term, or another operation that is repeated."""
        first, others = tree, []
        while isinstance(first, ast.BinOp) and isinstance(first.op, op):
            others.append(first.right)
            first = first.left
        values = [self.value(one, depth + 1) for one in (first, *reversed(others))]
        if len(others) > LONGEST_CHAIN and op in (ast.Add, ast.Mult) and all(isinstance(one, Kernel) for one in values):
            return self.halves(tree, op, values)
        return reduce(partial(self.combined, tree, op), values)

    def halves(self, tree: ast.expr, op: type[ast.operator], values: list[Any]) -> Any:
        """A long sum or product as the balanced tree that it becomes anyway, at once."""
        half = (len(values) + 1) // 2
        if len(values) == 1:
            return values[0]
        return self.combined(tree, op, self.halves(tree, op, values[:half]), self.halves(tree, op, values[half:]))

    def combined(self, tree: ast.expr, op: type[ast.operator], left: Any, right: Any) -> Any:
        if not (isinstance(left, Kernel) or isinstance(right, Kernel)):
            self.refuse(tree, "computes with numbers", "write the number out")
        try:
            return _OPERATORS[op](left, right)
        except (TypeError, OverflowError) as error:
            self.refuse(tree, f"cannot be combined ({error})", "write kernel + kernel, 2 * kernel, kernel ** 2")

    def builder(self, tree: ast.expr, name: str) -> Callable[..., Kernel]:
        """The function or class that makes the kernel of this name."""
        key = name.lower().replace("_", "")
        if key in self.names:
            return completed(self.names[key])
        if key in _NAMES:
            return _NAMES[key]
        if key == "function":
            self.refuse(tree, "needs a Python function", "compose this kernel in Python: Function(f)")
        bare = isinstance(tree, ast.Name)  # pairings cannot be called
        if bare and name in (*PAIRINGS, "xx", "zz"):
            do = f"write Formula({_short(self.text)}), or give the text to an estimator or to as_kernel"
            self.refuse(tree, "is a pairing of a formula, and this text is read as an expression of kernels", do)
        near = get_close_matches(key, [*_NAMES, *PAIRINGS] if bare else _NAMES, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"the names are {', '.join(kernel_names())}"
        if name in ("x", "z", "X", "Z"):
            advice = "write dot for ⟨x, z⟩, sqdist for ‖x − z‖², xx for ⟨x, x⟩ and zz for ⟨z, z⟩"
        elif key in _OF_KERNLAB:
            advice = f"kernlab's {key} is {_OF_KERNLAB[key]} here"
        elif bare and not near:
            advice += f", and the pairings of a formula {', '.join(PAIRINGS)}"
        self.refuse(tree, f"has the unknown {'kernel or pairing' if bare else 'kernel'} {name[:40]!r}", advice)

    def method(self, tree: ast.expr, inner: ast.expr, name: str, depth: int) -> Callable[..., Kernel]:
        if name not in _METHODS:
            near = get_close_matches(name, _METHODS, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"the methods are {', '.join(_METHODS)}"
            self.refuse(tree, f"has the unknown method {name[:40]!r}", advice)
        kernel = self.value(inner, depth + 1)
        if not isinstance(kernel, Kernel):
            self.refuse(tree, "calls a method of a number", "call it on a kernel")
        method: Callable[..., Kernel] = getattr(kernel, name)
        return method

    def call(self, tree: ast.Call, function: Callable[..., Kernel], depth: int) -> Kernel:
        taken = (_signature if isinstance(function, type) else signature)(function)
        accepted = taken.parameters
        read = self.inner if "kernel" in accepted else self.argument
        args = [read(arg, depth + 1) for arg in tree.args]
        kwargs = {}
        for keyword in tree.keywords:
            if keyword.arg is None:
                self.refuse(tree, "has **", "name each parameter")
            kwargs[keyword.arg] = read(keyword.value, depth + 1)
        try:
            taken.bind(*args, **kwargs)  # its errors name no function of Python
            return function(*args, **kwargs)
        except TypeError as error:
            called = ast.unparse(tree.func).rpartition(".")[2]
            why, do = f"has arguments that do not fit ({error})", ""
            wrong = next((name for name in kwargs if name not in accepted), None)
            if wrong is not None:
                why, do = f"has the unknown parameter {wrong!r:.40}", _meant(wrong, called, accepted)
            self.refuse(tree, why, f"{do}the parameters of {called} are {', '.join(accepted) or 'none'}")

    def inner(self, tree: ast.expr, depth: int) -> Any:
        """A kernel, or another argument of a kernel that contains a kernel."""
        is_kernel = isinstance(tree, ast.Call | ast.BinOp | ast.Name)
        return self.value(tree, depth) if is_kernel else self.argument(tree, depth)

    def argument(self, tree: ast.expr, depth: int) -> Any:
        """A number, a string, None, inf, or a list of these; range(a, b) for columns."""
        if depth > _MAX_DEPTH:
            self.refuse(tree, "is nested too deeply", f"give at most {_MAX_DEPTH} levels")
        match tree:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return value
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                value = self.argument(operand, depth + 1)
                if isinstance(value, (int, float)):
                    return -value if isinstance(sign, ast.USub) else value
            case ast.Name(id="inf"):
                return math.inf
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.argument(item, depth + 1) for item in items]
            case ast.Call(
                func=ast.Name(id="range"), args=[ast.Constant(value=int() as a), ast.Constant(value=int() as b)]
            ):
                if b - a > _MAX_RANGE:
                    self.refuse(tree, "is too long", f"give at most {_MAX_RANGE} columns")
                return range(a, b)
        self.refuse(tree, "is not a value for a parameter", "give a number, a string or a list")
