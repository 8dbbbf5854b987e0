"""Decides whether a function is a Mercer kernel: proofs by closure rules, spectra, witnesses, and repair."""

from mercer.validity.arithmetic.ranges import Domain
from mercer.validity.check import check_kernel
from mercer.validity.proofs.derivation import Derivation
from mercer.validity.proofs.proof import Proof, prove
from mercer.validity.repair import RepairedKernel, SpectralRepair, repair_kernel
from mercer.validity.report import KernelReport
from mercer.validity.spectrum import Spectrum, spectrum_of
from mercer.validity.witnesses.witness import Gap, Witness

__all__ = [
    "Derivation",
    "Domain",
    "Gap",
    "KernelReport",
    "Proof",
    "RepairedKernel",
    "SpectralRepair",
    "Spectrum",
    "Witness",
    "check_kernel",
    "prove",
    "repair_kernel",
    "spectrum_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
