"""The fuzz in short, and that it can fail; in full it is ``python tests/robustness/fuzz.py --cases 200000``."""

from __future__ import annotations

import fuzz
import numpy as np
import pytest
from oracles import EXTENDED

from mercer.gram import operator

pytestmark = pytest.mark.skipif(not EXTENDED, reason="long doubles are float64 here: there is no oracle")


def test_no_number_is_wrong_without_a_word():
    outcomes, wrong = fuzz.run(0, 600)
    assert wrong == []
    assert outcomes["right"] > 400


@pytest.mark.soak
def test_no_number_is_wrong_in_many_cases():
    assert fuzz.run(100_000, 5_000)[1] == []


@pytest.mark.parametrize(
    "draw", [1461, 10299, 2003774, 2049508, 3101812, 4002288, 50005086, 70108356, 70321020, 110011716]
)
def test_draws_that_were_wrong_once(draw):
    assert [why for what, why in fuzz.one(draw) if what in ("WRONG", "CRASH")] == []


@pytest.mark.usefixtures("alone")
def test_no_number_is_wrong_where_long_doubles_are_float64():
    assert fuzz.run(0, 200)[1] == []
    assert [why for draw in (70000450, 70002954) for what, why in fuzz.one(draw) if what == "WRONG"] == []


def test_the_fuzz_finds_what_float32_cannot_hold(monkeypatch):
    """Entries taken to be held by any precision, as they once were."""
    monkeypatch.setattr(operator, "kernel_holds", lambda *_: True)
    with np.errstate(all="ignore"):
        assert fuzz.run(0, 600)[1]


def test_every_check_can_be_right():
    """A check that every kernel and every estimator refuses would find nothing."""
    for check in dict.fromkeys([*fuzz.ALWAYS, *fuzz.SOMETIMES]):
        with np.errstate(all="ignore"):
            cases = (fuzz.drawn(np.random.default_rng(seed)) for seed in range(100))
            some = (case for case in cases if case.kernel.properties.definiteness.is_mercer)
            assert any(fuzz.outcome(case, check)[0] == "right" for case in some), check.__name__
