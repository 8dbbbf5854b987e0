"""Hypothesis tests by means in feature space, and small samples with nearly the same mean."""

from mercer.hypotheses.herding import Herd, herd
from mercer.hypotheses.independence import hsic_test
from mercer.hypotheses.permutations import TestResult
from mercer.hypotheses.thinning import thin
from mercer.hypotheses.two_sample import mmd_test

__all__ = ["Herd", "TestResult", "herd", "hsic_test", "mmd_test", "thin"]


def __dir__() -> list[str]:
    return sorted(__all__)
