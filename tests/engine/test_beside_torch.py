"""mercer and PyTorch in one process, imported in either order: two OpenMP libraries may abort or block it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

PROGRAM = """
import {first}
import {second}
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((300, 3))
y = X @ np.arange(3.0)
def trained():
    model = torch.nn.Linear(3, 1).double()
    rate = torch.optim.LBFGS(model.parameters(), max_iter=50, line_search_fn="strong_wolfe")
    def loss():
        rate.zero_grad()
        value = ((model(torch.from_numpy(X))[:, 0] - torch.from_numpy(y)) ** 2).mean()
        value.backward()
        return value
    rate.step(loss)
    return loss().item()
def fitted():
    return mercer.KernelRidge("linear", alpha=1e-9).fit(X, y).score(X, y)
one, other = ({first_fit}, {second_fit})
assert one() is not None and other() is not None
assert trained() < 1e-6 and fitted() > 1 - 1e-9, (trained(), fitted())
print(torch.__version__)
"""


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: mercer is not tried beside it"
)
@pytest.mark.parametrize("first", ["mercer", "torch"])
def test_both_orders_of_import_with_a_fit_in_each(first: str) -> None:
    names = {"mercer": "fitted", "torch": "trained"}
    second = next(name for name in names if name != first)
    code = PROGRAM.format(first=first, second=second, first_fit=names[first], second_fit=names[second])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "OMP" not in done.stderr
