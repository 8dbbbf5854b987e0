"""Kernels on sequences by their definitions, slowly."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np


def random_strings(seed=0, letters="abcæ", count=9, longest=12):
    """Among them an empty one, one letter, and a repeated one."""
    rng = np.random.default_rng(seed)
    lengths = [0, 1, 2, *rng.integers(1, longest, count - 3)]
    strings = ["".join(rng.choice(list(letters), n)) for n in lengths]
    return [*strings, strings[-1]]


def gram(function, X, Z=None):
    Z = X if Z is None else Z
    return np.array([[function(x, z) for z in Z] for x in X], float)


def kmers(x, k):
    return [tuple(x[i : i + k]) for i in range(len(x) - k + 1)]


def spectrum(x, z, k):
    a, b = Counter(kmers(x, k)), Counter(kmers(z, k))
    return sum(a[u] * b[u] for u in a)


def gapped(x, z, g, k):
    total = 0
    for places in combinations(range(g), k):
        a, b = (Counter(tuple(u[p] for p in places) for u in kmers(s, g)) for s in (x, z))
        total += sum(a[u] * b[u] for u in a)
    return total


def mismatch(x, z, k, m, alphabet):
    def near(s):
        known = [u for u in kmers(s, k) if set(u) <= set(alphabet)]
        words = product(alphabet, repeat=k)
        return np.array([sum(sum(a != b for a, b in zip(u, w, strict=True)) <= m for u in known) for w in words])

    return int(near(x) @ near(z))


def substrings(x, z, decay=1.0):
    a, b = (Counter(tuple(s[i:j]) for i in range(len(s)) for j in range(i + 1, len(s) + 1)) for s in (x, z))
    return sum(decay ** len(u) * a[u] * b[u] for u in a)


def subsequences(x, z, length, decay, exact=False):
    """Over all pairs of equal subsequences, each decay to the power of the two stretches that they span."""
    total = 0.0
    for q in range(length if exact else 1, length + 1):
        a, b = Counter(), Counter()
        for found, s in ((a, x), (b, z)):
            for places in combinations(range(len(s)), q):
                found[tuple(s[p] for p in places)] += decay ** (places[-1] - places[0] + 1)
        total += sum(a[u] * b[u] for u in a)
    return total
