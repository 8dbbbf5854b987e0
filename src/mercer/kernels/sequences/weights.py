"""Explanations of f(x) = Σⱼ cⱼ k(x, zⱼ) for sequences: the weight of each position of x, and of each k-mer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.kernels.base import Constant, Kernel, Normalized, Scaled, Sum, inverse_root
from mercer.kernels.sequences import counts
from mercer.kernels.sequences.base import WindowKernel, as_text
from mercer.kernels.sequences.corpus import Corpus, tokens
from mercer.numerals import counted
from mercer.points.sequences import as_sequences

__all__ = ["kmer_weights", "position_weights"]


@dataclass(frozen=True, eq=False)
class _Part:
    """A kernel of counts, with factors for the rows, the columns, and all entries of its matrix."""

    kernel: WindowKernel
    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    factor: float = 1.0


def position_weights(kernel: Kernel, X: Any, Z: Any, coef: Any) -> list[NDArray[np.float64]]:
    """The contribution of each position of each x to f(x) = Σⱼ cⱼ k(x, zⱼ). They sum to f(x) less constants.

    The contribution of a pattern is divided evenly among its positions.

    Parameters
    ----------
    kernel : Kernel
        `Spectrum`, `GappedKmer` or `Mismatch`, or sums, multiples and normalised forms of them, resolved.
    X : sequences
    Z : sequences
        The sequences of the model, ``X_fit_``.
    coef : array of shape (len(Z),)
        The coefficients c of the model, ``dual_coef_``.

    Returns
    -------
    list of arrays
        For each x a number for each of its symbols: characters or tokens, or words if all parts of the kernel count
        words. If some parts count words and others characters, the weight of a word is divided among its characters.

    Raises
    ------
    InvalidInput
        For kernels without such features.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> position_weights(Spectrum(k=2), ["xabx"], ["ab", "ba"], [1.0, 0.5])
    [array([0. , 0.5, 0.5, 0. ])]
    """
    X, Z, coef = as_sequences(X, "position_weights"), as_sequences(Z, "position_weights"), _coefficients(coef, Z)
    parts = _parts(kernel, X, Z)
    words = bool(parts) and all(part.kernel._unit == "word" for part in parts)
    unit = "word" if words else "character"
    out = [np.zeros(len(tokens(x, unit))) for x in X]
    for part in parts:
        found = _of_part(part, X, Z, coef)
        spread = part.kernel._unit == "word" and not words
        for i, values in enumerate(found):
            out[i] += _on_characters(X[i], values) if spread else values
    return out


def kmer_weights(kernel: Kernel, Z: Any, coef: Any, kmers: Iterable[Any] | None = None) -> list[tuple[str, float]]:
    """The contribution of one occurrence of each k-mer to f(x) = Σⱼ cⱼ k(x, zⱼ), the largest magnitude first.

    For a normalised kernel the factor 1/√k(x, x) of x is not included.

    Parameters
    ----------
    kernel, Z, coef
        As for `position_weights`.
    kmers : sequences, optional
        K-mers of the length of the kernel's windows; by default all windows of Z.

    Returns
    -------
    list of (str, float)

    Raises
    ------
    InvalidInput
        For kernels without such features, and k-mers of another length.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> kmer_weights(Spectrum(k=2), ["aba", "bb"], [1.0, -3.0])
    [('bb', -3.0), ('ab', 1.0), ('ba', 1.0)]
    """
    Z, coef = as_sequences(Z, "kmer_weights"), _coefficients(coef, Z)
    weights: dict[str, float] = {}
    for part in _parts(kernel, Z[:1], Z):
        window = part.kernel
        found = _windows(window, Z) if kmers is None else _given(kmers, window)
        if not found:
            continue
        X = as_sequences([one if isinstance(one, str) else list(one) for one in found], "kmer_weights")
        scaled = part.factor * part.columns * coef
        values = _with_tokens(window).matmul(X, _split(Z, window), scaled[:, None])[:, 0]
        for one, value in zip(found, values, strict=True):
            weights[as_text(one)] = weights.get(as_text(one), 0.0) + float(value)
    return sorted(weights.items(), key=lambda item: (-abs(item[1]), item[0]))


def _coefficients(coef: Any, Z: NDArray[Any]) -> NDArray[np.float64]:
    values = np.asarray(coef, np.float64)
    if values.shape != (len(Z),):
        given = f"coefficients of shape {values.shape} for {counted(len(Z), 'sequence')}"
        raise InvalidInput(message("weights", given, "give one for each: a column of dual_coef_"))
    return values


def _parts(kernel: Kernel, X: NDArray[Any], Z: NDArray[Any]) -> list[_Part]:
    """The kernels of counts whose sum a composition is."""
    match kernel:
        case WindowKernel():
            return [_Part(kernel, np.ones(len(X)), np.ones(len(Z)))]
        case Constant():
            return []
        case Sum():
            return _parts(kernel.left, X, Z) + _parts(kernel.right, X, Z)
        case Scaled():
            inner = _parts(kernel.kernel, X, Z)
            return [replace(part, factor=kernel.scale * part.factor) for part in inner]
        case Normalized():
            rows, columns = (inverse_root(kernel.kernel.diagonal(data)) for data in (X, Z))
            inner = _parts(kernel.kernel, X, Z)
            return [replace(part, rows=part.rows * rows, columns=part.columns * columns) for part in inner]
    given = f"{kernel!r:.80} has no weights of positions"
    do = "use Spectrum, GappedKmer or Mismatch, or sums, multiples and normalised forms of them"
    raise InvalidInput(message("weights", given, do))


def _of_part(part: _Part, X: NDArray[Any], Z: NDArray[Any], coef: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """For each x the weights of its symbols, by one pass for each pattern."""
    kernel = part.kernel
    x, z = kernel._corpora(X, Z if Z is not X else Z.copy())
    assert z is not None
    both, out = counts.joined(x, z), np.zeros(len(x.symbols))
    folded = np.concatenate([np.zeros(x.count), part.factor * part.columns * coef])
    for pattern in kernel.patterns():
        counted = counts.count(both, pattern, kernel.span, windows_too=True)
        table = pattern.weight * (counted.matrix.T.astype(np.float64) @ folded)
        assert counted.shown is not None
        first = np.flatnonzero(counted.shown[: len(x.symbols)] >= 0)
        each = table[counted.shown[first]]
        places = pattern.offsets or tuple(range(kernel.span))  # of no place at all: of all alike
        for offset in places:
            out[first + offset] += each / len(places)
    found = _by_row(x, out, part.rows)
    return [_on_one_strand(values) for values in found] if kernel._strands else found


def _on_one_strand(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of both strands, which a gap separates, added up at the positions of the given strand."""
    size = len(values) // 2
    return values[:size] + values[size + 1 :][::-1]


def _by_row(x: Corpus, values: NDArray[np.float64], rows: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    return [scale * values[a:b] for scale, a, b in zip(rows, x.starts[:-1], x.starts[1:], strict=True)]


def _on_characters(x: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight of each word, divided among its characters; the weights of a token list are returned unchanged."""
    if not isinstance(x, str):
        return values
    out, at = np.zeros(len(x)), 0
    for word, value in zip(x.split(), values, strict=True):
        at = x.index(word, at)
        out[at : at + len(word)] = value / len(word)
        at += len(word)
    return out


def _split(Z: NDArray[Any], kernel: WindowKernel) -> NDArray[Any]:
    """Texts as lists of their words, if the kernel counts words."""
    if kernel._unit == "character":
        return Z
    return as_sequences([list(tokens(z, "word")) for z in Z], "kmer_weights")


def _with_tokens(kernel: WindowKernel) -> WindowKernel:
    return kernel.replace(unit="character") if kernel._unit == "word" else kernel


def _given(kmers: Iterable[Any], kernel: WindowKernel) -> list[Any]:
    """The given k-mers, each once; raise InvalidInput unless all have the length of a window."""
    found = [tokens(one, kernel._unit) for one in kmers]
    wrong = [one for one in found if len(one) != kernel.span]
    if wrong:
        given = f"{as_text(wrong[0])!r:.60} of {len(wrong[0])} symbols, where windows have {kernel.span}"
        raise InvalidInput(message("kmer_weights", given, "give k-mers of that length"))
    return list({as_text(one): one for one in found}.values())


def _windows(kernel: WindowKernel, Z: NDArray[Any]) -> list[Any]:
    """The different windows of Z, with both strands also those of the second."""
    z, _ = kernel._corpora(Z, Z)
    whole = counts.Pattern(tuple(range(kernel.span)))
    found = counts.count(z, whole, kernel.span).first

    shown = [[z.names[s] for s in z.symbols[first : first + kernel.span]] for first in found]
    characters = kernel._unit == "character" and all(isinstance(x, str) for x in Z)
    return ["".join(window) for window in shown] if characters else shown
