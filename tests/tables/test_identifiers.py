"""Counters and identifiers are told from measurements."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from mercer.tables import identifiers  # noqa: E402
from mercer.tables.identifiers import identifying_columns  # noqa: E402

rng = np.random.default_rng(0)
N = 200
COUNTERS = {
    "from 0": np.arange(N),
    "from 1": np.arange(1, N + 1),
    "shuffled": rng.permutation(N),
    "as floats": np.arange(N) * 1.0,
    "as texts": [f"{i:04d}" for i in range(N)],
}
IDENTIFIERS = {
    "PassengerId": rng.permutation(10 * N)[:N],
    "compound ID": [f"name{'x' * int(rng.integers(9))}{i}" for i in range(N)],
    "sample": [f"AB-{i}" for i in rng.permutation(N)],
    "hash": [f"{int(one):016x}" for one in rng.integers(2**60, 2**62, N)],
}
MEASUREMENTS = {
    "age": rng.integers(20, 80, N),
    "price": rng.permutation(10 * N)[:N],
    "length": np.sort(rng.normal(size=N)),
    "refractive index": 1.3 + rng.random(N),
    "every other": np.arange(0, 2 * N, 2),
    "customer id": rng.integers(0, 20, N),
    "a gap": np.r_[np.arange(N - 1), N],
    "with one missing": np.r_[np.nan, np.arange(1, N)],
    "town": rng.choice(["A1", "B2", "C3"], N),
    "day": pd.date_range("2024-01-01", periods=N).strftime("%d-%b-%Y"),
    "date": pd.date_range("2024-01-01", periods=N),
    "share": [f"{i / 7:.2f}%" for i in range(N)],
    "seq": ["".join(rng.choice(list("ACGT"), 12)) for _ in range(N)],
    "review": [f"this is what number {i} says of it" for i in range(N)],
    "yes": rng.random(N) < 0.5,
}


@pytest.mark.parametrize("name", COUNTERS)
def test_counters_are_found(name):
    assert "counter" in identifying_columns(pd.DataFrame({name: COUNTERS[name]}))[name]


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_identifiers_are_found(name):
    assert "identifier" in identifying_columns(pd.DataFrame({name: IDENTIFIERS[name]}))[name]


def test_measurements_are_kept():
    assert identifying_columns(pd.DataFrame(MEASUREMENTS)) == {}


def test_few_rows_are_too_few_to_tell():
    assert identifying_columns(pd.DataFrame({"a": [1.0, 0.0, 3.0, 2.0]})) == {}


def test_numbers_that_repeat_or_have_fractions_are_not_looked_at_one_by_one(monkeypatch):
    looked = []
    reason = identifiers._reason
    monkeypatch.setattr(identifiers, "_reason", lambda name, values: looked.append(name) or reason(name, values))
    frame = pd.DataFrame({"x": np.arange(30) / 2, "gap": [np.nan, *range(29)], "few": [1, 2] * 15, "row": range(30)})
    assert [*identifying_columns(frame)] == looked == ["row"]
