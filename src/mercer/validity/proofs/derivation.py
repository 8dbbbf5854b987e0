"""A proof as a tree of claims, rules and premises, and formulas in mathematical notation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from mercer.kernels import Expression

__all__ = ["Derivation", "pretty", "short"]


@dataclass(frozen=True)
class Derivation:
    """A claim, the rule that gives it, and the derivations of the rule's premises.

    Attributes
    ----------
    claim : str
    rule : str
        A closure rule, or the theorem at a leaf.
    premises : tuple of Derivation
    declared : bool
        Whether the claim relies on a declaration of a class outside mercer instead of a theorem.

    Examples
    --------
    >>> print(Derivation("2 + ⟨x, z⟩ is PSD", "sum", (Derivation("⟨x, z⟩ is PSD", "inner product"),)))
    2 + ⟨x, z⟩ is PSD  [sum]
    └─ ⟨x, z⟩ is PSD  [inner product]
    """

    claim: str
    rule: str
    premises: tuple[Derivation, ...] = ()
    declared: bool = False

    @property
    def rests_on_declaration(self) -> bool:
        """Whether any claim in the tree relies on a declaration of a class outside mercer."""
        return self.declared or any(premise.rests_on_declaration for premise in self.premises)

    def lines(self) -> Iterator[str]:
        """The tree, one line for each claim."""
        yield f"{self.claim}  [{self.rule}]"
        for place, premise in enumerate(self.premises):
            last = place == len(self.premises) - 1
            for row, line in enumerate(premise.lines()):
                mark = ("└─ " if last else "├─ ") if row == 0 else ("   " if last else "│  ")
                yield mark + line

    def rules(self) -> frozenset[str]:
        """The names of all rules in the tree.

        >>> Derivation("a", "sum", (Derivation("b", "product"),)).rules() == {"sum", "product"}
        True
        """
        return frozenset({self.rule}.union(*(premise.rules() for premise in self.premises)))

    def __str__(self) -> str:
        return "\n".join(self.lines())


_LEAVES = {
    "dot": "⟨x, z⟩", "sqdist": "‖x − z‖²", "l1": "‖x − z‖₁", "min_sum": "Σmin(xᵢ, zᵢ)", "chi2": "χ²(x, z)",
    "mismatches": "#{xᵢ ≠ zᵢ}",
}  # fmt: skip
_SELF = {"dot": "‖{}‖²", "min_sum": "Σ{}ᵢ"}
_INFIX = {"add": " + ", "sub": " − ", "mul": "·", "div": "/", "less": " < ", "less_equal": " ≤ "}
_BINDING = {"less": 0, "less_equal": 0, "add": 1, "sub": 1, "neg": 2, "mul": 2, "div": 2, "pow": 3}
_SUPERSCRIPT = str.maketrans("0123456789.-", "⁰¹²³⁴⁵⁶⁷⁸⁹·⁻")


def pretty(e: Expression) -> str:
    """An expression in mathematical notation.

    >>> from mercer.kernels import Gaussian, Polynomial, trace
    >>> pretty(trace(Gaussian(gamma=0.5))), pretty(trace(Polynomial(degree=2)))
    ('exp(−0.5·‖x − z‖²)', '(⟨x, z⟩ + 1)²')
    >>> from mercer.kernels import Formula
    >>> pretty(trace(Formula("exp(-sqdist**1.5)")))
    'exp(−‖x − z‖³)'
    """
    if e.op == "const":
        return short(e.value)
    if e.op in ("pairing", "self_x", "self_z"):
        return _leaf(e)
    if e.op in _INFIX:
        level = _BINDING[e.op]
        right = level + 1 if e.op in ("sub", "div") else level
        left, after = _in(e.args[0], level), _in(e.args[1], right)
        return f"{left}{_INFIX[e.op]}{after}"
    if e.op == "neg":
        return "−" + _in(e.args[0], 2)
    if (norm := _norm(e)) is not None:
        return norm
    if e.op == "pow":
        return _in(e.args[0], 4) + _exponent(e.value)
    names = {"sqrt": "√", "minimum": "min", "maximum": "max"}
    return f"{names.get(e.op, e.op)}({', '.join(map(pretty, e.args))})"


def _norm(e: Expression) -> str | None:
    """A power of a squared norm, written as a power of the norm; None for other expressions."""
    power = {"sqrt": 0.5, "pow": e.value}.get(e.op)
    leaf = e.args[0] if e.args else e
    if power is None or leaf.op not in ("pairing", "self_x", "self_z") or leaf.value[1]:
        return None
    text = _leaf(leaf)
    if not text.endswith("‖²"):
        return None
    return text[:-1] + ("" if power == 0.5 else _exponent(2 * power))


def _exponent(value: float | Fraction) -> str:
    """Raised if it is a whole number.

    >>> _exponent(3.0), _exponent(1.5)
    ('³', '^1.5')
    """
    whole = value == int(value) and 0 < value < 100
    return str(int(value)).translate(_SUPERSCRIPT) if whole else f"^{short(value)}"


def short(value: float | Fraction) -> str:
    """A number with six digits."""
    try:
        return f"{float(value):.6g}".replace("-", "−")
    except OverflowError:  # a rational number beyond all floats
        return "−∞" if value < 0 else "∞"


def _in(e: Expression, level: int) -> str:
    """The text of an operand, in brackets if it binds less tightly than `level`."""
    loose = _BINDING.get(e.op, 9) < level or (e.op == "const" and e.value < 0 and level > 2)
    return f"({pretty(e)})" if loose else pretty(e)


def _leaf(e: Expression) -> str:
    kind, views = e.value
    if e.op == "pairing":
        text = _LEAVES[kind]
    else:
        row = "x" if e.op == "self_x" else "z"
        text = _SELF.get(kind, "0").format(row)
    return text + "".join(f" through {view!r}" for view in views)
