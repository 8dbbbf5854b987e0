"""Advice for parameters that an estimator does not have, such as scikit-learn's, in constructors and searches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import lru_cache
from inspect import Parameter, getattr_static, signature
from typing import Any, Self

from mercer.errors import MercerError, UnknownParameter, message
from mercer.estimators.base.described import Described

__all__ = ["NamedParameters"]

OF_KERNELS = frozenset(("gamma", "degree", "coef0", "kernel_params"))
"""Words of scikit-learn's estimators that are parameters of the kernel here."""

NOTHING_DRAWN = "leave {word} out: the method draws nothing at random"
NOT_COPIED = "leave {word} out: rows are never changed"
INSTEAD: Mapping[str, tuple[tuple[str, str], ...]] = {
    "affinity": (("kernel", 'write kernel=..., such as kernel="rbf" or kernel="precomputed"'),),
    "eigen_solver": (("", "leave {word} out: there is no choice of solvers here"),),
    "iterated_power": (("tol", "give tol=...: iterations go on until it is reached"),),
    "remove_zero_eig": (("", "leave {word} out: components below rounding are always dropped"),),
    "copy": (("", NOT_COPIED),),
    "copy_X": (("", NOT_COPIED),),
    "copy_x": (("", NOT_COPIED),),
    "cache_size": (("memory", 'give the memory budget: memory="200MB" for cache_size=200'),),
    "shrinking": (("", "leave {word} out: variables at their bounds are always set aside while they stay there"),),
    "verbose": (("", "leave {word} out: with mercer.observe(mercer.Progress()): model.fit(...) shows progress"),),
    "n_jobs": (("", "leave {word} out: the engine uses the free cores, or as many as OMP_NUM_THREADS says"),),
    "pre_dispatch": (("", "leave {word} out: candidates share their work in one process"),),
    "C": (("alpha", "give alpha=..., the penalty: a larger C is a smaller alpha"),),
    "alpha": (
        ("C", "give C=...: a larger alpha is a smaller C"),
        ("delta", "give delta=..."),
        ("alphas", "give alphas=[...], the values to choose from, or fit the estimator without CV in its name"),
    ),
    "alphas": (("alpha", "give one alpha=...; the estimators with CV in their names choose among several"),),
    "shrinkage": (("delta", 'give delta=..., or delta="loo" to choose it'),),
    "reg_covar": (("delta", "give delta=..."),),
    "store_covariance": (("", "leave {word} out: covariance_ is always there"),),
    "probability": (("", "leave {word} out: a classifier with probabilities has predict_proba without it"),),
    "nu": (("C", "NuSVC and NuSVR have nu; here give C=..."),),
    "epsilon": (("nu", "nu=... chooses it; SVR has epsilon"),),
    "eta0": (("step_size", "give step_size=..."), ("eta", "give eta=...")),
    "learning_rate": (("step_size", "give step_size=..."), ("eta", "give eta=...")),
    "n_iter": (("max_iter", "give max_iter=..."), ("n_passes", "give n_passes=...")),
    "max_iter": (("n_passes", "give n_passes=..."), ("tol", "leave {word} out: tol=... says when to end")),
    "assign_labels": (("", "leave {word} out: labels are those of k-means on the embedded rows"),),
    "n_neighbors": (("kernel", 'give a kernel, or kernel="precomputed" and the matrix of neighbours to fit'),),
    "scale": (("", "leave {word} out: standardise the columns first, with scikit-learn's StandardScaler"),),
    "normalize": (("", "leave {word} out: standardise the columns first, with scikit-learn's StandardScaler"),),
    "class_weight": (("", "leave {word} out: give sample_weight to fit"),),
    "random_state": (("", NOTHING_DRAWN),),
}
"""For each word (parameter, advice): the first whose parameter the estimator has applies; "" always does."""


class NamedParameters(Described):
    """scikit-learn's parameters; a name that is none of them is answered with what to write instead."""

    def __new__(cls, *args: Any, **params: Any) -> Self:
        _refuse_unknown(cls, params)
        return super().__new__(cls)

    def __dir__(self) -> list[str]:
        """The names that completion offers: not the plain values of the class, which only its methods use."""
        own = vars(self)
        return [
            one
            for one in super().__dir__()
            if one[:1] == "_" or one in own or hasattr(type(getattr_static(self, one, None)), "__get__")
        ]

    def set_params(self, **params: Any) -> Self:
        own = {name.partition("__")[0]: value for name, value in params.items()}
        _refuse_unknown(type(self), own, getattr(self, "kernel", None))
        return super().set_params(**params)


_signature = lru_cache(maxsize=256)(signature)  # a constructor asks for it at each call


def _refuse_unknown(cls: type[Any], given: Mapping[str, Any], kernel: Any = None) -> None:
    """Refuse unknown parameters. `kernel` is that of an existing estimator, and None in a constructor."""
    if not given:
        return
    accepted = _signature(cls.__init__).parameters
    unknown = {name: value for name, value in given.items() if name not in accepted}
    if not unknown or any(each.kind is Parameter.VAR_KEYWORD for each in accepted.values()):
        return
    known = {name: str(each.annotation) for name, each in accepted.items() if name != "self"}
    of_kernel = {name: value for name, value in unknown.items() if name in OF_KERNELS and "kernel" in known}
    advice = [_instead(word, known) for word in unknown if word not in of_kernel]
    if of_kernel:
        start = given.get("kernel", accepted["kernel"].default if kernel is None else kernel)
        advice.insert(0, _in_kernel(cls, of_kernel, start, there=kernel is not None))
    shown = ", ".join(f"{name}={_plain(value)!r:.60}" for name, value in unknown.items())
    verb = "is not a parameter" if len(unknown) == 1 else "are not parameters"
    raise UnknownParameter(message(cls.__name__, f"{shown} {verb}", "; ".join(advice)))


def _instead(word: str, known: Mapping[str, str]) -> str:
    """What to write instead of a word, given the annotations of the parameters."""
    if word == "eigen_solver" and (solvers := re.findall(r"'(\w+)'", known.get("solver", ""))):
        return _instead_of_eigen_solver(solvers)
    for condition, do in INSTEAD.get(word, ()):
        if not condition or condition in known:
            return do.format(word=word)
    near = get_close_matches(word, known, n=1)
    return (f"did you mean {near[0]!r}? The" if near else "the") + f" parameters are {', '.join(known)}"


def _instead_of_eigen_solver(solvers: list[str]) -> str:
    """Advice by the values that `solver` takes: few estimators have those of scikit-learn.

    >>> _instead_of_eigen_solver(["auto", "cholesky", "cg"])
    'leave eigen_solver out, or choose solver="auto", "cholesky" or "cg"'
    """
    if "dense" in solvers:
        iterative = '"krylov"' if "krylov" in solvers else '"auto"'
        return f'write solver="auto" or "dense" as there, {iterative} for "arpack" and "randomized"'
    *others, last = (f'"{one}"' for one in solvers)
    return f"leave eigen_solver out, or choose solver={', '.join(others)} or {last}"


def _in_kernel(cls: type[Any], given: Mapping[str, Any], kernel: Any, *, there: bool) -> str:
    """Advice on setting a kernel's parameter: in its text, or by kernel__ if the estimator exists already."""
    values = {name: _plain(value) for name, value in given.items() if name != "kernel_params"}
    values |= {str(name): _plain(value) for name, value in dict(given.get("kernel_params") or {}).items()}
    try:
        found = cls._as_kernel(kernel)  # type: ignore[attr-defined]
    except (MercerError, TypeError, AttributeError):
        return f"write them in each kernel, such as {_called('gaussian', {'gamma': 0.1})!r}"
    names = {field.name for field in fields(found)}
    has = {name: value for name, value in values.items() if name in names}
    others = [name for name in values if name not in names]
    said = []
    if others:
        nested = any(name.rpartition("__")[2] in others for name in found.get_params())
        do = "write {} in the parts of {}" if nested else "leave {} out, which {} does not have"
        said.append(do.format(" and ".join(others), type(found).__name__))
    if has and there:
        said.insert(0, "set " + ", ".join(f"kernel__{name}={value!r}" for name, value in has.items()))
    elif has:
        name = kernel.strip() if isinstance(kernel, str) and kernel.strip().isidentifier() else ""
        write = f"kernel={_called(name, has)!r}" if name else f"{_called('', has)[1:-1]} in the kernel"
        said.insert(0, f"write {write}, and {', '.join(f'kernel__{one}' for one in has)} in set_params and searches")
    return "; ".join(said)


def _called(name: str, values: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in values.items())})"


def _plain(value: Any) -> Any:
    """A NumPy number as Python's, which is how it is written in a text."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
