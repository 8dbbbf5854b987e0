"""Proofs for kernels: by their composition, by their formula, or by what their class declares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any

from mercer.kernels import (
    AdditiveChi2,
    Columns,
    Constant,
    Expression,
    Kernel,
    LengthScales,
    Matern,
    Normalized,
    OnColumns,
    Power,
    Product,
    Rescaled,
    Scaled,
    Sum,
    TableKernel,
)  # fmt: skip
from mercer.kernels.base import trace_or_none
from mercer.kernels.properties import Definiteness
from mercer.validity.arithmetic.exact import exactly, is_known, leaves, scaled, size
from mercer.validity.arithmetic.ranges import Domain
from mercer.validity.proofs.derivation import Derivation
from mercer.validity.proofs.rules import Prover
from mercer.validity.rows import domain_of, refused

__all__ = ["Proof", "prove"]

_THEOREMS: dict[type[Kernel], str] = {
    Matern: "Bochner: its spectral density is positive (Rasmussen & Williams 2006, 4.15)",
    AdditiveChi2: "2xz/(x + z) = 2xz ∫ exp(−t(x + z)) dt (Vedaldi & Zisserman 2012)",
    Constant: "constant ≥ 0",
}


@dataclass(frozen=True)
class Proof:
    """The result of the closure rules for a kernel.

    Attributes
    ----------
    psd : Derivation or None
        The proof of positive semi-definiteness.
    conditional : Derivation or None
        The proof of conditional positive definiteness, searched if there is no `psd`.
    obstacles : tuple of str
        The conditions that the rules would have needed.
    """

    psd: Derivation | None
    conditional: Derivation | None
    obstacles: tuple[str, ...]

    @property
    def declared(self) -> bool:
        """Whether the derivation relies on a declaration of a class outside mercer."""
        return self.psd is not None and self.psd.rests_on_declaration


def prove(kernel: Kernel, domain: Domain | None = None) -> Proof:
    """Search for a derivation of positive semi-definiteness.

    Parameters
    ----------
    kernel : Kernel
    domain : Domain, optional
        The rows to consider; by default all rows that the kernel accepts.

    Returns
    -------
    Proof

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> print(prove(Gaussian(gamma=1.0) * Linear()).psd)
    Gaussian(gamma=1.0) * Linear() is PSD  [product (Schur)]
    ├─ exp(−‖x − z‖²) is PSD  [Schoenberg: exp(−ψ) of a CND ψ]
    │  └─ ‖x − z‖² is CND  [squared Euclidean distance: ‖x‖² + ‖z‖² − 2⟨x, z⟩]
    └─ ⟨x, z⟩ is PSD  [inner product: ‖Σ cᵢxᵢ‖² ≥ 0]
    """
    domain = domain or domain_of(kernel, None, None, None, None)
    of = _Composition()
    psd = of.kernel(kernel, domain)
    conditional = None if psd else of.formula(kernel, domain, minus=True)
    return Proof(psd, conditional, tuple(of.obstacles))


class _Composition:
    """Follows the algebra of kernels, and passes formulas to the prover for the rows that they see."""

    def __init__(self) -> None:
        self.obstacles: dict[str, None] = {}
        self._provers: dict[Domain, Prover] = {}

    def kernel(self, kernel: Kernel, domain: Domain) -> Derivation | None:
        return self._composed(kernel, domain) or self.formula(kernel, domain) or self._stated(kernel, domain)

    def formula(self, kernel: Kernel, domain: Domain, minus: bool = False) -> Derivation | None:
        """A proof that the formula is PSD, or that its negative is CND."""
        e = trace_or_none(kernel, exact=True)
        if e is None:
            return None
        if not (found := size(e)).is_small:
            large = f"a formula of {found.written} nodes, {found.depth} deep, is too large for the rules"
            self.obstacles[f"not decided: {large}"] = None
            return None
        proof = self._by_rules(e, domain, minus)
        if proof is None or all(is_known(view) for leaf in leaves(e) for view in leaf.value[1]):
            return proof
        rule = "a view outside mercer, taken at its word that it is a map of each row"
        return Derivation(proof.claim, rule, (proof,), declared=True)

    def _by_rules(self, e: Expression, domain: Domain, minus: bool) -> Derivation | None:
        prover = self._provers.setdefault(domain, Prover(domain))
        prover.obstacles = self.obstacles
        exact = exactly(e)
        if exact is None:
            self.obstacles["the formula has a number that is not finite"] = None
            return None
        try:
            return prover.cnd(scaled(Fraction(-1), exact)) if minus else prover.psd(exact)
        except RecursionError:
            self.obstacles["not decided: the formula is nested too deeply for the rules"] = None
            return None

    def _composed(self, kernel: Kernel, domain: Domain) -> Derivation | None:
        # A user's subclass of one of these may compute something else.
        if not _is_ours(kernel):
            return None
        match kernel:
            case Sum(left=left, right=right):
                return self._of(kernel, "sum", domain, left, right)
            case Product(left=left, right=right):
                return self._of(kernel, "product (Schur)", domain, left, right)
            case Scaled(kernel=inner, scale=scale) if 0 <= scale < math.inf:
                return self._of(kernel, f"non-negative factor {scale:g}", domain, inner)
            case Power(kernel=inner, exponent=exponent) if exponent >= 1 and exponent == int(exponent):
                return self._of(kernel, f"power {int(exponent)} (Schur, repeated)", domain, inner)
            case Normalized(kernel=inner):
                return self._of(kernel, "normalisation: k(x, z)f(x)f(z), f(x) = 1/√k(x, x)", domain, inner)
            case TableKernel(vector_kernel=inner):
                seen = Domain(d=len(kernel.features))
                return self._of(kernel, "a kernel of a map of the rows (pull-back)", seen, inner)
            case OnColumns(kernel=inner, columns=columns):
                seen = domain.seen([Columns(columns)])
                return self._of(kernel, "columns: a kernel of a map of the rows (pull-back)", seen, inner)
            case Rescaled(kernel=inner, scales=scales):
                seen = domain.seen([LengthScales(scales)])
                return self._of(kernel, "length-scales: a kernel of a map of the rows (pull-back)", seen, inner)
        return None

    def _of(self, kernel: Kernel, rule: str, domain: Domain, *inner: Kernel) -> Derivation | None:
        proofs = [self.kernel(one, domain) for one in inner]
        if not all(proofs):
            return None
        return Derivation(f"{kernel!r} is PSD", rule, tuple(proof for proof in proofs if proof))

    def _stated(self, kernel: Kernel, domain: Domain) -> Derivation | None:
        """A proof from the declaration of a class: a theorem for mercer's classes, only a declaration for others."""
        properties = kernel.properties
        if not properties.definiteness.is_mercer:
            return None
        if kernel.space.vectors and not _takes(kernel, domain):
            self.obstacles[f"{kernel!r}: what its class states is about non-negative rows"] = None
            return None
        strict = "PD" if properties.definiteness is Definiteness.POSITIVE_DEFINITE else "PSD"
        ours = all(map(_is_ours, _within(kernel)))
        if not ours:
            theorem = "declared by its class, not derived here"
        elif isinstance(kernel, Power):
            theorem = "infinitely divisible: every positive power is PSD"
        else:
            theorem = _THEOREMS.get(type(kernel), "see the references of its class")
        return Derivation(f"{kernel!r} is {strict}", theorem, declared=not ours)


def _takes(kernel: Kernel, domain: Domain) -> bool:
    """Whether the kernel accepts the signs of all rows of the domain."""
    columns = refused(kernel, domain.d)
    return domain.is_non_negative if columns is True else all(map(domain.holds, columns or ()))


def _is_ours(kernel: Kernel) -> bool:
    return type(kernel).__module__.startswith("mercer.")


def _within(value: Any) -> Iterator[Kernel]:
    """A kernel and all kernels that it contains."""
    if isinstance(value, Kernel):
        yield value
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from _within(one)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _within(getattr(value, field.name, None))
