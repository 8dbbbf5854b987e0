"""Spectrum, GappedKmer and Mismatch against their definitions: exact."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mercer import KernelOperator, errors
from mercer.engine import backend
from mercer.kernels import GappedKmer, Mismatch, MonomialSum, Spectrum, parse
from mercer.kernels.sequences import comparing, counts, position_weights

spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

X = reference.random_strings(0)
Z = reference.random_strings(1)

CASES = [
    (Spectrum(1), lambda x, z: reference.spectrum(x, z, 1)),
    (Spectrum(3), lambda x, z: reference.spectrum(x, z, 3)),
    (Spectrum(40), lambda x, z: reference.spectrum(x, z, 40)),
    (GappedKmer(3, 1), lambda x, z: reference.gapped(x, z, 3, 1)),
    (GappedKmer(5, 3), lambda x, z: reference.gapped(x, z, 5, 3)),
    (GappedKmer(4, 4), lambda x, z: reference.spectrum(x, z, 4)),
    (Mismatch(1, 0, alphabet="abcæ"), lambda x, z: reference.spectrum(x, z, 1)),
    (Mismatch(3, 1, alphabet="abcæ"), lambda x, z: reference.mismatch(x, z, 3, 1, "abcæ")),
    (Mismatch(3, 1, alphabet="abcxyz"), lambda x, z: reference.mismatch(x, z, 3, 1, "abcxyz")),
    (Mismatch(3, 2, alphabet="ab"), lambda x, z: reference.mismatch(x, z, 3, 2, "ab")),
    (Mismatch(4, 2, alphabet="abæ"), lambda x, z: reference.mismatch(x, z, 4, 2, "abæ")),
]


@pytest.mark.parametrize(("kernel", "definition"), CASES, ids=[repr(case[0]) for case in CASES])
def test_equals_the_definition(kernel, definition):
    square, cross = reference.gram(definition, X), reference.gram(definition, X, Z)
    np.testing.assert_array_equal(kernel(X), square)
    np.testing.assert_array_equal(kernel(X, Z), cross)
    np.testing.assert_array_equal(kernel.diagonal(X), np.diagonal(square))


@pytest.mark.parametrize(("kernel", "definition"), CASES, ids=[repr(case[0]) for case in CASES])
def test_products_make_no_matrix_and_agree(kernel, definition):
    v = np.random.default_rng(0).normal(size=(len(Z), 2))
    np.testing.assert_allclose(KernelOperator(kernel, X, Z) @ v, reference.gram(definition, X, Z) @ v, atol=1e-10)
    np.testing.assert_allclose(kernel.matmul(X, X, v), reference.gram(definition, X) @ v, atol=1e-10)


@pytest.fixture(params=["compared", "counted"])
def way(request, monkeypatch):
    """Both ways to the sums, whatever their work."""
    for name in ("is_less_work", "diagonal_is_less_work"):
        monkeypatch.setattr(comparing, name, lambda *given: request.param == "compared")


@pytest.mark.parametrize(
    ("kernel", "definition"), CASES[1:2] + CASES[3:], ids=[repr(case[0]) for case in CASES[1:2] + CASES[3:]]
)
def test_both_ways_are_the_definition(way, kernel, definition):
    test_equals_the_definition(kernel, definition)
    test_products_make_no_matrix_and_agree(kernel, definition)


def test_the_ways_agree_to_the_bit(monkeypatch):
    """Reverse complements, letters that are not in the alphabet, thousands of tokens."""
    strands = reference.random_strings(2, "ACGN", longest=60)
    tokens = [list(np.random.default_rng(i).integers(0, 900, 50).tolist()) for i in range(6)]
    cases = [
        (GappedKmer(6, 3, both_strands=True), strands),
        (Mismatch(5, 1, both_strands=True, alphabet="ACGT"), strands),
        (Mismatch(6, 3, alphabet="abc"), X),
        (GappedKmer(20, 2), reference.random_strings(4, "ab", longest=50)),
        (GappedKmer(5, 2), tokens),
    ]
    for kernel, rows in cases:
        found = []
        for compare in (True, False):
            for name in ("is_less_work", "diagonal_is_less_work"):
                monkeypatch.setattr(comparing, name, lambda *given, compare=compare: compare)
            found.append((kernel(rows), kernel(rows, rows[2:]), kernel.diagonal(rows)))
        for compared, counted in zip(*found, strict=True):
            np.testing.assert_array_equal(compared, counted)


@pytest.mark.skipif(not backend.is_native(), reason="the reference compares one pair at a time")
def test_the_way_is_that_of_less_work():
    few, many = kernel_rows(40), kernel_rows(4000)
    long, short = GappedKmer(13, 6), Spectrum(8)
    for rows in (few, many):
        x = short._corpora(rows, rows)[0]
        assert comparing.is_less_work(x, None, long._worth(), long.patterns(), 13)
    assert not comparing.is_less_work(x, None, short._worth(), short.patterns(), 8)


def kernel_rows(count):
    return ["".join(row) for row in np.random.default_rng(0).choice(list("ACGT"), (count, 30))]


def test_rna_and_its_reverse_complement_are_one():
    kernel = GappedKmer(3, 2, both_strands=True)
    K = kernel(["AACUG", "CAGUU", "AACTG"])
    np.testing.assert_array_equal(K, K[0, 0])


def test_algebra_and_products_of_it():
    kernel = 0.5 * Spectrum(2).normalized() + GappedKmer(3, 2) + 2.0
    K = kernel(X, Z)
    v = np.ones((len(Z), 1))
    np.testing.assert_allclose(kernel.matmul(X, Z, v), K @ v, rtol=1e-13)
    diagonal = np.diagonal(Spectrum(2).normalized()(X))
    np.testing.assert_allclose(diagonal, [len(x) >= 2 for x in X])
    assert kernel.has_fast_matmul
    assert not (kernel + Spectrum(2) * Spectrum(1)).has_fast_matmul
    np.testing.assert_array_equal((Spectrum(2) * Spectrum(1))(X, Z), Spectrum(2)(X, Z) * Spectrum(1)(X, Z))


def test_words_tokens_and_long_patterns():
    texts = ["to be or not to be", "to  be", "or", ""]
    words = [text.split() for text in texts]
    numbers = [[len(word) for word in text] for text in words]
    np.testing.assert_array_equal(
        Spectrum(2, unit="word")(texts), reference.gram(lambda x, z: reference.spectrum(x, z, 2), words)
    )
    np.testing.assert_array_equal(Spectrum(2)(words), Spectrum(2, unit="word")(texts))
    np.testing.assert_array_equal(
        Spectrum(1)(numbers), reference.gram(lambda x, z: reference.spectrum(x, z, 1), numbers)
    )
    # Places that do not fit one machine word: 30 symbols of 5 bits.
    rng = np.random.default_rng(0)
    base = "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 60))
    X = [base, base[5:] + base[:5], base[:33] + "!" + base[34:]]
    np.testing.assert_array_equal(Spectrum(30)(X), reference.gram(lambda x, z: reference.spectrum(x, z, 30), X))


def test_alphabet_of_the_training_data():
    kernel = Mismatch(3, 1)
    assert not kernel.is_resolved
    assert kernel.resolve(X) == Mismatch(3, 1, alphabet="abcæ")
    assert (kernel + Spectrum(2)).resolve(X).left.alphabet == "abcæ"
    assert kernel.resolve([["to", "be"]]).alphabet == ("be", "to")
    np.testing.assert_array_equal(kernel(X), Mismatch(3, 1, alphabet="abcæ")(X))
    with pytest.raises(errors.InvalidInput, match="resolve"):
        kernel(X, Z)


def test_names_and_properties():
    for kernel in (Spectrum(2, unit="word"), GappedKmer(5, 2), Mismatch(4, 1, alphabet="acgt")):
        assert parse(repr(kernel)) == kernel
        assert kernel.properties.definiteness.is_mercer
    assert parse("spectrum(k=3).normalized() + 2*gappedkmer(g=10, k=6)") == Spectrum(3).normalized() + 2.0 * GappedKmer(
        10, 6
    )
    tokens = Mismatch(2, 1, alphabet=("a", 3))
    assert parse(repr(tokens)) == tokens


@pytest.mark.parametrize(
    "make",
    [
        lambda: Spectrum(0), lambda: Spectrum(2.5), lambda: GappedKmer(3, 4), lambda: GappedKmer(60, 30),
        lambda: GappedKmer(4_000_000, 2_000_000), lambda: GappedKmer(4_000_000, 4_000_000), lambda: Spectrum(10**6),
        lambda: GappedKmer(200, 198), lambda: Mismatch(4_000_000, 1_000_000), lambda: Mismatch(4000, 1),
        lambda: GappedKmer(10**400, 2), lambda: parse("gappedkmer(g=4000000, k=2000000)"), lambda: MonomialSum(10**6),
        lambda: Mismatch(2, 2), lambda: Mismatch(2, -1), lambda: Spectrum(2, unit="letter"),
        lambda: Mismatch(2, 1, alphabet="aa"), lambda: Mismatch(2, 1, alphabet=""), lambda: Mismatch(2, 1, alphabet=4),
    ],
)  # fmt: skip
def test_refused_parameters(make):
    with pytest.raises(errors.MercerError, match="; "):
        make()


@pytest.mark.parametrize(
    "data", ["abc", [], ["a", None], [b"abc"], ["a", 1.5], np.eye(2), [["a", 1.5]], 3, np.array([1, 2]), [["a", None]]]
)
def test_refused_data(data):
    with pytest.raises(errors.InvalidInput, match="Spectrum"):
        Spectrum(2)(data)


def test_forms_of_data():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    K = Spectrum(2)(X)
    forms = [
        np.array(X),
        np.array(X, object),
        tuple(X),
        pandas.Series(X),
        pandas.DataFrame({"s": X}),
        np.array(X)[:, None],
    ]
    forms += [polars.Series(X), polars.DataFrame({"s": X}), pandas.Series(X, dtype="string")]
    for form in forms:
        np.testing.assert_array_equal(Spectrum(2)(form), K)


DNA = reference.random_strings(4, letters="ACGT", longest=14)
OTHER = reference.random_strings(5, letters="ACGTN", longest=14)


def strands(function):
    """φ(x) + φ(its reverse complement), by the definition."""

    def reverse(x):
        return "".join({"A": "T", "C": "G", "G": "C", "T": "A", "N": "N"}[c] for c in reversed(x))

    return lambda x, z: sum(function(a, b) for a in (x, reverse(x)) for b in (z, reverse(z)))


@pytest.mark.parametrize(
    ("kernel", "definition"),
    [
        (Spectrum(2, both_strands=True), lambda x, z: reference.spectrum(x, z, 2)),
        (GappedKmer(4, 2, both_strands=True), lambda x, z: reference.gapped(x, z, 4, 2)),
        (Mismatch(3, 1, both_strands=True, alphabet="ACGT"), lambda x, z: reference.mismatch(x, z, 3, 1, "ACGT")),
    ],
    ids=["spectrum", "gapped", "mismatch"],
)
def test_both_strands(kernel, definition):
    definition = strands(definition)
    cross = reference.gram(definition, DNA, OTHER)
    np.testing.assert_array_equal(kernel(DNA, OTHER), cross)
    np.testing.assert_array_equal(kernel(DNA), reference.gram(definition, DNA))
    np.testing.assert_array_equal(kernel.diagonal(OTHER), np.diagonal(reference.gram(definition, OTHER)))
    v = np.arange(float(len(OTHER)))[:, None]
    np.testing.assert_allclose(kernel.matmul(DNA, OTHER, v), cross @ v, rtol=1e-13)
    found = position_weights(kernel, DNA, OTHER, v[:, 0])
    assert [len(one) for one in found] == [len(x) for x in DNA]
    np.testing.assert_allclose([one.sum() for one in found], cross @ v[:, 0])
    assert parse(repr(kernel)) == kernel


def test_both_strands_are_of_nucleotides():
    for data in (["ACX"], [["A", "C"]]):
        with pytest.raises(errors.InvalidInput, match="nucleotides"):
            Spectrum(2, both_strands=True)(data)
    with pytest.raises(errors.InvalidInput, match="DNA only"):
        Spectrum(2, unit="word", both_strands=True)
    assert Mismatch(3, 1, both_strands=True).resolve(["AAC"]).alphabet == "ACGT"


def test_the_lower_triangle_is_the_upper_one():
    """Squares of 64 rows on the diagonal, and what is left of them."""
    whole = np.random.default_rng(0).normal(size=(150, 150))
    np.testing.assert_array_equal(counts.mirrored(np.triu(whole)), np.triu(whole) + np.triu(whole, 1).T)
