"""Machines that are not at hand."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gram import reach


@pytest.fixture
def alone(monkeypatch):
    """Long doubles are float64, as on Windows and on Macs with Apple's processors."""
    monkeypatch.setattr(reach, "EXTENDED", np.dtype(np.float64))
    reach._tried.cache_clear()
    yield
    reach._tried.cache_clear()
