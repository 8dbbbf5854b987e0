"""Theorems on the parameters for which a family of formulas is a kernel."""

from __future__ import annotations

from fractions import Fraction

from mercer.kernels import Expression
from mercer.validity.arithmetic.exact import small_and_exact
from mercer.validity.arithmetic.ranges import Domain
from mercer.validity.proofs.derivation import short
from mercer.validity.proofs.forms import linear, product

__all__ = ["known_ranges"]

_ANY = Domain()


def known_ranges(e: Expression | None) -> list[str]:
    """Sentences on the parameters of the families that occur in a formula.

    >>> from mercer.kernels import Sigmoid, trace
    >>> known_ranges(trace(Sigmoid()))
    ['tanh(γ⟨x, z⟩ + c) is PSD on all of ℝᵈ for no γ and c (Smola, Óvári & Williamson 2000)']
    """
    found = dict[str, None]()
    exact = small_and_exact(e)
    if exact is not None:
        _walk(exact, found)
        _conditional(exact, found)
    return list(found)


def _walk(e: Expression, found: dict[str, None]) -> None:
    if e.op == "tanh" and _over(e.args[0], "dot"):
        found["tanh(γ⟨x, z⟩ + c) is PSD on all of ℝᵈ for no γ and c (Smola, Óvári & Williamson 2000)"] = None
    if e.op == "exp" and (power := _power_of_distance(e.args[0], -1)) is not None:
        found[
            f"exp(−γ‖x − z‖ᵖ) is PSD on every ℝᵈ exactly for 0 < p ≤ 2 (Schoenberg 1938); here p = {short(power)}"
        ] = None
    if e.op in ("cos", "sin") and _power_of_distance(e.args[0], 1) == 1:
        found[f"{e.op} of ‖x − z‖ belongs to one column; in more, sum sin² over the columns, as Periodic does"] = None
    if e.op == "maximum" and _over(e, "sqdist"):
        found["(1 − c‖x − z‖)₊ᵖ is PSD on ℝᵈ exactly for p ≥ (d + 1)/2 (Askey 1973; Golubov 1981)"] = None
    if e.op == "pow" and _over(e.args[0], "dot"):
        found["(γ⟨x, z⟩ + c)ᵖ is PSD on every ℝᵈ for γ, c ≥ 0 and natural p"] = None
    for arg in e.args:
        _walk(arg, found)


def _conditional(e: Expression, found: dict[str, None]) -> None:
    """Add the sentences on the power kernel and the log kernel."""
    if (power := _power_of_distance(e, -1)) is not None:
        text = "−‖x − z‖ᵖ is conditionally positive exactly for 0 < p ≤ 2, and PSD for no p (Schoenberg 1938)"
        found[f"{text}; here p = {short(power)}"] = None
    form = linear(e)
    if len(form.terms) == 1 and form.terms[0].coefficient < 0 and form.terms[0].expression.op == "log":
        inner = linear(form.terms[0].expression.args[0])
        if inner.constant == 1 and len(inner.terms) == 1 and _over(inner.terms[0].expression, "sqdist"):
            found["−log(1 + ‖x − z‖ᵖ) is conditionally positive exactly for 0 < p ≤ 2, and PSD for no p"] = None


def _power_of_distance(e: Expression, sign: int) -> Fraction | None:
    """p if e is sign·c·‖x − z‖ᵖ with c > 0; otherwise None."""
    form = linear(e)
    if form.constant != 0 or len(form.terms) != 1 or form.terms[0].coefficient * sign <= 0:
        return None
    _, factors = product(form.terms[0].expression, _ANY)
    if len(factors) != 1 or factors[0].base.op != "pairing" or factors[0].base.value[0] != "sqdist":
        return None
    return 2 * factors[0].power


def _over(e: Expression, kind: str) -> bool:
    """Whether a formula contains a pairing of this kind."""
    return (e.op == "pairing" and e.value[0] == kind) or any(_over(arg, kind) for arg in e.args)
