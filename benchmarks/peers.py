"""The other libraries, used as their documentation recommends. The rows of a missing library are skipped."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Missing, Setting

HEIGHTS = (16, 32, 64, 128, 256, 1024)
"""The numbers of rows of a tile to try for PyTorch."""
SIDES = (256, 512, 1024, 2048)
"""The same, for square tiles."""


def need(name: str) -> Any:
    """The module, or `Missing`."""
    try:
        return importlib.import_module(name)
    except ImportError as absent:
        raise Missing(f"{name.split('.')[0]} is not installed") from absent


def ours(name: str) -> Any:
    """An estimator of mercer, or `Missing`."""
    import mercer

    found = getattr(mercer, name, None)
    if found is None:
        raise Missing(f"this mercer has no {name}")
    return found


# ---- PyTorch -------------------------------------------------------------------------------------------------------


def torch_product(setting: Setting, X: Any, v: Any, gamma: float, symmetric: bool = False) -> Callable[[], Any]:
    """K v of the Gaussian in PyTorch, by the method and the tile that are fastest on this machine."""
    torch = need("torch")
    torch.set_num_threads(setting.threads)
    x, w, n = torch.from_numpy(X), torch.from_numpy(v), len(X)
    rows = list(itertools.product((_rows, _rows_augmented), HEIGHTS))
    ways = [(_squares, side) for side in SIDES] if symmetric else rows
    calls = [functools.partial(way, torch, x, w, gamma, min(size, n)) for way, size in ways]
    best = min(calls, key=_fastest)
    return lambda: best().numpy()


def _fastest(call: Callable[[], Any]) -> float:
    def seconds() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return min(seconds() for _ in range(3))


def _rows(torch: Any, x: Any, v: Any, gamma: float, height: int) -> Any:
    """Row tiles: −γ‖x−z‖² by a matrix product added to the norms, exp and the product with v in place."""
    x, n = x - x.mean(0), len(x)
    norms, xt = -gamma * (x * x).sum(1), x.t().contiguous()
    tile, out = torch.empty(height, n), torch.empty(n)
    for i in range(0, n, height):
        rows = x[i : i + height]
        t = tile[: len(rows)]
        torch.add(norms[i : i + height, None], norms, out=t)
        torch.mv(t.addmm_(rows, xt, alpha=2 * gamma).exp_(), v, out=out[i : i + height])
    return out


def _augmented(torch: Any, x: Any, gamma: float) -> tuple[Any, Any]:
    """a, b with ⟨aᵢ, bⱼ⟩ = −γ‖xᵢ − xⱼ‖²: the norms as two more features, which spares a pass over the tile."""
    x = x - x.mean(0)
    norms = -gamma * (x * x).sum(1, keepdim=True)
    one = torch.ones_like(norms)
    return torch.cat([2 * gamma * x, norms, one], 1), torch.cat([x, one, norms], 1).t().contiguous()


def _rows_augmented(torch: Any, x: Any, v: Any, gamma: float, height: int) -> Any:
    """Row tiles over augmented features."""
    (a, b), n = _augmented(torch, x, gamma), len(x)
    tile, out = torch.empty(height, n), torch.empty(n)
    for i in range(0, n, height):
        rows = a[i : i + height]
        torch.mv(torch.mm(rows, b, out=tile[: len(rows)]).exp_(), v, out=out[i : i + height])
    return out


def _squares(torch: Any, x: Any, v: Any, gamma: float, side: int) -> Any:
    """Square tiles on and above the diagonal over augmented features, each used for its rows and for its columns."""
    (a, b), n = _augmented(torch, x, gamma), len(x)
    tile, out = torch.empty(side * side), torch.zeros(n)
    for i in range(0, n, side):
        rows = slice(i, min(i + side, n))
        for j in range(i, n, side):
            columns = slice(j, min(j + side, n))
            height, width = rows.stop - i, columns.stop - j
            t = tile[: height * width].view(height, width)
            torch.mm(a[rows], b[:, columns], out=t).exp_()
            out[rows] += torch.mv(t, v[columns])
            if j > i:
                out[columns] += torch.mv(t.t(), v[rows])
    return out


# ---- KeOps ---------------------------------------------------------------------------------------------------------


def keops_product(X: Any, v: Any, gamma: float) -> Callable[[], Any]:
    """K v of the Gaussian as a KeOps lazy tensor on NumPy arrays; its formula is compiled before the timing."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            lazy = importlib.import_module("pykeops.numpy").LazyTensor
        x, z, w = lazy(X[:, None, :]), lazy(X[None, :, :]), np.ascontiguousarray(v[:, None])

        def product() -> Any:
            return ((-gamma * x.sqdist(z)).exp() @ w)[:, 0]

        with contextlib.redirect_stdout(sys.stderr):  # it speaks while it compiles
            product()
    except ImportError as absent:
        raise Missing("pykeops is not installed") from absent
    except Exception as failure:  # its compiler reports in exceptions of many kinds
        raise Missing(f"KeOps could not compile its formula ({type(failure).__name__}: {failure})") from failure
    return product
