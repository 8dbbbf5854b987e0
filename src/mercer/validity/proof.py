"""Proofs for kernels: by their composition, by their formula, or by what their class declares."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.kernels import (
    AdditiveChi2,
    Constant,
    Expression,
    Kernel,
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
from mercer.validity.derivation import Derivation
from mercer.validity.ranges import Domain
from mercer.validity.rules import Prover

__all__ = ["Proof", "prove"]

_THEOREMS: dict[type[Kernel], str] = {
    Matern: "Bochner: its spectral density is positive (Rasmussen & Williams 2006, 4.15)",
    AdditiveChi2: "2xz/(x + z) = 2xz ∫ exp(−t(x + z)) dt (Vedaldi & Zisserman 2012)",
    Constant: "constant ≥ 0",
}


@dataclass(frozen=True)
class Proof:
    """What the rules make of a kernel.

    Attributes
    ----------
    psd : Derivation or None
        Of its positive semi-definiteness.
    conditional : Derivation or None
        Of conditional positive definiteness, where `psd` has none.
    declared : bool
        Whether the derivation rests on what a class outside mercer says of itself.
    obstacles : tuple of str
        Where the rules came to an end, and what they would have needed.
    """

    psd: Derivation | None
    conditional: Derivation | None
    declared: bool
    obstacles: tuple[str, ...]


def prove(kernel: Kernel, domain: Domain | None = None) -> Proof:
    """A derivation of positive semi-definiteness, or what stood in its way.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> print(prove(Gaussian(gamma=1.0) * Linear()).psd)
    Gaussian(gamma=1.0) * Linear() is PSD  [product (Schur)]
    ├─ exp(−‖x − z‖²) is PSD  [Schoenberg: exp(−ψ) of a CND ψ]
    │  └─ ‖x − z‖² is CND  [squared Euclidean distance: ‖x‖² + ‖z‖² − 2⟨x, z⟩]
    └─ ⟨x, z⟩ is PSD  [inner product: ‖Σ cᵢxᵢ‖² ≥ 0]
    """
    of = _Composition(Prover(domain or Domain()))
    psd = of.kernel(kernel)
    conditional = None
    e = trace_or_none(kernel)
    if psd is None and e is not None:
        conditional = of.prover.cnd(-e)
    return Proof(psd, conditional, of.declared, tuple(of.prover.obstacles))


class _Composition:
    """Walks the algebra of kernels; formulas go to the prover."""

    def __init__(self, prover: Prover) -> None:
        self.prover, self.declared = prover, False

    def kernel(self, kernel: Kernel) -> Derivation | None:
        return self._composed(kernel) or self._formula(kernel) or self._stated(kernel)

    def _formula(self, kernel: Kernel) -> Derivation | None:
        e: Expression | None = trace_or_none(kernel)
        return None if e is None else self.prover.psd(e)

    def _composed(self, kernel: Kernel) -> Derivation | None:
        match kernel:
            case Sum(left=left, right=right):
                return self._of(kernel, "sum", left, right)
            case Product(left=left, right=right):
                return self._of(kernel, "product (Schur)", left, right)
            case Scaled(kernel=inner, scale=scale):
                return self._of(kernel, f"non-negative factor {scale:g}", inner)
            case Power(kernel=inner, exponent=exponent):
                if exponent == int(exponent):
                    return self._of(kernel, f"power {int(exponent)} (Schur, repeated)", inner)
            case Normalized(kernel=inner):
                return self._of(kernel, "normalisation: k(x, z)f(x)f(z), f(x) = 1/√k(x, x)", inner)
            case TableKernel(vector_kernel=inner):
                return self._of(kernel, "a kernel of a map of the rows (pull-back)", inner)
            case OnColumns(kernel=inner):
                return self._of(kernel, "columns: a kernel of a map of the rows (pull-back)", inner)
            case Rescaled(kernel=inner):
                return self._of(kernel, "length-scales: a kernel of a map of the rows (pull-back)", inner)
        return None

    def _of(self, kernel: Kernel, rule: str, *inner: Kernel) -> Derivation | None:
        proofs = [self.kernel(one) for one in inner]
        if not all(proofs):
            return None
        return Derivation(f"{kernel!r} is PSD", rule, tuple(proof for proof in proofs if proof))

    def _stated(self, kernel: Kernel) -> Derivation | None:
        """What a class says of itself: a theorem for ours, a promise for others."""
        properties = kernel.properties
        if not properties.definiteness.is_mercer:
            return None
        who = type(kernel)
        if isinstance(kernel, Power):
            return Derivation(f"{kernel!r} is PSD", "infinitely divisible: every positive power is PSD")
        ours = who.__module__.startswith("mercer.")
        if not ours:
            self.declared = True
        theorem = _THEOREMS.get(who) or (
            "see the references of its class" if ours else "declared by its class, not derived here"
        )
        strict = "PD" if properties.definiteness is Definiteness.POSITIVE_DEFINITE else "PSD"
        return Derivation(f"{kernel!r} is {strict}", theorem)
