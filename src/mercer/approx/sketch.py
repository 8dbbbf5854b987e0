"""Sketches of polynomial kernels: exact monomials of low degree, and tensor sketches of the other degrees."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import reduce
from itertools import zip_longest
from math import comb
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.approx.monomials import HIGHEST_DEGREE, MonomialFeatures
from mercer.errors import InvalidInput, message
from mercer.kernels import Constant, Kernel, Linear, MonomialSum, Polynomial
from mercer.kernels.base import Power, Product, Scaled, Sum
from mercer.points import vectors_of

__all__ = ["KNOWN", "Hashes", "allot", "draw_hashes", "in_unit", "pair_variances", "power_series", "sketch_features"]

Floats = NDArray[np.float64]

KNOWN = "Linear, Polynomial, MonomialSum, Constant"
"""The kernels whose sums, products, powers and multiples can be sketched."""

DECIMAL = Context(prec=34, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Twice the digits of float64, and any exponent; long doubles are float64 on some machines."""

MODEST = (1e-12, 1e12)
"""The range of √aⱼ for which float32 holds both √aⱼ and φⱼ(x)."""

CHUNK = 1 << 21
"""Numbers in a block of rows, which limits the memory of the transforms."""


def power_series(kernel: Kernel) -> Floats:
    """a with k(x, z) = Σⱼ aⱼ ⟨x, z⟩ʲ.

    Raises
    ------
    InvalidInput
        For a kernel that is not a polynomial of ⟨x, z⟩, and for a degree or coefficients beyond float64.

    Examples
    --------
    >>> power_series(Polynomial(2, gamma=0.5, coef0=3.0))
    array([9.  , 3.  , 0.25])
    >>> power_series(2.0 * Linear() * MonomialSum(2))
    array([0., 2., 2., 2.])
    """
    if (degree := _degree(kernel)) > HIGHEST_DEGREE:
        given = f"a polynomial of degree {min(degree, 10**18):.3g}"
        raise InvalidInput(message("PolynomialSketch", given, f"give a degree of at most {HIGHEST_DEGREE}"))
    with localcontext(DECIMAL):
        a = _coefficients(kernel)
    tiny, huge = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)
    if not np.all((a == 0) | ((tiny <= np.abs(a)) & (np.abs(a) <= huge))):
        given = f"{kernel!r}, some of whose coefficients are beyond the range of float64"
        raise InvalidInput(message("PolynomialSketch", given, "standardise the columns, or lower the degree"))
    return a.astype(np.float64)


def _degree(kernel: Kernel) -> int:
    """The degree of a polynomial of ⟨x, z⟩."""
    if isinstance(kernel, Constant):
        return 0
    if isinstance(kernel, Linear):
        return 1
    if isinstance(kernel, Polynomial | MonomialSum):
        return int(kernel.degree)
    if isinstance(kernel, Scaled):
        return _degree(kernel.kernel)
    if isinstance(kernel, Sum):
        return max(_degree(kernel.left), _degree(kernel.right))
    if isinstance(kernel, Product):
        return _degree(kernel.left) + _degree(kernel.right)
    if isinstance(kernel, Power) and float(kernel.exponent).is_integer():
        return int(kernel.exponent) * _degree(kernel.kernel)
    given = f"{kernel!r}, which is not a polynomial of ⟨x, z⟩"
    raise InvalidInput(message("PolynomialSketch", given, f"give a kernel built from {KNOWN}, or use Nystroem"))


def _coefficients(kernel: Any) -> NDArray[np.object_]:
    """aⱼ as decimal numbers, to detect coefficients beyond the range of float64."""
    if isinstance(kernel, Constant):
        return _decimals(kernel.value)
    if isinstance(kernel, Linear):
        return _decimals(0, 1)
    if isinstance(kernel, Polynomial):
        return _binomial(int(kernel.degree), Decimal(float(kernel.coef0)), Decimal(float(kernel.gamma)))
    if isinstance(kernel, MonomialSum):
        return _decimals(*[1] * (int(kernel.degree) + 1))
    if isinstance(kernel, Scaled):
        return Decimal(float(kernel.scale)) * _coefficients(kernel.kernel)
    if isinstance(kernel, Sum):
        a, b = _coefficients(kernel.left), _coefficients(kernel.right)
        return np.array([x + z for x, z in zip_longest(a, b, fillvalue=Decimal(0))])
    if isinstance(kernel, Product):
        return np.convolve(_coefficients(kernel.left), _coefficients(kernel.right))
    return reduce(np.convolve, [_coefficients(kernel.kernel)] * int(kernel.exponent), _decimals(1))


def _decimals(*values: float) -> NDArray[np.object_]:
    return np.array([Decimal(float(value)) for value in values])


def _binomial(p: int, c: Decimal, gamma: Decimal) -> NDArray[np.object_]:
    """The coefficients of (γs + c)ᵖ."""
    return np.array([comb(p, j) * gamma**j * (c ** (p - j) if j < p else 1) for j in range(p + 1)])


def in_unit(X: Floats, a: Floats) -> tuple[Floats, Floats]:
    """Rows divided by their root mean square norm r, and aⱼ r²ʲ: the same polynomial, without overflow of its powers.

    >>> X, a = in_unit(np.array([[3e-100, 4e-100]]), np.array([1.0, 1e200]))
    >>> X.round(6), a.round(6)
    (array([[0.6, 0.8]]), array([ 1., 25.]))
    """
    top = float(np.abs(X).max(initial=0.0)) or 1.0
    norm = top * float(np.sqrt(np.mean(np.sum((X / top) ** 2, axis=1)))) or 1.0
    with np.errstate(divide="ignore"):
        return X / norm, np.exp(np.minimum(np.log(a) + 2 * np.arange(len(a)) * np.log(norm), 300.0))


def pair_variances(X: NDArray[Any], degree: int) -> Floats:
    r"""D times the variance of a sketched ⟨x, z⟩ʲ, averaged over all pairs of rows, for each j up to the degree.

    With N = ‖x‖²‖z‖², s = ⟨x, z⟩ and q = Σxᵢ²zᵢ² this is (N + s² − q)ʲ + (2s² − q)ʲ − 2s²ʲ, up to terms in 1/D².

    >>> pair_variances(np.array([[1.0, 1.0]]), 2)
    array([ 0.,  4., 40.])
    """
    s, squares = X @ X.T, X**2
    q, norms = squares @ squares.T, squares.sum(axis=1)
    N, s2 = np.outer(norms, norms), s**2
    return np.array([np.mean((N + s2 - q) ** j + (2 * s2 - q) ** j - 2 * s2**j) for j in range(degree + 1)])


def allot(a: Floats, variances: Floats, d: int, count: int) -> tuple[int, list[int]]:
    r"""The number e of exact degrees, and the number of features Dⱼ of each degree, at most `count` in all.

    Degrees below e are exact, with all C(d + j − 1, j) monomials. The others get Dⱼ ∝ aⱼ√vⱼ, which minimises the
    variance Σⱼ aⱼ² vⱼ/Dⱼ. e ≥ 1 is the number with the smallest variance. If there are fewer features than degrees, e
    is 0, and all degrees share all features.

    >>> allot(np.array([1.0, 2.0, 1.0]), np.array([0.0, 10.0, 200.0]), 3, 50)
    (3, [1, 3, 6])
    >>> allot(np.array([1.0, 2.0, 1.0]), np.array([0.0, 10.0, 200.0]), 30, 50)
    (1, [1, 16, 33])
    """
    roots = a * np.sqrt(np.maximum(variances, 0.0))
    best: tuple[float, int, list[int]] | None = None
    exact: list[int] = []
    for e in range(1, len(a) + 1):
        exact.append(comb(d + e - 2, e - 1) if a[e - 1] > 0 else 0)
        rest = [j for j in range(e, len(a)) if a[j] > 0]
        room = count - sum(exact)
        if room < len(rest):
            continue
        shares = _shares(roots[rest], room)
        total = float(sum(roots[j] ** 2 / D for j, D in zip(rest, shares, strict=True)))
        if best is None or total < best[0]:
            places = dict(zip(rest, shares, strict=True))
            best = total, e, [*exact, *(places.get(j, 0) for j in range(e, len(a)))]
    return (0, [count if one > 0 else 0 for one in a]) if best is None else best[1:]


def _shares(roots: Floats, room: int) -> list[int]:
    """`room` features divided in proportion to the roots, at least one each; the largest remainders are rounded up."""
    if len(roots) == 0:
        return []
    spare = room - len(roots)
    weights = roots / roots.sum() if roots.sum() > 0 else np.full(len(roots), 1 / len(roots))
    shares = np.floor(spare * weights).astype(int)
    order = np.argsort(shares - spare * weights, kind="stable")
    shares[order[: spare - int(shares.sum())]] += 1
    return [int(one) + 1 for one in shares]


class Hashes(NamedTuple):
    """The bucket and the sign of each column for each factor of each sketched degree, of shape (factors, d)."""

    buckets: NDArray[np.int64]
    signs: NDArray[np.int8]


def draw_hashes(places: list[int], exact: int, d: int, rng: np.random.Generator) -> Hashes:
    """Independent hashes: j factors for each degree j ≥ `exact`, with as many buckets as the degree has features."""
    sizes = [places[j] for j in range(exact, len(places)) if places[j] for _ in range(j)]
    buckets = [rng.integers(0, D, d) for D in sizes]
    signs = rng.choice(np.array([-1, 1], np.int8), (len(sizes), d))
    return Hashes(np.array(buckets, np.int64).reshape(len(sizes), d), signs)


def sketch_features(X: Any, a: Floats, places: list[int], exact: int, hashes: Hashes) -> NDArray[Any]:
    r"""φ(x) = ⊕ⱼ √aⱼ φⱼ(x): all monomials for j < `exact`, else irfft(Π_f rfft(C_f x)) with count sketches C_f.

    The features have the dtype of X, and E⟨φ(x), φ(z)⟩ = Σⱼ aⱼ ⟨x, z⟩ʲ over the hashes. If the degrees share their
    features (`exact` = 0), their signs are independent, so that the products between degrees have mean 0.

    References
    ----------
    N. Pham, R. Pagh (2013). Fast and scalable polynomial kernels via explicit feature maps. KDD.
    """
    n, d = X.shape
    shared, roots = exact == 0, np.sqrt(a)
    modest = np.all((roots == 0) | ((MODEST[0] <= roots) & (roots <= MODEST[1])))
    kind = X.dtype if modest else np.dtype(np.float64)
    out = np.zeros((n, max(places) if shared else sum(places)), X.dtype)
    step = max(1, CHUNK // max(d, *places, 1))
    for i in range(0, n, step):
        rows, start = X[i : i + step].astype(kind, copy=False), 0
        for j, part in _parts(rows, places, exact, hashes):
            out[i : i + step, start : start + part.shape[1]] += kind.type(roots[j]) * part
            start += 0 if shared else part.shape[1]
    if not np.all(np.isfinite(out)):
        given = f"rows of up to {abs(X).max():.1e}, whose features are beyond {out.dtype}"
        raise InvalidInput(message("PolynomialSketch", given, "standardise the columns, or lower the degree"))
    return out


def _parts(X: Any, places: list[int], exact: int, hashes: Hashes) -> Iterator[tuple[int, NDArray[Any]]]:
    """Each degree j that has features, and φⱼ of the rows."""
    factor = 0
    for j, D in enumerate(places):
        if not D:
            continue
        yield j, _monomials(X, j) if j < max(exact, 1) else _tensor_sketch(X, D, hashes, factor, j)
        factor += j if j >= exact else 0


def _monomials(X: Any, j: int) -> NDArray[Any]:
    """All monomials of degree j, each once, with weights such that their inner product is ⟨x, z⟩ʲ."""
    dense = vectors_of(X).dense()
    if j < 2:
        return np.ones((X.shape[0], 1), X.dtype) if j == 0 else dense
    return MonomialFeatures(j, kind="power", distinct=True).fit_transform(dense)


def _tensor_sketch(X: Any, D: int, hashes: Hashes, first: int, j: int) -> NDArray[Any]:
    """The count sketch of x ⊗ … ⊗ x (j factors), as the circular convolution of j count sketches of x."""
    d = X.shape[1]
    product: Any = 1.0
    for f in range(first, first + j):
        signs = hashes.signs[f].astype(X.dtype)
        C = sp.csr_matrix((signs, (np.arange(d), hashes.buckets[f])), shape=(d, D))
        sketch = X @ C
        sketch = sketch.toarray() if sp.issparse(sketch) else np.asarray(sketch)
        if j == 1:
            return sketch
        product = product * scipy.fft.rfft(sketch, axis=1)
    return scipy.fft.irfft(product, n=D, axis=1)
