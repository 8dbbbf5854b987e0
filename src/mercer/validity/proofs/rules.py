"""Closure rules that prove formulas positive semi-definite (PSD) or conditionally negative definite (CND).

k is PSD if Σ cᵢcⱼ k(xᵢ, xⱼ) ≥ 0 for all c. ψ is CND if Σ cᵢcⱼ ψ(xᵢ, xⱼ) ≤ 0 for all c with Σ cᵢ = 0. Both are about all
rows of a domain between which the formula has values. Numbers are rational, and ranges are rounded outwards. A rule
that needs non-negative rows or few columns checks this after the views of its pairing. docs/mathematics.md has each
rule with its theorem. Schölkopf & Smola 2002, chapters 2 (Kernels) and 13 (Designing kernels); Berg, Christensen &
Ressel 1984, chapter 3 (General results on positive and negative definite matrices and kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from mercer.kernels import Expression
from mercer.validity.arithmetic.exact import ZERO, build, number, scaled, sides
from mercer.validity.arithmetic.ranges import Domain, range_of
from mercer.validity.proofs.derivation import Derivation, pretty, short
from mercer.validity.proofs.forms import (
    Factor,
    LinearForm,
    Term,
    diagonal,
    key,
    linear,
    mirror,
    plus,
    product,
    substitute,
)
from mercer.validity.proofs.shapes import cone, equality, is_difference, is_distance, of_sqdist, overlap

__all__ = ["Prover"]

MOST_STEPS = 2000
"""Most claims about one formula and its parts that are tried."""

_DISTANCES = {
    "sqdist": "squared Euclidean distance: ‖x‖² + ‖z‖² − 2⟨x, z⟩",
    "l1": "city-block distance: Σ ∫ |1[t < xᵢ] − 1[t < zᵢ]|² dt",
    "mismatches": "count of mismatches: half the squared distance of one-hot codes",
    "chi2": "χ² distance of non-negative rows: the square of a Hilbert metric (Fuglede & Topsøe)",
}
_BUSY = object()


class Prover:
    """Searches for derivations by the rules, backwards from an exact formula. None means that none was found.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, trace
    >>> from mercer.validity.arithmetic.exact import exactly
    >>> print(Prover(Domain()).psd(exactly(trace(Gaussian(gamma=0.5)))))
    exp(−0.5·‖x − z‖²) is PSD  [Schoenberg: exp(−ψ) of a CND ψ]
    └─ 0.5·‖x − z‖² is CND  [non-negative factor]
       └─ ‖x − z‖² is CND  [squared Euclidean distance: ‖x‖² + ‖z‖² − 2⟨x, z⟩]
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.obstacles: dict[str, None] = {}
        """Conditions that a rule would have needed, in the order of the search."""
        self._known: dict[tuple[str, str], object] = {}

    # ---- positive semi-definite --------------------------------------------------------------------------------------

    def psd(self, e: Expression) -> Derivation | None:
        """A derivation of "e is PSD", or None."""
        return self._once("psd", e, self._psd)

    def _psd(self, e: Expression) -> Derivation | None:
        if not sides(e):
            return self._claim(e, "constant ≥ 0") if self._least(e) >= 0 else self._needs(e, "a constant ≥ 0")
        form = linear(e)
        if not form.terms:
            return self._claim(e, "constant ≥ 0") if form.constant >= 0 else self._needs(e, "a constant ≥ 0")
        if form.single:
            return self._scaled(e, form.single)
        return self._sum(e, form) or self._centred(e, form) or self._squares_opened(e, form)

    def _scaled(self, e: Expression, term: Term) -> Derivation | None:
        if term.coefficient < 0:
            return self._log_series(e, term)
        inner = self._product(term.expression)
        if term.coefficient == 1 or inner is None:
            return inner
        return self._claim(e, f"non-negative factor {short(term.coefficient)}", inner)

    def _sum(self, e: Expression, form: LinearForm) -> Derivation | None:
        """The convex cone: a sum of kernels with non-negative weights."""
        if form.constant < 0:
            return self._needs(e, f"a constant term ≥ 0, not {short(form.constant)}")
        parts = [self.psd(scaled(coefficient, term)) for coefficient, term in form.terms]
        if form.constant > 0:
            parts.append(self.psd(number(form.constant)))
        return self._all(e, "sum", parts)

    def _centred(self, e: Expression, form: LinearForm) -> Derivation | None:
        """ψ(x, 0) + ψ(0, z) − ψ(x, z) − ψ(0, 0) is PSD exactly where ψ is CND (Berg et al. 1984, 3.2.1)."""
        for coefficient, psi in form.terms:
            if coefficient < 0 and sides(psi) and of_sqdist(psi) and (proof := self.cnd(psi)):
                to = {side: substitute(psi, _to_origin(side)) for side in ("self_x", "self_z")}
                at = substitute(psi, lambda leaf: ZERO)
                centred = plus(build("sub", [build("sub", [psi, to["self_x"]]), to["self_z"]]), at)
                rest = linear(build("sub", [e, scaled(coefficient, centred)]))
                rule = "ψ(x, 0) + ψ(0, z) − ψ(x, z) − ψ(0, 0) of a CND ψ"
                if not rest.terms and rest.constant == 0:
                    return self._claim(e, rule, proof)
                if more := self.psd(rest.expression()):
                    return self._claim(e, f"sum; {rule}", proof, more)
        return None

    def _squares_opened(self, e: Expression, form: LinearForm) -> Derivation | None:
        """Expand ‖x − z‖² in a sum that has it with the wrong sign."""

        def opened(leaf: Expression) -> Expression:
            own = [Expression(op, (), ("dot", leaf.value[1])) for op in ("self_x", "self_z")]
            dot = Expression("pairing", (), ("dot", leaf.value[1]))
            return build("sub", [plus(*own), scaled(Fraction(2), dot)])

        squares = [t.op == "pairing" and t.value[0] == "sqdist" for _, t in form.terms]
        if not any(squares):
            return None
        flat = [scaled(c, opened(t) if is_one else t) for (c, t), is_one in zip(form.terms, squares, strict=True)]
        other = linear(reduce(plus, flat, number(form.constant)))
        proof = self._sum(other.expression(), other)
        return proof and self._claim(e, "‖x − z‖² = ‖x‖² + ‖z‖² − 2⟨x, z⟩", proof)

    def _product(self, e: Expression) -> Derivation | None:
        """Schur's theorem for the factors, with f(x)f(z) as one of them."""
        coefficient, factors = product(e, self.domain)
        alone = [factor for factor in factors if not sides(factor.base)]
        if coefficient < 0 or any(self._least(factor.expression()) < 0 for factor in alone):
            return self._needs(e, "a factor ≥ 0")
        parts: list[Derivation | None] = []
        one_sided = [factor for factor in factors if len(sides(factor.base)) == 1]
        if one_sided:
            parts.append(self._rank_one(one_sided))
        parts += [self._power(factor) for factor in factors if len(sides(factor.base)) == 2]
        if len(parts) == 1 and coefficient == 1 and not alone:
            return parts[0]
        return self._all(e, "product (Schur)" if len(parts) > 1 else "non-negative factor", parts)

    def _rank_one(self, factors: list[Factor]) -> Derivation | None:
        """f(x)f(z): the kernel of one feature."""
        halves = {side: [f for f in factors if sides(f.base) == {side}] for side in ("x", "z")}
        left = sorted((key(base), exponent) for base, exponent in halves["x"])
        right = sorted((key(mirror(base)), exponent) for base, exponent in halves["z"])
        whole = reduce(lambda a, b: build("mul", [a, b]), (factor.expression() for factor in factors))
        if left != right:
            return self._needs(whole, "the same function of x and of z")
        return self._claim(whole, "f(x)f(z): one feature, as in a normalisation")

    def _power(self, factor: Factor) -> Derivation | None:
        base, exponent = factor
        if base.op == "maximum":
            return self._askey(factor)
        if exponent < 1 or exponent.denominator != 1:
            return self._divisible(factor)
        inner = self._atom(base) if (term := linear(base).single) and term.expression == base else self.psd(base)
        if exponent == 1 or not inner:
            return inner
        return self._claim(factor.expression(), f"power {short(exponent)} (Schur, repeated)", inner)

    def _atom(self, e: Expression) -> Derivation | None:
        """A proof for an expression that is neither a sum nor a product."""
        if e.op == "pairing":
            return self._pairing(e)
        if e.op == "exp":
            return self._exponential(e)
        if e.op == "where":
            return self._where(e)
        if e.op == "cos" and is_difference(e.args[0], self.domain):
            return self._claim(e, "cos a(x − z) = cos ax cos az + sin ax sin az, in one column")
        return self._needs(e, f"a rule for {e.op}")

    def _where(self, e: Expression) -> Derivation | None:
        if equality(e, self.domain):
            return self._claim(e, "constant and diagonal: b + (a − b)·[x = z]")
        if (k := overlap(e)) is not None and (inner := self.psd(k)):
            rule = "overlap k/s, s = α(k(x, x) + k(z, z)) − βk: Σ βⁿkⁿ⁺¹ ∫ tⁿ exp(−αt(k(x, x) + k(z, z))) dt/n!"
            return self._claim(e, rule, inner)
        return self._needs(e, "a rule for this where")

    def _pairing(self, e: Expression) -> Derivation | None:
        kind, views = e.value
        if kind == "dot":
            return self._claim(e, "inner product: ‖Σ cᵢxᵢ‖² ≥ 0")
        if kind == "min_sum":
            rule = "overlap of the intervals [0, xᵢ] and [0, zᵢ]"
            seen = self.domain.seen(views)
            return self._claim(e, rule) if seen.is_non_negative else self._needs(e, "non-negative rows")
        return self._needs(e, f"a similarity; {pretty(e)} is a distance")

    def _exponential(self, e: Expression) -> Derivation | None:
        (u,) = e.args
        if inner := self.psd(u):
            return self._claim(e, "power series Σ kⁿ/n!", inner)
        inner = self.cnd(scaled(Fraction(-1), u))
        return inner and self._claim(e, "Schoenberg: exp(−ψ) of a CND ψ", inner)

    def _askey(self, factor: Factor) -> Derivation | None:
        """(1 − c‖x − z‖)₊^p is PSD on ℝᵈ if p ≥ (d + 1)/2 (Askey 1973; Golubov 1981; Pólya for d = 1)."""
        base, exponent = factor
        found = cone(base, self.domain)
        if found is None:
            return self._needs(base, "a rule for this maximum")
        if found.d is None or exponent < Fraction(found.d + 1, 2):
            d = "every d" if found.d is None else f"d = {found.d}"
            return self._needs(base, f"a power ≥ (d + 1)/2 of it, for {d} columns; given {short(exponent)}")
        return self._claim(factor.expression(), "Askey: (1 − c‖x − z‖)₊^p, p ≥ (d + 1)/2")

    def _log_series(self, e: Expression, term: Term) -> Derivation | None:
        """−log(c − k) = −log c + Σ (k/c)ⁿ/n for a kernel k < c ≤ 1."""
        if term.expression.op != "log":
            return self._needs(e, f"a factor ≥ 0, not {short(term.coefficient)}")
        form = linear(term.expression.args[0])
        if form.constant > 1 or not (inner := self._below(form)):
            return self._needs(e, "−log(c − k) with a kernel k < c ≤ 1")
        return self._claim(e, "power series −log(1 − k) = Σ kⁿ/n", inner)

    def _below(self, form: LinearForm) -> Derivation | None:
        """The proof that k is PSD in c − k, if |k(x, z)| ≤ sup k(x, x) < c (Cauchy–Schwarz)."""
        k = LinearForm(Fraction(0), tuple(Term(-c, e) for c, e in form.terms)).expression()
        if form.constant <= 0 or not form.terms or not range_of(diagonal(k), self.domain).hi < form.constant:
            return None
        return self.psd(k)

    # ---- every positive power ----------------------------------------------------------------------------------------

    def _divisible(self, factor: Factor) -> Derivation | None:
        """A proof for base^power with a power that is not a natural number."""
        e, (base, exponent) = factor.expression(), factor
        if base.op == "exp":
            inner = self.cnd(scaled(-exponent, base.args[0]))
            return inner and self._claim(e, "Schoenberg: exp(−ψ) of a CND ψ, any power", inner)
        if exponent > 0:
            return self._needs(e, f"a base whose every positive power is PSD, for the power {short(exponent)}")
        if self._least(base) > 0 and (inner := self.cnd(base)):
            return self._claim(e, "mixture of exp(−tψ) over t > 0, for ψ > 0 CND", inner)
        if inner := self._below(linear(base)):
            return self._claim(e, "geometric or binomial series in k/c, k < c", inner)
        return self._needs(e, "a positive CND denominator, or c − k with a kernel k < c")

    # ---- conditionally negative --------------------------------------------------------------------------------------

    def cnd(self, e: Expression) -> Derivation | None:
        """A derivation of "e is CND", or None."""
        return self._once("cnd", e, self._cnd)

    def _cnd(self, e: Expression) -> Derivation | None:
        form = linear(e)
        alone = [term for term in form.terms if len(sides(term.expression)) == 1]
        pairs = [term for term in form.terms if len(sides(term.expression)) == 2]
        if not _mirrored(alone):
            return self._needs(e, "the same function of x and of z", "CND")
        if not pairs:
            return self._claim(e, "f(x) + f(z), which vanishes where Σc = 0", to="CND")
        has_constant = form.constant != 0 or len(alone) + len(pairs) < len(form.terms)
        parts = [self._cnd_part(term) for term in pairs]
        if len(pairs) == 1 and not alone and not has_constant:
            plain = parts[0] is None or pairs[0].coefficient <= 0 or pairs[0].coefficient == 1
            return parts[0] if plain else self._all(e, "non-negative factor", parts, "CND")
        zero = ["constant"] * has_constant + ["f(x) + f(z)"] * bool(alone)
        rule = f"up to {' and '.join(zero)}, which vanish{'es' * (len(zero) < 2)} where Σc = 0" if zero else "sum"
        return self._all(e, rule, parts, "CND")

    def _cnd_part(self, term: Term) -> Derivation | None:
        if term.coefficient > 0:
            return self._cnd_atom(term.expression)
        minus = scaled(-term.coefficient, term.expression)
        if inner := self.psd(minus):
            return self._claim(scaled(Fraction(-1), minus), "minus a PSD kernel", inner, to="CND")
        return None

    def _cnd_atom(self, e: Expression) -> Derivation | None:
        if e.op == "pairing":
            if is_distance(e, self.domain):
                return self._claim(e, _DISTANCES[e.value[0]], to="CND")
            return self._needs(e, "a distance", "CND")
        if e.op == "log":
            if self._least(e.args[0]) > 0 and (inner := self.cnd(e.args[0])):
                return self._claim(e, "Bernstein function log of a positive CND", inner, to="CND")
            return self._needs(e, "the logarithm of a positive CND function", "CND")
        coefficient, factors = product(e, self.domain)
        if coefficient <= 0 or any(not sides(factor.base) for factor in factors):
            return self._needs(e, "a rational factor > 0", "CND")
        if len(factors) == 1:
            return self._cnd_power(e, factors[0])
        return self._quotient(e, factors) if len(factors) == 2 else None

    def _cnd_power(self, e: Expression, factor: Factor) -> Derivation | None:
        base, exponent = factor
        if exponent == 2 and base.op == "sin" and is_difference(base.args[0], self.domain):
            return self._claim(e, "sin² a(x − z) = (1 − cos 2a(x − z))/2, in one column", to="CND")
        if not 0 < exponent < 1:
            return self._needs(e, f"an exponent from 0 to 1 of a CND function, not {short(exponent)}", "CND")
        if self._least(base) < 0:
            return self._needs(e, "a non-negative base", "CND")
        inner, p = self.cnd(base), short(exponent)
        return inner and self._claim(e, f"Bernstein function ψ^{p}, 0 < {p} ≤ 1", inner, to="CND")

    def _quotient(self, e: Expression, factors: list[Factor]) -> Derivation | None:
        """ψ/(ψ + c) = 1 − c/(ψ + c)."""
        above, below = sorted(factors, key=lambda factor: -factor.power)
        difference = linear(build("sub", [below.base, above.base]))
        if (above.power, below.power) != (1, -1) or difference.terms or difference.constant <= 0:
            return None
        inner = self.cnd(above.base) if self._least(above.base) >= 0 else None
        return inner and self._claim(e, "Bernstein function ψ/(ψ + c)", inner, to="CND")

    # ---- bookkeeping -------------------------------------------------------------------------------------------------

    def _once(self, what: str, e: Expression, derive: Callable[[Expression], Derivation | None]) -> Derivation | None:
        """Derive each claim once. A claim that depends on itself has no derivation along that path."""
        name = (what, key(e))
        if name not in self._known:
            if len(self._known) >= MOST_STEPS:
                self.obstacles[f"not decided within {MOST_STEPS} steps of the rules"] = None
                return None
            self._known[name] = _BUSY
            self._known[name] = derive(e)
        found = self._known[name]
        return found if isinstance(found, Derivation) else None

    def _least(self, e: Expression) -> Decimal:
        """A lower bound on the values."""
        return range_of(e, self.domain).lo

    def _claim(self, e: Expression, rule: str, *premises: Derivation, to: str = "PSD") -> Derivation:
        return Derivation(f"{pretty(e)} is {to}", rule, premises)

    def _all(self, e: Expression, rule: str, parts: list[Derivation | None], to: str = "PSD") -> Derivation | None:
        proved = [part for part in parts if part]
        return self._claim(e, rule, *proved, to=to) if len(proved) == len(parts) else None

    def _needs(self, e: Expression, what: str, to: str = "PSD") -> Derivation | None:
        self.obstacles[f"{pretty(e)}: for it to be {to} the rules need {what}"] = None
        return None


def _mirrored(alone: Iterable[Term]) -> bool:
    """Whether terms that depend on one row each add up to f(x) + f(z)."""
    halves: dict[str, list[tuple[str, Fraction]]] = {"x": [], "z": []}
    for coefficient, e in alone:
        (side,) = sides(e)
        halves[side].append((key(e if side == "x" else mirror(e)), coefficient))
    return sorted(halves["x"]) == sorted(halves["z"])


def _to_origin(side: str) -> Callable[[Expression], Expression]:
    return lambda leaf: Expression(side, (), ("dot", leaf.value[1]))
