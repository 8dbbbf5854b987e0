"""What the roundings of a sum leave out, against sums of fractions."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.gram.roundings import _summed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (2, 64), (3, 2, 33), (40, 5, 8)])
def test_terms_are_added_one_after_the_other(dtype, shape):
    """NumPy adds up halves where it can, whose roundings are fewer than the engine's."""
    terms = np.random.default_rng(0).exponential(size=shape).astype(dtype)
    terms[..., 0] *= 100
    sums, lost = _summed(terms)
    for place in np.ndindex(shape[:-1]):
        total = terms[place][0]
        for term in terms[place][1:]:
            total += term
        assert sums[place] == total
        exact = sum(map(Fraction, terms[place].tolist())) - Fraction(float(total))
        assert abs(lost[place] - float(exact)) <= 1e-14 * abs(float(exact))
