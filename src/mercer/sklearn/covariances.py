"""Kernels of scikit-learn's Gaussian processes as ours, and which of our parameters each of its parameters is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels

from mercer.errors import InvalidInput, NotAKernel, message
from mercer.gram import KernelOperator
from mercer.kernels import Constant, Gaussian, Kernel, Linear, Matern, Periodic, Power, RationalQuadratic, Scaled
from mercer.kernels.derivatives import positive_parameters, with_parameters
from mercer.select.covariance import NOISE, Covariance

__all__ = ["Translated", "translated"]

Floats = NDArray[np.float64]
Slots = tuple[tuple[str, float], ...]
"""For each entry of scikit-learn's θ the name of our parameter p and the power a of p ∝ exp(a θ); of the noise σ² the
part exp(θ)."""


@dataclass(frozen=True, eq=False)
class Translated:
    """A kernel of scikit-learn: k(x, z) + σ² if x and z are the same row of one matrix.

    Parameters
    ----------
    kernel : Kernel
    noise : float
        σ², of white kernels.
    slots : tuple of (str, float)
    """

    kernel: Kernel
    noise: float
    slots: Slots

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        """The matrix, as scikit-learn's kernels give it."""
        K = np.asarray(self.operator(X, Y).toarray())
        if Y is None:
            np.einsum("ii->i", K)[...] += self.noise
        return K

    def diag(self, X: Any) -> Floats:
        """The diagonal of the matrix of some rows."""
        return np.asarray(self.operator(X).diagonal(), np.float64) + self.noise

    def operator(self, X: Any, Y: Any = None) -> KernelOperator:
        """The matrix of k, with entries in float64."""
        return KernelOperator(self.kernel, *(_rows(one) for one in (X, Y) if one is not None), dtype=np.float64)

    def covariance(self, X: Any) -> Covariance:
        """The matrix on some rows and its derivatives, in those of our parameters that vary there."""
        names = dict.fromkeys(name for name, _ in self.slots if name != NOISE)
        return Covariance(self.kernel, tuple(names), _rows(X))

    def at(self, names: tuple[str, ...], values: Floats) -> Translated:
        """The same with other values of these parameters of ours."""
        return replace(self, kernel=with_parameters(self.kernel, dict(zip(names, values.tolist(), strict=True))))

    def moved(self, names: tuple[str, ...], move: Floats) -> tuple[Floats, list[tuple[str, float]]]:
        """The values of our parameters where scikit-learn's θ is further by `move`, and the name and power of each."""
        values, powers = positive_parameters(self.kernel), []
        noise = self.noise - sum(level for name, level in self.slots if name == NOISE)  # what is fixed
        for (name, power), step in zip(self.slots, move.tolist(), strict=True):
            if name == NOISE:
                power *= math.exp(step)
                noise += power
            else:
                values[name] *= math.exp(power * step)
            powers.append((name, power))
        values[NOISE] = noise
        powers = [(name, power / noise if name == NOISE else power) for name, power in powers]
        return np.array([values[name] for name in names]), powers


def _rows(X: Any) -> Floats:
    return np.ascontiguousarray(X, np.float64)


def translated(theirs: Any, columns: int) -> Translated:
    """A kernel of scikit-learn for rows with this many columns.

    Raises
    ------
    InvalidInput
        If ours do not cover it.

    Examples
    --------
    >>> found = translated(kernels.ConstantKernel(2.0) * kernels.RBF(1.0) + kernels.WhiteKernel(0.1), columns=1)
    >>> found.kernel, found.noise, found.slots
    (2.0 * Gaussian(gamma=0.5), 0.1, (('scale', 1.0), ('kernel__gamma', -2.0), ('noise', 0.1)))
    """
    try:
        kernel, noise, slots = _parts(theirs, columns)
    except NotAKernel as error:  # a power, or a constant below 0
        raise InvalidInput(str(error)) from error
    except ArithmeticError as error:
        raise _uncovered(theirs, "of which a parameter, or its square, is beyond float64") from error
    if kernel is None:
        raise _uncovered(theirs, "which is noise alone")
    known = {**positive_parameters(kernel), NOISE: noise}
    if not all(known.get(name) for name, _ in slots):
        raise _uncovered(theirs, "of which a parameter is 0")
    return Translated(kernel, noise, slots)


def _parts(theirs: Any, columns: int) -> tuple[Kernel | None, float, Slots]:
    """A kernel, the variance of its noise, and its slots."""
    kind = type(theirs)
    if kind is kernels.WhiteKernel:
        level = float(theirs.noise_level)
        return None, level, () if theirs.hyperparameter_noise_level.fixed else ((NOISE, level),)
    if kind is kernels.Exponentiation:
        kernel, slots = _smooth(theirs.kernel, columns)
        return Power(kernel, float(theirs.exponent)), 0.0, _below("kernel__", slots)
    if kind is kernels.Product:
        kernel, slots = _product(_smooth(theirs.k1, columns), _smooth(theirs.k2, columns))
        return kernel, 0.0, slots
    if kind is kernels.Sum:
        (left, noise, first), (right, more, second) = (_parts(one, columns) for one in (theirs.k1, theirs.k2))
        if left is None or right is None:
            return left or right, noise + more, first + second
        return left + right, noise + more, _below("left__", first) + _below("right__", second)
    if kind not in _LEAVES:
        raise _uncovered(theirs, "which is scikit-learn's own")
    if kind is kernels.ExpSineSquared and columns > 1:
        raise _uncovered(theirs, f"which is not a kernel on {columns} columns")
    kernel, slots = _leaf(theirs)
    return kernel, 0.0, slots


def _smooth(theirs: Any, columns: int) -> tuple[Kernel, Slots]:
    """A kernel without noise."""
    kernel, noise, slots = _parts(theirs, columns)
    if kernel is None or noise:
        raise _uncovered(theirs, "which is noise in a product or a power")
    return kernel, slots


def _leaf(theirs: Any) -> tuple[Kernel, Slots]:
    kernel, names = _LEAVES[type(theirs)](theirs)
    slots: Slots = ()
    for one in theirs.hyperparameters:
        if not one.fixed:
            each = tuple((f"scales[{j}]", 1.0) for j in range(one.n_elements))
            slots += each if one.n_elements > 1 else (names[one.name],)
    return kernel, slots


def _product(one: tuple[Kernel, Slots], other: tuple[Kernel, Slots]) -> tuple[Kernel, Slots]:
    (left, first), (right, second) = one, other
    if isinstance(left, Constant):
        return Scaled(left.value, right), tuple(("scale", a) for _, a in first) + _below("kernel__", second)
    if isinstance(right, Constant):
        return Scaled(right.value, left), _below("kernel__", first) + tuple(("scale", a) for _, a in second)
    return left * right, _below("left__", first) + _below("right__", second)


def _below(prefix: str, slots: Slots) -> Slots:
    return tuple((name if name == NOISE else prefix + name, power) for name, power in slots)


def _uncovered(theirs: Any, why: str) -> InvalidInput:
    return InvalidInput(
        message("translated", f"{type(theirs).__name__}, {why}", "combine kernels that both libraries have")
    )


def _scaled(theirs: Any, own: Callable[[float], Kernel], name: str, power: float) -> tuple[Kernel, dict[str, Any]]:
    """A kernel of one length-scale, or of one for each column."""
    if theirs.anisotropic:
        return own(1.0).with_length_scales(np.asarray(theirs.length_scale).tolist()), {"length_scale": ("", 1.0)}
    return own(float(np.squeeze(theirs.length_scale))), {"length_scale": (name, power)}


def _gamma(length_scale: float) -> float:
    return 0.5 / float(length_scale) ** 2


_LEAVES: dict[type, Callable[[Any], tuple[Kernel, dict[str, tuple[str, float]]]]] = {
    kernels.ConstantKernel: lambda k: (Constant(float(k.constant_value)), {"constant_value": ("value", 1.0)}),
    kernels.RBF: lambda k: _scaled(k, lambda length: Gaussian(_gamma(length)), "gamma", -2.0),
    kernels.Matern: lambda k: _scaled(k, lambda length: Matern(k.nu, length), "length_scale", 1.0),
    kernels.RationalQuadratic: lambda k: (
        RationalQuadratic(float(k.alpha), _gamma(k.length_scale)),
        {"alpha": ("alpha", 1.0), "length_scale": ("gamma", -2.0)},
    ),
    kernels.ExpSineSquared: lambda k: (
        Periodic(float(k.periodicity), float(k.length_scale)),
        {"length_scale": ("length_scale", 1.0), "periodicity": ("period", 1.0)},
    ),
    kernels.DotProduct: lambda k: (Linear() + Constant(float(k.sigma_0) ** 2), {"sigma_0": ("right__value", 2.0)}),
}
"""Our kernel of each of scikit-learn's, and our name and power of each of its parameters."""
