"""Kernels of the distance between two rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln, kve

from mercer.errors import InvalidInput, message
from mercer.kernels.base import Kernel
from mercer.kernels.parameters import checks
from mercer.kernels.properties import Definiteness, Properties
from mercer.kernels.symbolic.expression import Expression
from mercer.kernels.symbolic.functions import exp, minimum, sqrt
from mercer.kernels.symbolic.views import Circle
from mercer.points import is_torch

__all__ = ["Cauchy", "Gaussian", "Laplace", "Matern", "Periodic", "RationalQuadratic"]

_STRICT = Properties(Definiteness.POSITIVE_DEFINITE, stationary=True, bounded=True, infinitely_divisible=True)


@dataclass(frozen=True, repr=False)
class Gaussian(Kernel):
    """k(x, z) = exp(−γ‖x − z‖²).

    It is strictly positive definite (Micchelli 1986, Constr. Approx. 2, 11) and infinitely divisible (Schoenberg 1938).

    Parameters
    ----------
    gamma : float > 0, "scale", "median" or "auto", default "scale"
        "scale" is 1/(d·Var(X)), which suits standardised columns; "median" is 1/(2m²) with the median distance m;
        "auto" is 1/d.

    Examples
    --------
    >>> Gaussian(gamma=0.5)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    gamma: float | str = "scale"

    def __post_init__(self) -> None:
        self._set("gamma", checks.bandwidth("Gaussian", "gamma", self.gamma))

    def formula(self, pair: Any) -> Any:
        return exp(-self.gamma * pair.sqdist)  # type: ignore[operator]

    @classmethod
    def from_sigma(cls, sigma: float) -> Gaussian:
        """k(x, z) = exp(−‖x − z‖²/2σ²).

        Examples
        --------
        >>> Gaussian.from_sigma(2.0)
        Gaussian(gamma=0.125)
        """
        return cls(0.5 / checks.positive("Gaussian", "sigma", sigma) ** 2)

    @property
    def properties(self) -> Properties:
        return _STRICT


@dataclass(frozen=True, repr=False)
class Laplace(Kernel):
    """k(x, z) = exp(−γ‖x − z‖) with the Euclidean norm (norm=2) or the city-block norm (norm=1).

    It is strictly positive definite and infinitely divisible, because both norms are conditionally negative definite
    (Schoenberg 1938).

    Parameters
    ----------
    gamma : float > 0, "scale", "median" or "auto", default "scale"
        "scale" is 1/√(d·Var(X)) for norm 2 and 1/(d·std(X)) for norm 1; "median" is 1/(median distance).
    norm : 1 or 2, default 2
        scikit-learn's laplacian_kernel has norm 1.

    Examples
    --------
    >>> Laplace(gamma=1.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(6)
    array([[0.006738]])
    """

    gamma: float | str = "scale"
    norm: int = 2

    def __post_init__(self) -> None:
        self._set("gamma", checks.bandwidth("Laplace", "gamma", self.gamma))
        self._set("norm", checks.one_of("Laplace", "norm", self.norm, (1, 2)))

    def formula(self, pair: Any) -> Any:
        distance = pair.l1 if self.norm == 1 else sqrt(pair.sqdist)
        return exp(-self.gamma * distance)  # type: ignore[operator]

    @property
    def measure(self) -> str:
        return "l1" if self.norm == 1 else "dist"

    @property
    def properties(self) -> Properties:
        return _STRICT


@dataclass(frozen=True, repr=False)
class Matern(Kernel):
    """k(x, z) = 2^(1−ν)/Γ(ν) · s^ν K_ν(s), s = √(2ν)‖x − z‖/ℓ; for ν = p + ½ a polynomial in s times exp(−s).

    It is strictly positive definite (Rasmussen & Williams 2006, 4.2.1), and infinitely divisible as a mixture of
    Gaussians over an infinitely divisible distribution (Grosswald 1976).

    Parameters
    ----------
    nu : float > 0 or inf, default 1.5
        Smoothness: sample paths have ⌈ν⌉ − 1 derivatives. ν = 0.5 is Laplace, and inf is Gaussian. Half-integers up to
        9.5 have closed forms, which the native engine runs; other values need SciPy's Bessel function and are slower.
    length_scale : float > 0, "scale", "median" or "auto", default 1.0
        A rule means 1/√(2γ) with the γ of that rule for the Gaussian kernel, which is the limit for ν → ∞.

    Examples
    --------
    >>> Matern(nu=1.5)([[0.0]], [[1.0]]).round(6)
    array([[0.483358]])
    """

    nu: float = 1.5
    length_scale: float | str = 1.0
    rule_parameter: ClassVar[str] = "length_scale"

    def __post_init__(self) -> None:
        self._set("nu", checks.positive("Matern", "nu", self.nu, finite=False))
        length = checks.bandwidth("Matern", "length_scale", self.length_scale)
        length = length if isinstance(length, str) else checks.divisor("Matern", "length_scale", length)
        self._set("length_scale", length)

    def formula(self, pair: Any) -> Any:
        if math.isinf(self.nu):
            return exp(-0.5 / self.length_scale**2 * pair.sqdist)  # type: ignore[operator]
        s = math.sqrt(2 * self.nu) / self.length_scale * sqrt(pair.sqdist)  # type: ignore[operator]
        if (self.nu - 0.5).is_integer() and self.nu <= 9.5:
            return _half_integer(int(self.nu - 0.5), s)
        return _bessel(self.nu, s)

    def _from_gamma(self, gamma: float) -> float:
        return 1 / math.sqrt(2 * gamma)

    @property
    def properties(self) -> Properties:
        return _STRICT


def _half_integer(p: int, s: Any) -> Any:
    """p!/(2p)! Σᵢ (p+i)!/(i!(p−i)!) (2s)^(p−i) · exp(−s), by Horner's rule (Rasmussen & Williams 2006, 4.16)."""
    f = math.factorial
    coefficients = [2.0 ** (p - i) * f(p) * f(p + i) / (f(2 * p) * f(i) * f(p - i)) for i in range(p + 1)]
    if p == 0:
        return exp(-s)
    # exp(−1000) is 0; without the bound, a power of s could overflow and give 0 · inf.
    t, polynomial = minimum(s, 1000.0), coefficients[0]
    for coefficient in coefficients[1:]:
        polynomial = polynomial * t + coefficient
    return polynomial * exp(-s)


def _bessel(nu: float, s: Any) -> Any:
    """2^(1−ν)/Γ(ν) · s^ν K_ν(s) on arrays, by logarithms, or by its power series where K_ν(s) overflows."""
    if is_torch(s):
        raise InvalidInput(message("Matern", f"nu={nu} for a tensor", "give a half-integer nu ≤ 9.5, or NumPy arrays"))
    if isinstance(s, Expression):
        return np.frexp(s)  # raises CannotTrace
    wide = np.asarray(s, dtype=np.float64)
    with np.errstate(all="ignore"):
        value = np.exp((1 - nu) * math.log(2) - gammaln(nu) + nu * np.log(wide) + np.log(kve(nu, wide)) - wide)
    term, series = np.ones_like(wide), np.ones_like(wide)
    for j in range(1, min(math.ceil(nu) - 1, 30) + 1):
        term = term * (wide * wide / 4) / (j * (j - nu))
        series = series + term
    # For large s SciPy's function is NaN, and the kernel is 0.
    small = np.isinf(kve(nu, wide)) | (wide == 0)
    return np.where(small, series, np.nan_to_num(value, nan=0.0)).astype(np.asarray(s).dtype)


@dataclass(frozen=True, repr=False)
class RationalQuadratic(Kernel):
    """k(x, z) = (1 + γ‖x − z‖²/α)^(−α), a mixture of Gaussians over many bandwidths.

    It is strictly positive definite and infinitely divisible (Rasmussen & Williams 2006, 4.19).

    Parameters
    ----------
    alpha : float > 0, default 1.0
        For α → ∞ the kernel is Gaussian.
    gamma : float > 0, "scale", "median" or "auto", default "scale"

    Examples
    --------
    >>> RationalQuadratic(alpha=2.0, gamma=1.0)([[0.0]], [[2.0]]).round(6)
    array([[0.111111]])
    """

    alpha: float = 1.0
    gamma: float | str = "scale"

    def __post_init__(self) -> None:
        self._set("alpha", checks.divisor("RationalQuadratic", "alpha", self.alpha))
        self._set("gamma", checks.bandwidth("RationalQuadratic", "gamma", self.gamma))

    def formula(self, pair: Any) -> Any:
        return (1 + self.gamma / self.alpha * pair.sqdist) ** -self.alpha  # type: ignore[operator]

    @property
    def properties(self) -> Properties:
        return _STRICT


@dataclass(frozen=True, repr=False)
class Cauchy(Kernel):
    """k(x, z) = 1/(1 + γ‖x − z‖²), the `RationalQuadratic` with α = 1.

    It is strictly positive definite and infinitely divisible (Basak 2008, ICPR).

    Parameters
    ----------
    gamma : float > 0, "scale", "median" or "auto", default 1.0

    Examples
    --------
    >>> Cauchy(gamma=1.0)([[0.0]], [[2.0]])
    array([[0.2]])
    """

    gamma: float | str = 1.0

    def __post_init__(self) -> None:
        self._set("gamma", checks.bandwidth("Cauchy", "gamma", self.gamma))

    def formula(self, pair: Any) -> Any:
        return 1 / (1 + self.gamma * pair.sqdist)

    @property
    def properties(self) -> Properties:
        return _STRICT


@dataclass(frozen=True, repr=False)
class Periodic(Kernel):
    """k(x, z) = exp(−2 Σᵢ sin²(π(xᵢ − zᵢ)/p)/ℓ²): a Gaussian on circles, one for each coordinate.

    It is positive semi-definite; points whose coordinates differ by periods have the same features. With sin² of the
    Euclidean distance instead of the sum over coordinates, it would not be a kernel in two dimensions. See D. MacKay
    (1998), Introduction to Gaussian processes, section 5.

    Parameters
    ----------
    period : float > 0, default 1.0
        p.
    length_scale : float > 0, default 1.0
        ℓ.

    Examples
    --------
    >>> Periodic(period=2.0)([[0.0]], [[1.0], [2.0]]).round(6)
    array([[0.135335, 1.      ]])
    """

    period: float = 1.0
    length_scale: float = 1.0

    def __post_init__(self) -> None:
        self._set("period", checks.divisor("Periodic", "period", self.period))
        self._set("length_scale", checks.divisor("Periodic", "length_scale", self.length_scale))

    def formula(self, pair: Any) -> Any:
        return exp(-0.5 / self.length_scale / self.length_scale * pair.through(Circle(self.period)).sqdist)

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE, stationary=True, bounded=True, infinitely_divisible=True)
