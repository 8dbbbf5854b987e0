"""Every estimator within a checkpoint: stopped at some of its steps, a fit that is run again has the same bits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mercer
from mercer.errors import Cancelled
from mercer.events import SolverStep, observe
from mercer.points import fingerprint

MOST = 4
"""Steps at which each fit is stopped."""


class Stop:
    def __init__(self, at=None):
        self.at, self.steps = at, 0

    def on_event(self, event):
        if isinstance(event, SolverStep):
            self.steps += 1
            if self.steps == self.at:
                raise Cancelled("stopped here")


def result(model):
    """What a fit found. The scores of a search have times beside them."""
    return fingerprint(getattr(model, "best_estimator_", model))


def test_a_fit_that_is_stopped_and_run_again_has_the_same_bits(example, tmp_path):
    path, data = tmp_path / "fit.checkpoint", example.first
    warnings.simplefilter("ignore")
    all_of_it = Stop()
    with observe(all_of_it):
        expected = result(example.new.fit(*data))
    for at in np.unique(np.linspace(1, all_of_it.steps, min(MOST, all_of_it.steps)).astype(int)):
        with pytest.raises(Cancelled), observe(Stop(at)), mercer.checkpoint(path, every=0):
            example.new.fit(*data)
        with mercer.checkpoint(path, every=0):
            assert result(example.new.fit(*data)) == expected
        assert not path.exists()
