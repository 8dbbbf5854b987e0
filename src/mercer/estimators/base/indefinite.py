"""Kernels without a meaning in a fit: warnings if they are not proved definite, errors if values are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import IndefiniteKernelWarning, InvalidInput, message, warn
from mercer.gram import KernelOperator
from mercer.ways.report import Report

__all__ = ["known_values", "not_finite", "warn_if_indefinite"]


def warn_if_indefinite(K: KernelOperator, who: str, meaning: str, report: Report) -> None:
    """Look for a proof or a witness if the kernel does not declare that it is definite; warn with the witness.

    `meaning` says in the warning what the method computes for an indefinite kernel.
    """
    if K.kernel.properties.definiteness.is_mercer or K.shape[0] != K.shape[1]:
        return
    from mercer.validity.brief import brief_check  # proofs and witnesses, which few fits need

    found = brief_check(K)
    if found.verdict == "proved":
        report.definiteness = "positive semidefinite, proved from its formula"
        return
    report.notes.append("the kernel is not proved positive semi-definite; the method may have no meaning for it")
    if found.verdict == "undefined":
        report.notes += [f"{found.gap}; {found.gap.advice}"] if found.gap else []
    if found.witness is None:
        report.notes.append(f"no witness against the kernel was found on {found.domain}")
        return
    report.definiteness = "indefinite"
    given = f"{K.kernel!r} is not a Mercer kernel: {found.witness.line}"
    advice = f"{meaning}; see mercer.check_kernel, or repair it: kernel=mercer.RepairedKernel(kernel, 'clip')"
    report.warnings.append(message(who, given, advice))
    warn(report.warnings[-1], IndefiniteKernelWarning)


def not_finite(K: KernelOperator, who: str, otherwise: str, numbers: NDArray[np.integer] | None = None) -> InvalidInput:
    """The error for kernel values that are not finite: the row where the formula has no value, or else `otherwise`.

    `numbers` are those of K's rows in the data as given.
    """
    from mercer.validity.brief import gap_on

    if found := gap_on(K):
        row, gap = found
        row = row if numbers is None else int(numbers[row])
        given = f"{K.kernel!r} has no value ({gap.why}) at row {row}"
        return InvalidInput(message(who, given, gap.advice))
    where = f"row {numbers[0]}" if numbers is not None and len(numbers) == 1 else "these rows"
    return InvalidInput(message(who, f"{K.kernel!r} has values that are not finite on {where}", otherwise))


def known_values(values: NDArray[Any], K: KernelOperator, who: str, first: int = 0) -> NDArray[Any]:
    """What was computed with K's rows from the `first` on; refused if it is not finite, with the row and the reason."""
    if not values.size or (np.isfinite(values.max()) and np.isfinite(values.min())):  # which are NaN if a value is
        return values
    row = first + np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))[:1]
    own = K if K.kernel.space.numbered else KernelOperator(K.kernel, K.x.take(row).rows, dtype=K.dtype)
    raise not_finite(own, who, "standardise the columns, as those of the training rows, or lower the degree", row)
