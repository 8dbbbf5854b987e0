"""The comparison that the other tests rely on can fail."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.testing import assert_close


@pytest.mark.parametrize(
    ("actual", "desired"),
    [
        ([1.0, 2e-6], [1.0, 0.0]),  # beyond rtol of the largest entry
        ([0.0, 0.0], [0.0, 1.0]),
        ([1e-300], [0.0]),  # a zero result has to be zero
        ([np.nan, 1.0], [0.0, 1.0]),
        ([np.inf, 1.0], [1.0, 1.0]),
        ([1.0, 1.0], [1.0]),  # no broadcasting
        ([1.0], 1.0 + 1e-5),
    ],
)
def test_arrays_that_differ_are_told_apart(actual, desired):
    with pytest.raises(AssertionError):
        assert_close(actual, desired, rtol=1e-6)


def test_the_error_is_relative_to_the_largest_entry():
    assert_close([1e6, 1e-1], [1e6, 0.0], rtol=1e-6)
    assert_close(np.full(3, 2.0), 2.0)
    assert_close([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0])
    assert_close([], [])
