"""The report of check_kernel: verdict, proof, witness and evidence."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mercer.errors import NotAKernel, message
from mercer.kernels import Kernel
from mercer.validity.proofs.derivation import Derivation
from mercer.validity.spectrum import Spectrum
from mercer.validity.witnesses.witness import Gap, Witness

__all__ = ["KernelReport"]

_VERDICTS = {
    "proved": "a Mercer kernel: proved",
    "declared": "a Mercer kernel as its class declares, without a proof here; no witness was found",
    "measured": "positive semi-definite to rounding: all eigenvalues of this matrix were computed",
    "refuted": "not a Mercer kernel: refuted by a witness",
    "undefined": "not defined everywhere: the formula has no value at some points; no witness was found elsewhere",
    "supported": "undecided: neither a proof by the rules nor a witness was found",
}


@dataclass(frozen=True)
class KernelReport:
    """The result of ``check_kernel``: proof, evidence or refutation. ``print`` it to read it.

    Attributes
    ----------
    kernel : Kernel
        The kernel with all parameters resolved to numbers.
    domain : str
        The rows that the answer is about.
    verdict : {"proved", "declared", "measured", "refuted", "undefined", "supported"}
        "declared" relies on the class of the kernel; "measured" is about a given matrix only; "undefined" means that
        the formula has no value at `gap`, and is neither proved nor refuted elsewhere; "supported" means that neither a
        proof nor a witness was found.
    derivation : Derivation or None
        The proof, a tree of closure rules.
    witness : Witness or None
        The refutation.
    gap : Gap or None
        Points at which the formula has no value, such as 0/0 or the logarithm of a negative number. A proof or a
        witness is about points where it has values.
    conditional : Derivation or None
        The proof of conditional positive definiteness (Σ cᵢ = 0) of a function that is not a Mercer kernel.
    spectrum : Spectrum or None
        The spectrum of the kernel matrix of X.
    sets : int
        Number of point sets that were searched.
    worst : float
        The most negative λmin/λmax on these sets.
    smallest_diagonal, largest_cosine : float
        min k(x, x) and max|k(x, z)|/√(k(x, x)k(z, z)) on these sets.
    conditional_worst : float
        The most negative λmin/λmax of the centred matrices.
    ranges : tuple of str
        The parameters for which the family is known to be a kernel.
    obstacles : tuple of str
        The conditions that a proof would have needed.
    notes : tuple of str
    by_parameters : tuple of (dict, str)
        The verdict for each choice of the parameters in `vary`, or "refused: " and the reason.
    """

    kernel: Kernel
    domain: str
    verdict: str
    derivation: Derivation | None = None
    witness: Witness | None = None
    gap: Gap | None = None
    conditional: Derivation | None = None
    spectrum: Spectrum | None = None
    sets: int = 0
    worst: float = 0.0
    smallest_diagonal: float = float("nan")
    largest_cosine: float = float("nan")
    conditional_worst: float = 0.0
    ranges: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    by_parameters: tuple[tuple[dict[str, Any], str], ...] = field(default=())

    @property
    def is_mercer(self) -> bool | None:
        """True if proved, declared or measured; False if refuted; None otherwise."""
        return {"proved": True, "declared": True, "measured": True, "refuted": False}.get(self.verdict)

    def require(self) -> KernelReport:
        """The report itself; raises NotAKernel, with the witness, if the function is refuted.

        >>> import mercer
        >>> mercer.check_kernel("gaussian(gamma=1.0)").require().verdict
        'proved'
        """
        if self.witness is not None:
            given = f"{self.kernel!r} is not a Mercer kernel. {self.witness}"
            advice = "choose another kernel, or mercer.repair_kernel(k, X, policy='clip')"
            raise NotAKernel(message("check_kernel", given, advice))
        return self

    def lines(self) -> Iterator[tuple[str, str]]:
        """(label, text) in reading order; a text may have several lines."""
        yield "verdict", _VERDICTS[self.verdict]
        yield "on", self.domain
        if self.derivation is not None and self.witness is None:
            yield "proof", str(self.derivation)
        if self.witness is not None:
            yield "witness", str(self.witness)
        if self.verdict == "undefined" and self.gap is not None:
            yield "undefined", f"{self.gap}\n{self.gap.advice}"
        if self.is_mercer is not True:
            yield "conditional", self._conditional()
        if self.sets:
            yield "searched", self._searched()
        if self.spectrum is not None:
            yield "on X", self._on_rows(self.spectrum)
        yield from (("range", one) for one in self.ranges)
        if self.derivation is None:
            yield from (("no proof", one) for one in self.obstacles[:3])
        yield from (("note", note) for note in self.notes)
        for params, verdict in self.by_parameters:
            yield "varied", f"{', '.join(f'{name}={value!r}' for name, value in params.items())}: {verdict}"

    def _conditional(self) -> str:
        if self.conditional is not None:
            claim = "conditionally positive definite (a kernel after centring), because its negative is CND:"
            return f"{claim}\n{self.conditional}"
        seen = min(self.conditional_worst, self.spectrum.conditional or 0.0 if self.spectrum else 0.0)
        if seen < -1e-9:
            return f"not conditionally positive definite either: λmin/λmax = {seen:.1e} of centred matrices"
        return "no centred matrix was negative: it may be conditionally positive definite"

    def _searched(self) -> str:
        text = f"{self.sets} point sets, λmin/λmax from {self.worst:.1e}, k(x, x) from {self.smallest_diagonal:.3g}"
        return f"{text}, |cos| to {self.largest_cosine:.6g}"

    @staticmethod
    def _on_rows(s: Spectrum) -> str:
        how = "all eigenvalues" if s.rank is not None else f"block Krylov, to {s.resolution:.0e} of λmax"
        state = "indefinite" if s.is_indefinite else "PSD to rounding"
        rank = "" if s.rank is None else f", rank {s.rank}"
        condition = "singular to rounding" if s.condition == float("inf") else f"condition {s.condition:.1e}"
        spread = "" if s.is_indefinite else f"; {condition}, effective rank {s.effective_rank:.1f}{rank}"
        return (
            f"{state}: n = {s.n}, {s.dtype}, λ from {s.smallest:.3g} to {s.largest:.3g} ({how}), λmin/λmax = "
            f"{s.ratio:.1e} against rounding of {s.threshold:.0e}{spread}"
        )

    def __str__(self) -> str:
        shown = [repr(self.kernel)]
        for label, text in self.lines():
            first, *rest = text.splitlines()
            shown.append(f"  {label:<12}{first}")
            shown += [f"  {'':<12}{line}" for line in rest]
        return "\n".join(shown)

    def _repr_html_(self) -> str:
        cells = ((html.escape(label), html.escape(text)) for label, text in self.lines())
        rows = "".join(f"<tr><th>{label}</th><td><pre>{text}</pre></td></tr>" for label, text in cells)
        return f"<table><caption>{html.escape(repr(self.kernel))}</caption>{rows}</table>"
