"""Closure rules on formulas: what is positive semi-definite (PSD), and what is conditionally negative (CND).

k is PSD where Σ cᵢcⱼ k(xᵢ, xⱼ) ≥ 0 for all c; ψ is CND where Σ cᵢcⱼ ψ(xᵢ, xⱼ) ≤ 0 for all c with Σ cᵢ = 0.
Schölkopf & Smola 2002, chapters 2 and 13; Berg, Christensen & Ressel 1984, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce

from mercer.kernels import Expression
from mercer.kernels.expression import constant, node
from mercer.validity.derivation import Derivation, pretty
from mercer.validity.forms import Factor, Linear, Term, diagonal, key, linear, mirror, product, sides, substitute
from mercer.validity.ranges import Domain, range_of

__all__ = ["Prover"]

_DISTANCES = {
    "sqdist": "squared Euclidean distance: ‖x‖² + ‖z‖² − 2⟨x, z⟩",
    "l1": "city-block distance: Σ ∫ |1[t < xᵢ] − 1[t < zᵢ]|² dt",
    "mismatches": "count of mismatches: half the squared distance of one-hot codes",
    "chi2": "χ² distance of non-negative rows: the square of a Hilbert metric (Fuglede & Topsøe)",
}
_BUSY = object()


class Prover:
    """Searches for derivations by the rules, backwards from a formula; what it finds is a proof, None is no answer.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, trace
    >>> print(Prover(Domain()).psd(trace(Gaussian(gamma=0.5))))
    exp(−0.5·‖x − z‖²) is PSD  [Schoenberg: exp(−ψ) of a CND ψ]
    └─ 0.5·‖x − z‖² is CND  [non-negative factor]
       └─ ‖x − z‖² is CND  [squared Euclidean distance: ‖x‖² + ‖z‖² − 2⟨x, z⟩]
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.obstacles: dict[str, None] = {}
        """Conditions that a rule would have needed, in the order in which they were met."""
        self._known: dict[tuple[str, str], object] = {}

    # ---- positive semi-definite --------------------------------------------------------------------------------------

    def psd(self, e: Expression) -> Derivation | None:
        """A derivation of "e is PSD", or None."""
        return self._once("psd", e, self._psd)

    def _psd(self, e: Expression) -> Derivation | None:
        form = linear(e)
        if not form.terms:
            return self._claim(e, "constant ≥ 0") if form.constant >= 0 else self._needs(e, "a constant ≥ 0")
        if form.constant == 0 and len(form.terms) == 1:
            return self._scaled(e, form.terms[0])
        return self._sum(e, form) or self._centred(e, form) or self._squares_opened(e)

    def _scaled(self, e: Expression, term: Term) -> Derivation | None:
        if term.coefficient < 0:
            return self._log_series(e, term)
        if term.coefficient == 1 and term.expression is e:
            return self._product(e)
        inner = self._product(term.expression)
        return inner and (
            inner if term.coefficient == 1 else self._claim(e, f"non-negative factor {term.coefficient:.6g}", inner)
        )

    def _sum(self, e: Expression, form: Linear) -> Derivation | None:
        """The convex cone: a sum of kernels with non-negative weights."""
        if form.constant < 0:
            return self._needs(e, f"a constant term ≥ 0, not {form.constant:.6g}")
        parts = [self.psd(coefficient * term) for coefficient, term in form.terms]
        if form.constant > 0:
            parts.append(self.psd(constant(form.constant)))
        return self._all(e, "sum", parts)

    def _centred(self, e: Expression, form: Linear) -> Derivation | None:
        """ψ(x, 0) + ψ(0, z) − ψ(x, z) − ψ(0, 0) is PSD exactly where ψ is CND (Berg et al. 1984, 3.2.1)."""
        for coefficient, psi in form.terms:
            if coefficient < 0 and _of_sqdist(psi) and (proof := self.cnd(psi)):
                to = {side: substitute(psi, _to_origin(side)) for side in ("self_x", "self_z")}
                at = substitute(psi, lambda leaf: constant(0.0))
                rest = linear(e - coefficient * (psi - to["self_x"] - to["self_z"] + at))
                rule = "ψ(x, 0) + ψ(0, z) − ψ(x, z) − ψ(0, 0) of a CND ψ"
                if not rest.terms and abs(rest.constant) < 1e-15:
                    return self._claim(e, rule, proof)
                if more := self.psd(rest.expression()):
                    return self._claim(e, f"sum; {rule}", proof, more)
        return None

    def _squares_opened(self, e: Expression) -> Derivation | None:
        """‖x − z‖² written out, where a sum has it with the wrong sign."""

        def opened(leaf: Expression) -> Expression:
            kind, views = leaf.value
            if leaf.op != "pairing" or kind != "sqdist":
                return leaf
            own = [Expression(op, (), ("dot", views)) for op in ("self_x", "self_z")]
            return own[0] + own[1] - 2 * Expression("pairing", (), ("dot", views))

        terms = linear(e).terms
        if not any(term.expression.op == "pairing" and term.expression.value[0] == "sqdist" for term in terms):
            return None
        flat = [c * (opened(t) if t.op == "pairing" else t) for c, t in terms]
        other = linear(reduce(node_add, flat, constant(linear(e).constant)))
        proof = self._sum(other.expression(), other)
        return proof and self._claim(e, "‖x − z‖² = ‖x‖² + ‖z‖² − 2⟨x, z⟩", proof)

    def _product(self, e: Expression) -> Derivation | None:
        """Schur's theorem for the factors, after f(x)f(z) has been taken out."""
        coefficient, factors = product(e, self.domain)
        if not 0 <= coefficient < math.inf:
            return self._needs(e, "a factor ≥ 0")
        parts: list[Derivation | None] = []
        one_sided = [factor for factor in factors if len(sides(factor.base)) == 1]
        if one_sided:
            parts.append(self._rank_one(one_sided))
        both = [factor for factor in factors if len(sides(factor.base)) == 2]
        parts += [self._power(factor) for factor in both]
        if len(parts) == 1 and coefficient == 1:
            return parts[0]
        return self._all(e, "product (Schur)" if len(parts) > 1 else "non-negative factor", parts)

    def _rank_one(self, factors: list[Factor]) -> Derivation | None:
        """f(x)f(z): the kernel of one feature."""
        halves = {side: [f for f in factors if sides(f.base) == {side}] for side in ("x", "z")}
        left, right = (sorted((key(mirrored(f, side)), f.power) for f in halves[side]) for side, mirrored in _MIRRORS)
        whole = reduce(node_mul, (_raised(f) for f in factors))
        if left != right:
            return self._needs(whole, "the same function of x and of z")
        return self._claim(whole, "f(x)f(z): one feature, as in a normalisation")

    def _power(self, factor: Factor) -> Derivation | None:
        base, power = factor
        if base.op == "maximum":
            return self._askey(base, power)
        if power >= 1 and power == int(power):
            inner = self._atom(base) if len(linear(base).terms) == 1 and linear(base).constant == 0 else self.psd(base)
            if power == 1 or not inner:
                return inner
            return self._claim(_raised(factor), f"power {int(power)} (Schur, repeated)", inner)
        return self._divisible(base, power)

    def _atom(self, e: Expression) -> Derivation | None:
        """What is no sum and no product."""
        if e.op == "pairing":
            return self._pairing(e)
        if e.op == "exp":
            return self._exponential(e)
        if e.op == "where":
            return self._indicator(e)
        if e.op == "cos" and self._is_difference(e.args[0]):
            return self._claim(e, "cos a(x − z) = cos ax cos az + sin ax sin az, in one column")
        return self._needs(e, f"a rule for {e.op}")

    def _pairing(self, e: Expression) -> Derivation | None:
        kind, _ = e.value
        if kind == "dot":
            return self._claim(e, "inner product: ‖Σ cᵢxᵢ‖² ≥ 0")
        if kind == "min_sum":
            rule = "overlap of the intervals [0, xᵢ] and [0, zᵢ]"
            return self._claim(e, rule) if self.domain.non_negative else self._needs(e, "non-negative rows")
        return self._needs(e, f"{pretty(e)} is a distance, no similarity")

    def _exponential(self, e: Expression) -> Derivation | None:
        (u,) = e.args
        if inner := self.psd(u):
            return self._claim(e, "power series Σ kⁿ/n!", inner)
        inner = self.cnd(-u)
        return inner and self._claim(e, "Schoenberg: exp(−ψ) of a CND ψ", inner)

    def _indicator(self, e: Expression) -> Derivation | None:
        """a where x = z, b elsewhere."""
        condition, a, b = e.args
        is_equality = condition.op == "less_equal" and condition.args[0].op == "pairing"
        of_distance = is_equality and condition.args[0].value[0] in _DISTANCES and condition.args[1] == constant(0.0)
        if of_distance and a.op == b.op == "const" and a.value >= b.value >= 0:
            return self._claim(e, "constant and diagonal: b + (a − b)·[x = z]")
        return self._needs(e, "a rule for this where")

    def _askey(self, e: Expression, power: float) -> Derivation | None:
        """(1 − c‖x − z‖)₊^p is PSD on ℝᵈ where p ≥ (d + 1)/2 (Askey 1973; Golubov 1981; Pólya for d = 1)."""
        if e.op != "maximum" or constant(0.0) not in e.args:
            return None
        (inside,) = [arg for arg in e.args if arg != constant(0.0)] or [constant(0.0)]
        form = linear(inside)
        falls = len(form.terms) == 1 and form.constant > 0 and form.terms[0].coefficient < 0
        if not falls or form.terms[0].expression.op != "sqrt" or not _of_sqdist(form.terms[0].expression.args[0]):
            return self._needs(e, "a rule for this maximum")
        if form.terms[0].expression.args[0].op != "pairing" or form.terms[0].expression.args[0].value[1]:
            return None
        if self.domain.d is None or power < (self.domain.d + 1) / 2:
            d = "every d" if self.domain.d is None else f"d = {self.domain.d}"
            return self._needs(e, f"a power ≥ (d + 1)/2 of it, for {d} columns; given {power:g}")
        return self._claim(_raised(Factor(e, power)), "Askey: (1 − c‖x − z‖)₊^p, p ≥ (d + 1)/2")

    def _is_difference(self, e: Expression) -> bool:
        """Whether e is a·|x − z| of rows with one column."""
        ((_, inner),) = terms if len(terms := linear(e).terms) == 1 and linear(e).constant == 0 else ((0.0, e),)
        return self.domain.d == 1 and inner.op == "sqrt" and inner.args[0].op == "pairing" and _of_sqdist(inner)

    def _log_series(self, e: Expression, term: Term) -> Derivation | None:
        """−log(c − k) = −log c + Σ (k/c)ⁿ/n, for a kernel k < c ≤ 1."""
        if term.expression.op != "log":
            return self._needs(e, f"a factor ≥ 0, not {term.coefficient:.6g}")
        form = linear(term.expression.args[0])
        if form.constant > 1 or not (inner := self._below(form)):
            return self._needs(e, "−log(c − k) with a kernel k < c ≤ 1")
        return self._claim(e, "power series −log(1 − k) = Σ kⁿ/n", inner)

    def _below(self, form: Linear) -> Derivation | None:
        """For c − k: k is PSD, and |k(x, z)| ≤ sup k(x, x) < c by Cauchy and Schwarz."""
        k = Linear(0.0, tuple(Term(-c, e) for c, e in form.terms)).expression()
        if form.constant <= 0 or not form.terms or not range_of(diagonal(k), self.domain)[1] < form.constant:
            return None
        return self.psd(k)

    # ---- every positive power ----------------------------------------------------------------------------------------

    def _divisible(self, base: Expression, power: float) -> Derivation | None:
        """base^power for a power that is no natural number."""
        e = _raised(Factor(base, power))
        if base.op == "exp":
            inner = self.cnd(-power * base.args[0])
            return inner and self._claim(e, "Schoenberg: exp(−ψ) of a CND ψ, any power", inner)
        if power > 0:
            return self._needs(e, f"a base whose every positive power is PSD, for the power {power:g}")
        if range_of(base, self.domain)[0] > 0 and (inner := self.cnd(base)):
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
        if not self._mirrored(alone):
            return self._needs(e, "the same function of x and of z", "CND")
        if not pairs:
            return self._claim(e, "f(x) + f(z), which vanishes where Σc = 0", to="CND")
        if len(pairs) == 1 and not alone and form.constant == 0:
            return self._cnd_single(e, pairs[0])
        parts = [self._cnd_part(term) for term in pairs]
        zero = ["constant"] * (form.constant != 0) + ["f(x) + f(z)"] * bool(alone)
        rule = f"up to {' and '.join(zero)}, which vanish{'es' * (len(zero) < 2)} where Σc = 0" if zero else "sum"
        return self._all(e, rule, parts, "CND")

    def _mirrored(self, alone: Iterable[Term]) -> bool:
        halves = {"x": [], "z": []}  # type: dict[str, list[tuple[str, float]]]
        for coefficient, e in alone:
            (side,) = sides(e)
            halves[side].append((key(e if side == "x" else mirror(e)), coefficient))
        return sorted(halves["x"]) == sorted(halves["z"])

    def _cnd_single(self, e: Expression, term: Term) -> Derivation | None:
        inner = self._cnd_part(term)
        if not inner or (term.coefficient == 1 and term.expression is e):
            return inner
        if term.coefficient < 0 or term.coefficient == 1:
            return inner
        return self._claim(e, "non-negative factor", inner, to="CND")

    def _cnd_part(self, term: Term) -> Derivation | None:
        if term.coefficient > 0:
            return self._cnd_atom(term.expression)
        if inner := self.psd(-term.coefficient * term.expression):
            return self._claim(term.coefficient * term.expression, "minus a PSD kernel", inner, to="CND")
        return None

    def _cnd_atom(self, e: Expression) -> Derivation | None:
        if e.op == "pairing":
            kind, _ = e.value
            if kind in _DISTANCES and (kind != "chi2" or self.domain.non_negative):
                return self._claim(e, _DISTANCES[kind], to="CND")
            return self._needs(e, "a distance", "CND")
        if e.op == "log":
            if range_of(e.args[0], self.domain)[0] > 0 and (inner := self.cnd(e.args[0])):
                return self._claim(e, "Bernstein function log of a positive CND", inner, to="CND")
            return self._needs(e, "the logarithm of a positive CND function", "CND")
        coefficient, factors = product(e, self.domain)
        if not 0 < coefficient < math.inf:
            return None
        if len(factors) == 1:
            return self._cnd_power(e, factors[0])
        return self._quotient(e, factors) if len(factors) == 2 else None

    def _cnd_power(self, e: Expression, factor: Factor) -> Derivation | None:
        base, power = factor
        if power == 2 and base.op == "sin" and self._is_difference(base.args[0]):
            return self._claim(e, "sin² a(x − z) = (1 − cos 2a(x − z))/2, in one column", to="CND")
        if not 0 < power < 1:
            return self._needs(e, f"an exponent from 0 to 1 of a CND function, not {power:g}", "CND")
        if range_of(base, self.domain)[0] < 0:
            return self._needs(e, "a non-negative base", "CND")
        inner = self.cnd(base)
        return inner and self._claim(e, f"Bernstein function ψ^{power:g}, 0 < {power:g} ≤ 1", inner, to="CND")

    def _quotient(self, e: Expression, factors: list[Factor]) -> Derivation | None:
        """ψ/(ψ + c) = 1 − c/(ψ + c)."""
        above, below = sorted(factors, key=lambda factor: -factor.power)
        difference = linear(below.base - above.base)
        if (above.power, below.power) != (1, -1) or difference.terms or difference.constant <= 0:
            return None
        inner = self.cnd(above.base) if range_of(above.base, self.domain)[0] >= 0 else None
        return inner and self._claim(e, "Bernstein function ψ/(ψ + c)", inner, to="CND")

    # ---- bookkeeping -------------------------------------------------------------------------------------------------

    def _once(self, what: str, e: Expression, derive: Callable[[Expression], Derivation | None]) -> Derivation | None:
        """Each question is answered once; one that comes back to itself has no answer on that way."""
        name = (what, key(e))
        if name not in self._known:
            self._known[name] = _BUSY
            form = linear(e)
            finite = all(map(math.isfinite, (form.constant, *(term.coefficient for term in form.terms))))
            self._known[name] = derive(e) if finite else None
        found = self._known[name]
        return found if isinstance(found, Derivation) else None

    def _claim(self, e: Expression, rule: str, *premises: Derivation, to: str = "PSD") -> Derivation:
        return Derivation(f"{pretty(e)} is {to}", rule, premises)

    def _all(self, e: Expression, rule: str, parts: list[Derivation | None], to: str = "PSD") -> Derivation | None:
        proved = [part for part in parts if part]
        return self._claim(e, rule, *proved, to=to) if len(proved) == len(parts) else None

    def _needs(self, e: Expression, what: str, to: str = "PSD") -> Derivation | None:
        self.obstacles[f"{pretty(e)}: for it to be {to} the rules need {what}"] = None
        return None


def node_mul(a: Expression, b: Expression) -> Expression:
    """a · b."""
    return node("mul", a, b)


def node_add(a: Expression, b: Expression) -> Expression:
    """a + b."""
    return node("add", a, b)


def _raised(factor: Factor) -> Expression:
    if factor.power == 1:
        return factor.base
    if factor.power == 0.5:
        return node("sqrt", factor.base)
    return node("div", 1.0, factor.base) if factor.power == -1 else factor.base**factor.power


_MIRRORS: tuple[tuple[str, Callable[[Factor, str], Expression]], ...] = (
    ("x", lambda factor, side: factor.base),
    ("z", lambda factor, side: mirror(factor.base)),
)


def _of_sqdist(e: Expression) -> bool:
    """Whether ‖x − z‖² is all that an expression depends on."""
    if e.op in ("pairing", "self_x", "self_z"):
        return bool(e.op == "pairing" and e.value[0] == "sqdist")
    return e.op == "const" or all(map(_of_sqdist, e.args))


def _to_origin(side: str) -> Callable[[Expression], Expression]:
    return lambda leaf: Expression(side, (), ("dot", leaf.value[1]))
