"""What a fit's bits depend on, as fingerprints with names, and what differs between two."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_info

from mercer.engine.backend import engine
from mercer.errors import InvalidInput, message
from mercer.points import Points, fingerprint
from mercer.shards.reading import is_dask
from mercer.version import __version__

__all__ = ["differences", "environment", "identity"]


def environment() -> dict[str, str]:
    """Versions, engine, instruction set and threads.

    >>> environment()["mercer"] == __version__
    True
    """
    chosen = engine()
    own = chosen.capabilities
    return {
        "mercer": __version__,
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "machine": platform.machine(),
        "engine": ("compiled, " if own.compiled else "not compiled, ") + own.instruction_set,
        "threads": str(chosen.threads()),
        "BLAS": _blas(),
    }


@lru_cache(maxsize=1)
def _blas() -> str:
    """The BLAS libraries of this process. The search for them takes longer than a small fit."""
    blas = [one for one in threadpool_info() if one["user_api"] == "blas"]
    return ", ".join(sorted({f"{one['internal_api']} {one['version']} {one.get('architecture')}" for one in blas}))


def identity(model: Any, method: str, given: Mapping[str, Any]) -> dict[str, str]:
    """A fit: its name, its parameters and what was given to it.

    >>> from mercer.kernels import Gaussian
    >>> identity(Gaussian(), "fit", {"X": [[1.0]]})["fit"]
    'Gaussian.fit'
    """
    name = type(model).__name__
    own = {"fit": f"{name}.{method}"}
    for key, value in model.get_params(deep=False).items():
        own[key] = _brief(value, _print(name, key, value))
    for key, value in given.items():
        own[f"{key} of {method}"] = f"[{_print(name, key, value)}]"
    if getattr(model, "warm_start", False):
        own["the former fit"] = f"[{_print(name, 'warm_start', model)}]"
    return own


def _brief(value: Any, digest: str) -> str:
    """A parameter for people if its text is short, and its fingerprint."""
    text = repr(value)
    return f"{text} [{digest}]" if len(text) <= 60 and "\n" not in text else f"[{digest}]"


def _print(name: str, key: str, value: Any) -> str:
    if isinstance(value, Points):
        return value.fingerprint()
    if is_dask(value):
        return _by_blocks(value)
    try:
        return fingerprint(value)
    except InvalidInput as error:
        given = f"the fit of {name} within it has a {key} ({type(value).__name__}) that cannot be compared"
        raise InvalidInput(message("checkpoint", given, "give what can be pickled, or fit without one")) from error


def _by_blocks(table: Any) -> str:
    """The fingerprint of Dask's array or data frame by those of its blocks, which the workers compute.

    Other blocks of the same rows have another one; they may also give other bits.
    """
    import dask

    blocks = np.ravel(table.to_delayed()).tolist()
    return fingerprint(*dask.compute(*(dask.delayed(fingerprint, pure=False)(block) for block in blocks)))


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What differs, as text; empty if nothing does.

    >>> differences({"alpha": "1.0 [a]", "X of fit": "[b]"}, {"alpha": "2.0 [c]", "X of fit": "[d]"})
    'alpha was 1.0 and is 2.0; X of fit is another'
    """
    names = list(dict.fromkeys([*before, *now]))
    return "; ".join(_differs(name, before, now) for name in names if before.get(name) != now.get(name))


def _differs(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> str:
    if name not in before or name not in now:
        return f"{name} is {'new' if name in now else 'missing'}"
    was, is_now = (one[name].partition(" [")[0] for one in (before, now))
    told = was != is_now and not any(text.startswith("[") for text in (was, is_now))
    return f"{name} was {was} and is {is_now}" if told else f"{name} is another"
