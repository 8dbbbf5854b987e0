"""A fitted model as an ONNX graph, and the file of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.estimators import Nystroem
from mercer.files import write_whole
from mercer.io.codec import registry
from mercer.io.onnx.formulas import Formula
from mercer.io.onnx.graph import Graph, require_room
from mercer.io.onnx.predictions import ROW, outputs
from mercer.io.outputs import refuse_other_kind
from mercer.kernels import Kernel
from mercer.kernels.base import trace_or_none
from mercer.points import count, vectors_of

__all__ = ["to_onnx"]

SCALERS = (StandardScaler, RobustScaler, MaxAbsScaler, MinMaxScaler)


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None) -> Any:
    """f(x) = b + Σⱼ αⱼ k(x, xⱼ) of a fitted model as an ONNX graph, which runtimes without Python compute.

    Every kernel on rows of numbers whose formula can be traced is translated, your own too. The input is ``X``, of
    shape (m, d), in the dtype of the rows that the model keeps. The outputs have the names that skl2onnx gives them:

    - regressors and transformers: ``variable``, of shape (m, outputs);
    - classifiers: ``label``; ``scores`` of `decision_function`; ``probabilities`` where there is `predict_proba`;
    - `OneClassSVM`: ``label``, 1 or −1, and ``scores``.

    All arithmetic is in float64, as in `predict`; outputs are in the dtype of ``X``. The graph checks no rows: where
    `predict` refuses a NaN, the graph computes with it. Runtimes since ONNX 1.12 (opset 17) read it.

    Parameters
    ----------
    model : estimator
        With an expansion over rows of numbers, alone or in a pipeline after scikit-learn's scalers.
    path : path-like, optional
        Where to write the graph too. An existing ONNX file is replaced, any other existing file is refused.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    InvalidInput
        For a model, a step or a kernel that cannot be translated, a graph above 2 GiB, a folder that does not exist,
        an existing file of another kind, or without onnx.

    Examples
    --------
    >>> from mercer import KernelRidge
    >>> model = KernelRidge("gaussian(gamma=0.5)").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5])
    >>> [one.name for one in to_onnx(model).graph.output]
    ['variable']
    """
    graph = Graph()
    if path is not None:
        refuse_other_kind("to_onnx", Path(path), "an ONNX file", is_onnx_file)
    scalers, estimator = _steps(model)
    rows = _rows(estimator)
    x, z = _scaled(graph, _float64(graph, "X", rows.dtype), scalers), _float64(graph, graph.constant(rows), rows.dtype)
    K = Formula(graph, x, z, len(rows), rows.shape[1], _formula(estimator.kernel_)).matrix()
    ends = []
    for name, (value, dtype, shape) in outputs(estimator, graph, K).items():
        if dtype is None:  # a number that was computed
            graph.cast(value, rows.dtype, name)
        else:
            graph.add("Identity", value, name=name)
        ends.append((name, rows.dtype if dtype is None else dtype, shape))
    doc = f"{type(estimator).__name__} of mercer, {estimator.kernel_!r:.200}"
    made = graph.model([("X", rows.dtype, (ROW, rows.shape[1]))], ends, doc)
    if path is not None:
        write_whole(Path(path), made.SerializeToString(), "to_onnx")
    return made


def is_onnx_file(path: Path) -> bool:
    """Whether a file begins like a graph of ONNX: its version, a small number, and then the text of its producer.

    >>> is_onnx_file(Path("nowhere.onnx"))
    False
    """
    try:
        with path.open("rb") as file:
            start = file.read(3)
    except OSError:
        return False
    return len(start) == 3 and start[0] == 0x08 and 0 < start[1] < 0x80 and start[2] == 0x12


def _steps(model: Any) -> tuple[list[Any], Any]:
    """The scalers before the estimator, and the estimator, fitted and one of mercer's that `outputs` knows."""
    steps = [one for _, one in model.steps if one not in (None, "passthrough")] if type(model) is Pipeline else [model]
    *scalers, estimator = steps
    if other := next((one for one in scalers if type(one) not in SCALERS), None):
        do = f"scale with {', '.join(one.__name__ for one in SCALERS)}, or transform the rows before the graph"
        raise InvalidInput(message("to_onnx", f"a pipeline with a {type(other).__name__}", do))
    kind = type(estimator)
    if registry().get(kind.__name__) is not kind or outputs.dispatch(kind) is outputs.dispatch(object):
        known = f"give one of {', '.join(sorted(one.__name__ for one in outputs.registry if one is not object))}"
        do = "give its best_estimator_" if hasattr(estimator, "best_estimator_") else known
        raise InvalidInput(message("to_onnx", f"a {kind.__name__} of {kind.__module__.partition('.')[0]}", do))
    check_is_fitted(estimator)
    return scalers, estimator


def _formula(kernel: Kernel) -> Any:
    formula = trace_or_none(kernel) if kernel.space.vectors else None
    if formula is None:
        given = f"{kernel!r:.100}, which has no formula over rows of numbers"
        raise InvalidInput(message("to_onnx", given, "choose a kernel that is traceable"))
    return formula


def _rows(estimator: Any) -> np.ndarray:
    """The rows of the expansion as an array."""
    _formula(estimator.kernel_)
    kept = estimator.components_ if isinstance(estimator, Nystroem) else estimator.X_fit_
    if kept is None or not count(kept):
        raise InvalidInput(message("to_onnx", "a model that keeps no row", "fit it to rows that it learns from"))
    rows = vectors_of(kept)
    require_room(rows.dtype.itemsize * rows.shape[0] * rows.shape[1])
    return np.ascontiguousarray(rows.dense())


def _float64(graph: Graph, value: str, dtype: Any) -> str:
    return value if dtype == np.float64 else graph.cast(value, np.float64)


def _scaled(graph: Graph, x: str, scalers: list[Any]) -> str:
    """The rows, in float64, as the scalers map them."""

    def then(operator: str, x: str, number: Any) -> str:
        return graph.add(operator, x, graph.constant(np.asarray(number, np.float64)))

    for one in scalers:
        if isinstance(one, MinMaxScaler):
            x = then("Add", then("Mul", x, one.scale_), one.min_)
        else:
            centre = one.mean_ if getattr(one, "with_mean", False) else getattr(one, "center_", None)
            x = x if centre is None else then("Sub", x, centre)
            x = x if one.scale_ is None else then("Div", x, one.scale_)
        if getattr(one, "clip", False):
            low, high = getattr(one, "feature_range", (-1.0, 1.0))
            x = then("Min", then("Max", x, low), high)
    return x
