"""Kernels on sequences: proteins, DNA and text."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.harness import Missing, Row, Setting, at_least, at_most, benchmark
from mercer import KernelRidgeClassifier
from mercer.io import read_sequences
from mercer.kernels import AllSubstrings, GappedKmer, Gaussian, Kernel, Spectrum, Subsequence

GROUP = "Sequences"

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def strings(count: int, length: int, letters: str, seed: int = 0) -> Any:
    """Random sequences of this length."""
    drawn = np.random.default_rng(seed).choice(list(letters), (count, length))
    out = np.empty(count, object)
    out[:] = ["".join(row) for row in drawn]
    return out


def both_halves(setting: Setting, name: str) -> tuple[Any, Any, Any, Any]:
    """Training and test sequences, each with its labels; random ones in a quick run."""
    if setting.quick:
        X = np.concatenate([strings(20, 40, "ACGT"), strings(20, 40, "AACT")])
        y = np.repeat(["0", "1"], 20)
        return X[::2], y[::2], X[1::2], y[1::2]
    files = [None if setting.data is None else setting.data / f"{name}.{part}.fasta.gz" for part in ("train", "test")]
    if any(file is None or not file.exists() for file in files):
        raise Missing(f"needs --data DIR with {name}.train.fasta.gz and {name}.test.fasta.gz")
    train, test = (read_sequences(file) for file in files if file is not None)
    return train.sequences, train.headers, test.sequences, test.headers


def slowly(kernel: GappedKmer, x: str, z: str) -> int:
    """Σ over pairs of windows of the choices of k places among those that agree."""
    from math import comb

    g = kernel.g
    windows = [[s[i : i + g] for i in range(len(s) - g + 1)] for s in (x, z)]
    agree = (sum(a == b for a, b in zip(u, w, strict=True)) for u in windows[0] for w in windows[1])
    return sum(comb(same, kernel.k) for same in agree)


@benchmark(GROUP)
def spectrum(setting: Setting) -> Row:
    X = strings(setting.size(300, 30), 300, AMINO_ACIDS)
    if setting.data is not None and not setting.quick:
        X = both_halves(setting, "1.1")[0][:300]
    vectorizer = peers.need("sklearn.feature_extraction.text").CountVectorizer
    kernel = Spectrum(3)

    def peer() -> Any:
        F = vectorizer(analyzer="char", ngram_range=(3, 3), lowercase=False).fit_transform(X)
        return (F @ F.T).toarray()

    reference = peer()
    return Row(
        f"Spectrum(3), Gram matrix of {len(X)} proteins",
        ours=lambda: kernel(X),
        peer=peer,
        peer_name="scikit-learn's counts of characters",
        figure="seconds",
        target=at_most(0.02),
        error=lambda K: float(np.abs(K - reference).max()),
        tolerance=0.0,
    )


def windows(kernel: GappedKmer, X: Any, what: str, seconds: float) -> Row:
    """The seconds of a Gram matrix against a limit; five of its entries are checked window by window."""
    pairs = np.random.default_rng(0).integers(0, len(X), (5, 2))
    return Row(
        f"{kernel!r}, Gram matrix of {len(X)} {what}",
        ours=lambda: kernel(X),
        figure="seconds",
        target=at_most(seconds),
        error=lambda K: float(max(abs(K[i, j] - slowly(kernel, X[i], X[j])) for i, j in pairs)),
        tolerance=0.0,
        once=True,
    )


@benchmark(GROUP)
def gapped_kmers(setting: Setting) -> Row:
    X, _, Z, _ = both_halves(setting, "EP300")
    kernel = GappedKmer(setting.size(10, 5), setting.size(6, 3))
    return windows(kernel, np.concatenate([X, Z]), "DNA sequences (EP300)", 20.0)


@benchmark(GROUP)
def compared_windows(setting: Setting) -> Row:
    X = strings(setting.size(2000, 40), 100, "ACGT")
    kernel = GappedKmer(setting.size(13, 6), setting.size(6, 3))
    return windows(kernel, X, "random DNA sequences of 100 letters", 1.5)


@benchmark(GROUP)
def subsequences(setting: Setting) -> Row:
    X = strings(setting.size(1000, 30), setting.size(300, 20), AMINO_ACIDS)
    kernel = Subsequence(4, 0.5)
    return Row(
        f"Subsequence(4), Gram matrix of {len(X)} strings of {len(X[0])} letters",
        ours=lambda: kernel(X),
        figure="seconds",
        target=at_most(15.0),
        once=True,
    )


@benchmark(GROUP)
def substrings(setting: Setting) -> Row:
    X = strings(setting.size(1000, 30), setting.size(300, 20), AMINO_ACIDS)
    kernel = AllSubstrings(0.5)
    return Row(
        f"AllSubstrings, Gram matrix of {len(X)} strings of {len(X[0])} letters",
        ours=lambda: kernel(X),
        figure="seconds",
        once=True,
    )


def machine(kernel: Kernel, C: float) -> Any:
    """A support vector machine with the kernel."""
    return peers.ours("SVC")(C=C, kernel=kernel)


def on_rows(kernel: Kernel, C: float) -> Any:
    """A linear machine on the rows of K, as FastSK's own scripts fit it."""
    pipeline, linear = peers.need("sklearn.pipeline").make_pipeline, peers.need("sklearn.svm").LinearSVC
    return pipeline(peers.ours("EmpiricalKernelMap")(kernel), linear(C=C))


CURVES: dict[str, tuple[str, Kernel, float, Any, float]] = {
    "EP300": ("EP300", GappedKmer(10, 6), 1.0, machine, 0.01),
    "EP300_strands": ("EP300", GappedKmer(10, 6, both_strands=True), 1.0, machine, 0.01),
    "EP300_rows": ("EP300", GappedKmer(10, 6), 1.0, on_rows, 0.01),
    "protein": ("1.1", GappedKmer(8, 4), 0.01, machine, 0.15),
    "protein_rows": ("1.1", GappedKmer(8, 4), 0.01, on_rows, 0.15),
}


@benchmark(GROUP, task=tuple(CURVES))
def area(setting: Setting, task: str) -> Row:
    data, kernel, C, make, bound = CURVES[task]
    X, y, Z, truth = both_halves(setting, data)
    curve = peers.need("sklearn.metrics").roc_auc_score
    kernel = (kernel.replace(g=5, k=3) if setting.quick else kernel).normalized()
    how = "SVC" if make is machine else "EmpiricalKernelMap, then scikit-learn's LinearSVC"
    return Row(
        f"{data}, {kernel!r}, {how}, C = {C:g}: 1 − AUC on the test set",
        ours=lambda: make(kernel, C).fit(X, y).decision_function(Z),
        figure="error",
        target=at_most(bound),
        error=lambda scores: float(1 - curve(truth == "1", scores)),
        rounds=1,
    )


@benchmark(GROUP)
def sentiment(setting: Setting) -> Row:
    X, y, Z, truth = both_halves(setting, "sentiment")
    kernel = Spectrum(1, unit="word").normalized() + Spectrum(5).normalized()
    model = peers.need("sklearn.svm").SVC(C=1.0, kernel="precomputed")
    return Row(
        "sentiment, words and 5 characters, SVC, C = 1: error on the test set",
        ours=lambda: model.fit(kernel(X), y).predict(kernel(Z, X)),
        figure="error",
        target=at_most(0.24),
        error=lambda labels: float((labels != truth).mean()),
        rounds=1,
    )


@benchmark(GROUP, peer=("KernelRidge", "Ridge"), weighted=(True, False))
def ridge_of_words(setting: Setting, peer: str, weighted: bool) -> Row:
    """The linear kernel on sparse rows, as scikit-learn's vectorizers make them."""
    X, y, _, _ = both_halves(setting, "sentiment")
    texts = peers.need("sklearn.feature_extraction.text")
    words = texts.TfidfVectorizer(ngram_range=(1, 2)) if weighted else texts.CountVectorizer()
    S, y = words.fit_transform(X).astype(np.float64), (np.asarray(y) == "1").astype(np.float64)
    theirs = {
        "KernelRidge": lambda: peers.need("sklearn.kernel_ridge").KernelRidge(1.0, kernel="linear"),
        "Ridge": lambda: peers.need("sklearn.linear_model").Ridge(
            1.0, fit_intercept=False, solver="sparse_cg", tol=1e-12
        ),
    }[peer]()
    model, exact = peers.ours("KernelRidge")("linear", alpha=1.0), theirs.fit(S, y).predict(S)
    return Row(
        f"KernelRidge, linear, {'weighted words' if weighted else 'counts of words'}, sparse, {len(y)} × {S.shape[1]}",
        ours=lambda: model.fit(S, y),
        peer=lambda: theirs.fit(S, y),
        peer_name=f"scikit-learn {peer}",
        target=at_least(5 if peer == "KernelRidge" else 0.3),
        error=lambda fitted: float(np.abs(fitted.predict(S) - exact).max()),
        tolerance=1e-6,
        rounds=3,
    )


@benchmark(GROUP, kernel=("linear", "rbf"))
def machine_of_words(setting: Setting, kernel: str) -> Row:
    """Entries of sparse rows: of each word only the texts that have it."""
    X, y, Z, truth = both_halves(setting, "sentiment")
    words = peers.need("sklearn.feature_extraction.text").TfidfVectorizer()
    S, T = words.fit_transform(X), words.transform(Z)
    theirs = peers.need("sklearn.svm").SVC(kernel=kernel, gamma=1.0)
    model = peers.ours("SVC")(kernel="linear" if kernel == "linear" else Gaussian(1.0))
    return Row(
        f"SVC, {kernel}, fit, weighted words, sparse, {S.shape[0]} × {S.shape[1]}",
        ours=lambda: model.fit(S, y),
        peer=lambda: theirs.fit(S, y),
        peer_name="scikit-learn",
        target=at_least(3),
        error=lambda fitted: float((fitted.predict(T) != truth).mean()),
        tolerance=1.0 if setting.quick else 0.26,
        rounds=3,
    )


@benchmark(GROUP)
def ridge_of_texts(setting: Setting) -> Row:
    X, y, Z, _ = both_halves(setting, "sentiment")
    X, Z = ([" ".join(text.split()) for text in texts] for texts in (X, Z))  # as scikit-learn reads them
    texts, pipeline = peers.need("sklearn.feature_extraction.text"), peers.need("sklearn.pipeline")
    ridge, scaled = peers.need("sklearn.linear_model").RidgeClassifier, peers.need("sklearn.preprocessing").Normalizer
    kernel = Spectrum(1, unit="word").normalized() + Spectrum(5).normalized()

    def peer() -> Any:
        words = texts.CountVectorizer(analyzer=str.split)
        characters = texts.CountVectorizer(analyzer="char", ngram_range=(5, 5), lowercase=False)
        counts = pipeline.make_union(*(pipeline.make_pipeline(one, scaled()) for one in (words, characters)))
        F = counts.fit_transform([*X, *Z])  # of all, or texts would be scaled without what the fit did not see
        return ridge(1.0, fit_intercept=False, tol=1e-10).fit(F[: len(X)], y).decision_function(F[len(X) :])

    reference = peer()
    return Row(
        f"{len(X)} texts, words and 5 characters, ridge classifier, fit and {len(Z)} predictions",
        ours=lambda: KernelRidgeClassifier(kernel, 1.0, fit_intercept=False).fit(X, y).decision_function(Z),
        peer=peer,
        peer_name="scikit-learn's sparse counts and ridge",
        error=lambda found: float(np.abs(found - reference).max()),
        tolerance=1e-6,
    )
