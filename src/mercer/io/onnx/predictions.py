"""What estimators predict, from the kernel values of new rows with the rows that they keep."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.estimators import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelCCA,
    KernelDiscriminantAnalysis,
    KernelLMS,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelPLS,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    OnlineKernelClassifier,
    OnlineKernelRegressor,
)
from mercer.estimators.base.pairwise import incidence
from mercer.estimators.discriminant.gaussian_classes import GaussianClasses
from mercer.io.onnx.graph import Graph

__all__ = ["ROW", "outputs"]

Outputs = dict[str, tuple[str, Any, tuple[Any, ...]]]
"""By its name in the file the value of an output, its dtype (None: that of the rows), and its shape."""

ROW = "m"
"""The name of the number of new rows."""

Regressor = (
    KernelRidge | KernelRidgeCV | SVR | NuSVR | KernelLMS | OnlineKernelRegressor | KernelPLS | GaussianProcessRegressor
)
Transformer = KernelPCA | KernelCCA
Classifier = KernelRidgeClassifier | KernelRidgeClassifierCV | KernelPerceptron | OnlineKernelClassifier
Machine = SVC | NuSVC


@singledispatch
def outputs(model: Any, graph: Graph, K: str) -> Outputs:
    """The outputs of a fitted model, K the name of k(new rows, kept rows); estimators of each kind are registered."""
    raise InvalidInput(message("to_onnx", f"a {type(model).__name__}", "give a model with a kernel expansion"))


@outputs.register(Regressor | Transformer)
def _of_expansion(model: Any, graph: Graph, K: str) -> Outputs:
    expansion = model._expansion()
    return {"variable": (_expanded(graph, K, expansion), None, (ROW, expansion.coefficients.shape[1]))}


@outputs.register(Nystroem)
def _of_features(model: Nystroem, graph: Graph, K: str) -> Outputs:
    normalization = model.normalization_
    return {"variable": (graph.add("MatMul", K, graph.constant(normalization)), None, (ROW, normalization.shape[1]))}


@outputs.register(Classifier)
def _of_scores(model: Any, graph: Graph, K: str) -> Outputs:
    return _by_scores(graph, _expanded(graph, K, model._expansion()), model.classes_)


@outputs.register(KernelLogisticRegression)
def _of_log_odds(model: KernelLogisticRegression, graph: Graph, K: str) -> Outputs:
    return _by_scores(graph, _expanded(graph, K, model._expansion()), model.classes_, probabilities=True)


@outputs.register(KernelDiscriminantAnalysis)
def _of_discriminants(model: KernelDiscriminantAnalysis, graph: Graph, K: str) -> Outputs:
    slopes, offsets = GaussianClasses(model.score_means_, model.score_covariance_).affine(model.priors_)
    if len(model.classes_) == 2:
        slopes, offsets = slopes[:, 1:] - slopes[:, :1], offsets[1:] - offsets[:1]
    projected = _expanded(graph, K, model._expansion())
    scores = graph.add("Add", graph.add("MatMul", projected, graph.constant(slopes)), graph.constant(offsets))
    found = _by_scores(graph, scores, model.classes_, probabilities=True)
    return found | {"variable": (projected, None, (ROW, len(slopes)))}


@outputs.register(OneClassSVM)
def _of_one_class(model: OneClassSVM, graph: Graph, K: str) -> Outputs:
    """f(x) − ρ, exactly 0 on the border."""
    add, zero = graph.add, graph.constant(np.float64(0.0))
    difference = add("Reshape", _expanded(graph, K, model._expansion()), graph.constant(np.array([-1])))
    border = graph.constant(np.float64(model._border()))
    scores = add("Where", add("LessOrEqual", add("Abs", difference), border), zero, difference)
    one = graph.constant(np.int64(1)), graph.constant(np.int64(-1))
    return {
        "label": (add("Where", add("GreaterOrEqual", scores, zero), *one), np.int64, (ROW,)),
        "scores": (scores, None, (ROW,)),
    }


@outputs.register(Machine)
def _of_machines(model: Any, graph: Graph, K: str) -> Outputs:
    """The decisions of pairs of classes, or of each class against the rest, as `SupportVectorClassifier` reads them."""
    decisions, k = _expanded(graph, K, model._expansion()), len(model.classes_)
    calibrated, pairs = hasattr(model, "calibration_"), not model._against_rest and k > 2
    if calibrated and pairs:
        given = (
            f"a {type(model).__name__} whose probabilities of {k} classes are coupled, which no operator of ONNX does"
        )
        raise InvalidInput(message("to_onnx", given, 'set multi_class="ovr" or probability=False before fit'))
    if pairs:
        return _by_votes(model, graph, decisions)
    if calibrated:
        slope, offset = (graph.constant(model.calibration_[:, i]) for i in (0, 1))
        decisions = graph.add("Add", graph.add("Mul", decisions, slope), offset)
    if not calibrated or k == 2:
        return _by_scores(graph, decisions, model.classes_, probabilities=calibrated)
    chances = graph.add("Max", _sigmoid(graph, decisions), graph.constant(np.finfo(float).tiny))
    total = graph.add("ReduceSum", chances, graph.constant(np.array([1])))
    return _by_scores(graph, graph.add("Log", graph.add("Div", chances, total)), model.classes_, probabilities=True)


def _by_votes(model: Any, graph: Graph, decisions: str) -> Outputs:
    """The class that wins most pairs, and of equals the first, or by `break_ties` that of the largest decisions."""
    add, (first, second) = graph.add, (one.astype(np.float64) for one in incidence(len(model.classes_)))
    won = graph.cast(add("Greater", decisions, graph.constant(np.float64(0.0))), np.float64)
    # Each class wins a pair or loses it: won·first + (1 − won)·second.
    difference = graph.constant(first - second)
    votes = add("Add", add("MatMul", won, difference), graph.constant(second.sum(axis=0)))
    confidence, one = add("MatMul", decisions, difference), graph.constant(np.float64(1.0))
    size = add("Mul", graph.constant(np.float64(3.0)), add("Add", add("Abs", confidence), one))
    scores = add("Add", votes, add("Div", confidence, size))
    found = _by_scores(graph, scores if model.break_ties else votes, model.classes_)
    if model.decision_function_shape == "ovo":
        return found | {"scores": (decisions, None, (ROW, len(first)))}
    return found | {"scores": (scores, None, (ROW, len(model.classes_)))}


def _by_scores(graph: Graph, scores: str, classes: np.ndarray, probabilities: bool = False) -> Outputs:
    """The class of the largest score; of one column, for two classes, the second if it is above 0."""
    add, two, written = graph.add, len(classes) == 2, _written(classes)
    if two:
        scores = add("Reshape", scores, graph.constant(np.array([-1])))
        top = graph.cast(add("Greater", scores, graph.constant(np.float64(0.0))), np.int64)
    else:
        top = add("ArgMax", scores, axis=1, keepdims=0)
    label = add("Gather", graph.constant(written), top)
    found: Outputs = {"label": (label, written.dtype, (ROW,))}
    found["scores"] = scores, None, (ROW,) if two else (ROW, len(classes))
    if probabilities:
        chances = _of_two(graph, scores) if two else add("Softmax", scores, axis=1)
        found["probabilities"] = chances, None, (ROW, len(classes))
    return found


def _written(classes: np.ndarray) -> np.ndarray:
    """The classes as ONNX has them: whole numbers of 64 bits, float64, truth values, or text."""
    texts = classes.dtype.kind == "O" and all(isinstance(one, str) for one in classes)
    found = classes.astype(str) if texts else classes
    if found.dtype.kind == "U" and all(one == one.encode(errors="replace").decode() for one in found.tolist()):
        return found
    if found.dtype.kind not in "biuf":
        given = f"classes of which one is {classes[-1]!r:.40}"
        raise InvalidInput(message("to_onnx", given, "fit with numbers or text as classes"))
    return found.astype({"i": np.int64, "u": np.uint64, "f": np.float64, "b": np.bool_}[found.dtype.kind])


def _of_two(graph: Graph, odds: str) -> str:
    column = graph.add("Unsqueeze", odds, graph.constant(np.array([1])))
    return _sigmoid(graph, graph.add("Concat", graph.add("Neg", column), column, axis=1))


def _sigmoid(graph: Graph, odds: str) -> str:
    """1/(1 + exp(−t)). The operator Sigmoid may be computed as a difference from 1, which loses small values."""
    one = graph.constant(np.float64(1.0))
    return graph.add("Div", one, graph.add("Add", one, graph.add("Exp", graph.add("Neg", odds))))


def _expanded(graph: Graph, K: str, expansion: Any) -> str:
    """K α + b, (m, outputs)."""
    product = graph.add("MatMul", K, graph.constant(expansion.coefficients.astype(np.float64)))
    return graph.add("Add", product, graph.constant(expansion.intercept.astype(np.float64)))
