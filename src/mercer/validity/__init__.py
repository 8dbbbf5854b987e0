"""Is it a Mercer kernel? Proofs by closure rules, spectra, witnesses, and repair."""

from mercer.validity.check import check_kernel
from mercer.validity.derivation import Derivation
from mercer.validity.proof import Proof, prove
from mercer.validity.ranges import Domain
from mercer.validity.repair import RepairedKernel, SpectralRepair, repair_kernel
from mercer.validity.report import KernelReport
from mercer.validity.spectrum import Spectrum, spectrum_of
from mercer.validity.witness import Gap, Witness

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
