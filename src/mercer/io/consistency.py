"""Does a model that was read hold together? So that a damaged file fails when it is read, not in a prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier

from mercer.errors import ModelFileError, message
from mercer.estimators import KernelPerceptron, KernelRidgeClassifier, Report
from mercer.estimators.online.stream import Stream
from mercer.io.table_model import TableModel
from mercer.io.transformers import broken_part, is_peer
from mercer.kernels import Kernel
from mercer.tables.encoder import TableEncoder
from mercer.tables.sequences import SequenceEncoder

__all__ = ["check_consistent"]

Test = Callable[[Any], bool]


def _numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _finite(value: Any) -> bool:
    """Finite numbers, of a dtype that LAPACK knows."""
    return _numbers(value) and value.dtype != np.float16 and bool(np.all(np.isfinite(value)))


def _report(value: Any) -> bool:
    """A report whose entries are of the kinds that it prints."""
    if not isinstance(value, Report):
        return False
    lists, blank = (value.notes, value.warnings), vars(Report())
    numbers = [name for name, one in blank.items() if isinstance(one, int | float)]
    texts = [getattr(value, name) for name, one in blank.items() if isinstance(one, str)]
    times = value.seconds, value.predicted
    return (
        all(_real(getattr(value, name)) for name in numbers)
        and all(isinstance(one, str) for one in texts)
        and all(isinstance(one, dict) for one in times)
        and all(isinstance(name, str) and _real(seconds) for one in times for name, seconds in one.items())
        and all(map(_texts, lists))
    )


def _real(value: Any) -> bool:
    return isinstance(value, int | float | np.number)


def _count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)


def _rows(value: Any) -> bool:
    """A table of numbers, or objects, of which the kernel knows more: see `_check_objects`."""
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object and value.ndim > 0):
        return True
    return _numbers(value) or sp.issparse(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_VOTES = {"rows", "classes", "rivals", "amounts", "visits"}
_KINDS: dict[str, tuple[str, Test]] = {
    "kernel_": ("a kernel", lambda value: isinstance(value, Kernel)),
    "X_fit_": ("rows", _rows),
    **dict.fromkeys(
        ("dual_coef_", "dual_coef_y_", "offset_y_", "dual_rotations_", "score_offset_"),
        ("an array of finite numbers", _finite),
    ),
    **dict.fromkeys(("priors_", "score_means_", "score_covariance_"), ("an array of finite numbers", _finite)),
    "kernel_y_": ("a kernel", lambda value: isinstance(value, Kernel)),
    "Y_fit_": ("rows", _rows),
    "eigenvalues_": ("an array of finite numbers", _finite),
    "eigenvectors_": ("an array of finite numbers", _finite),
    "column_means_": ("an array of finite numbers", _finite),
    "mean_coef_": ("an array of finite numbers", _finite),
    "decoder_mean_": ("an array of finite numbers", _finite),
    "decoder_": ("a model or none", lambda value: value is None or isinstance(value, BaseEstimator)),
    "n_samples_seen_": ("a count", _count),
    "restricted_": ("true or false", lambda value: isinstance(value, bool)),
    "_feature_root": ("an array of numbers", _numbers),
    "_feature_moments": ("four moments", lambda value: isinstance(value, tuple) and len(value) == 4),
    "explained_variance_": ("an array of numbers", _numbers),
    "explained_variance_ratio_": ("an array of numbers", _numbers),
    **dict.fromkeys(("loo_predictions_", "loo_decision_function_"), ("an array of numbers", _numbers)),
    "sample_weight_": ("an array of numbers or nothing", lambda value: value is None or _numbers(value)),
    **dict.fromkeys(("alpha_", "best_score_"), ("numbers", lambda value: _numbers(value) or _real(value))),
    "intercept_": ("finite numbers", lambda value: _finite(value) or (_real(value) and np.isfinite(value))),
    **dict.fromkeys(
        ("labels_", "cluster_weights_", "center_norms_", "cluster_centers_", "embedding_"),
        ("an array of numbers", _numbers),
    ),
    "temperature_": ("a positive number", lambda value: _real(value) and bool(0 < value < np.inf)),
    "n_clusters_": ("a count", _count),
    "history_": ("an array of numbers", _numbers),
    "votes_": ("the updates that vote", lambda value: isinstance(value, dict) and set(value) == _VOTES),
    "components_": ("rows", _rows),
    **dict.fromkeys(("normalization_", "frequencies_", "means_"), ("an array of finite numbers", _finite)),
    **dict.fromkeys(("support_", "n_support_", "calibration_"), ("an array of finite numbers", _finite)),
    "classes_": ("an array", lambda value: isinstance(value, np.ndarray) and value.ndim == 1),
    "feature_names_in_": (
        "an array of names",
        lambda value: isinstance(value, np.ndarray) and value.dtype.kind in "OU",
    ),
    "n_features_in_": ("a count", _count),
    "n_rows_": ("a count", _count),
    "report_": ("a report", _report),
    "columns_": ("names", _texts),
    "kinds_": ("names", _texts),
    "flags_": ("names", _texts),
    "forms_": ("names", _texts),
    "feature_names_out_": ("names", _texts),
    "summary_": ("sentences", _texts),
    "numbers_": ("an array of numbers", _numbers),
    "categories_": ("lists of names", lambda value: isinstance(value, list) and all(map(_texts, value))),
}


_NEEDED: dict[str, tuple[str, ...]] = {
    "Nystroem": ("kernel_", "components_", "normalization_"),
    "EmpiricalKernelMap": ("kernel_", "components_"),
    "RandomFourierFeatures": ("kernel_", "frequencies_", "scale_"),
    "KernelKMeans": ("kernel_", "X_fit_", "labels_", "cluster_weights_", "center_norms_"),
    "KernelSpectralClustering": ("kernel_", "X_fit_", "dual_coef_", "cluster_centers_", "labels_", "cluster_weights_"),
    "MonomialFeatures": ("n_output_features_",),
    "PolynomialSketch": ("kernel_", "coefficients_", "places_", "exact_", "hash_buckets_", "hash_signs_"),
    **dict.fromkeys(
        ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"),
        ("kernel_", "X_fit_", "support_", "n_support_", "dual_coef_", "intercept_", "restricted_"),
    ),
    **dict.fromkeys(
        ("KernelRidge", "KernelRidgeClassifier", "KernelRidgeCV", "KernelRidgeClassifierCV"),
        ("kernel_", "X_fit_", "dual_coef_", "intercept_"),
    ),
    "KernelPCA": ("kernel_", "X_fit_", "dual_coef_", "eigenvalues_", "column_means_", "mean_coef_"),
    "KernelPLS": ("kernel_", "X_fit_", "dual_coef_", "dual_rotations_", "score_offset_"),
    "KernelDiscriminantAnalysis": (
        *("kernel_", "X_fit_", "dual_coef_", "classes_"),
        *("priors_", "score_means_", "score_covariance_"),
    ),
    "KernelCCA": ("kernel_", "X_fit_", "dual_coef_", "kernel_y_", "Y_fit_", "dual_coef_y_"),
}
"""What a fitted model of a class must have; the others have training rows and their coefficients."""


def check_consistent(model: BaseEstimator, path: str) -> None:
    """Raise ModelFileError unless the fitted attributes are of their kinds, and of sizes that go together."""
    for name, value in vars(model).items():
        if name in _KINDS and not is_peer(model) and not _KINDS[name][1](value):
            _refuse(path, f"{type(model).__name__}.{name} is not {_KINDS[name][0]}")
    for one in vars(model).values():
        for part in _parts(one):
            check_consistent(part, path)
    if is_peer(model):
        broken = broken_part(model)
        if broken is not None:
            _refuse(path, broken)
    elif isinstance(model, TableModel):
        _check_table_model(model, path)
    elif isinstance(model, TableEncoder):
        _check_encoder(model, path)
    elif isinstance(model, SequenceEncoder):
        return
    else:
        _check_rows(model, path)


def _parts(value: Any) -> list[BaseEstimator]:
    """The models in an attribute, and in its lists of steps."""
    if isinstance(value, BaseEstimator):
        return [value]
    if isinstance(value, list | tuple):
        return [part for one in value for part in _parts(one)]
    return []


def _check_rows(model: Any, path: str) -> None:
    state = vars(model)
    if not any(name.endswith("_") for name in state):
        return  # not fitted
    for name in _NEEDED.get(type(model).__name__, ("kernel_", "X_fit_", "dual_coef_")):
        if name not in state:
            _refuse(path, f"{type(model).__name__} has no {name}")
    if is_classifier(model) and "classes_" not in state:
        _refuse(path, f"{type(model).__name__} has no classes_")
    if "score_covariance_" in state:
        _check_gaussians(model, path)
    if "X_fit_" in state:
        _check_training(model, state, path)


def _check_gaussians(model: Any, path: str) -> None:
    """Of each class a prior and a mean score, and one covariance of the scores that has an inverse."""
    c, k = len(model.classes_), model.dual_coef_.shape[-1]
    wanted = {"priors_": (c,), "score_means_": (c, k), "score_covariance_": (k, k)}
    for name, shape in wanted.items():
        if getattr(model, name).shape != shape:
            _refuse(path, f"{name} is not of the shape {shape}")
    try:
        np.linalg.solve(model.score_covariance_, model.score_means_.T)
    except np.linalg.LinAlgError:
        _refuse(path, "the covariance of the scores is singular")
    if not np.min(model.priors_) > 0:
        _refuse(path, "priors_ that are not positive")


def _check_training(model: Any, state: dict[str, Any], path: str) -> None:
    X = model.X_fit_
    n = len(X) if isinstance(X, list | tuple) else X.shape[0] if X.ndim else -1
    _check_objects(model.kernel_, X, path)
    if "Y_fit_" in state:
        _check_objects(model.kernel_y_, model.Y_fit_, path)
    if "support_" in state:
        _check_support_vectors(model, state, n, path)
        return
    by_row = ("dual_coef_", "eigenvectors_", "column_means_", "mean_coef_", "sample_weight_", "dual_rotations_")
    for name in (*by_row, "_feature_root"):
        if state.get(name) is not None and (state[name].ndim == 0 or len(state[name]) != n):
            _refuse(path, f"{name} of shape {state[name].shape} for {n} training rows")
    if model.kernel_.domain == "vectors" and (X.ndim != 2 or X.shape[1] != state.get("n_features_in_", X.shape[1])):
        _refuse(path, f"training rows of shape {X.shape} for {state.get('n_features_in_')} columns")
    if "Y_fit_" in state and len(state["dual_coef_y_"]) != state["Y_fit_"].shape[0]:
        _refuse(path, f"dual_coef_y_ of shape {state['dual_coef_y_'].shape} for {state['Y_fit_'].shape[0]} rows")
    if "labels_" in state:
        _check_clusters(model, n, path)
    else:
        _check_outputs(model, path)
    if isinstance(model, Stream) and not model._state_fits():
        _refuse(path, f"the state of a learner that is none of {n} rows")
    if "votes_" in state:
        _check_votes(model, n, path)
    bias = int(isinstance(model, KernelPerceptron))  # α₀, which a frame begins with
    if "history_" in state and model.history_.shape[1:] != (bias + n, *model.dual_coef_.shape[1:]):
        _refuse(path, f"a history of shape {model.history_.shape} for {n} training rows")
    decoder = state.get("decoder_")
    if decoder is not None and decoder.n_features_in_ != model.dual_coef_.shape[-1]:
        _refuse(path, f"a decoder of {decoder.n_features_in_} scores for {model.dual_coef_.shape[-1]} components")


def _check_objects(kernel: Kernel, X: Any, path: str) -> None:
    """Objects are such as the kernel takes; rows of vectors and of kernel values are numbers."""
    if kernel.domain == "any":
        kernel.as_objects(X)
    elif not (_numbers(X) or sp.issparse(X)):
        _refuse(path, f"training rows of type {type(X).__name__} for {kernel!r:.60}")


def _check_votes(model: Any, n: int, path: str) -> None:
    """Every vote is of a training row, for and against a class; they are those of one list of updates."""
    votes, c = model.votes_, len(model.classes_)
    if not all(_numbers(one) and one.ndim == 1 and len(one) == len(votes["rows"]) for one in votes.values()):
        _refuse(path, "votes of several lengths")
    for name, most in (("rows", n), ("classes", c), ("rivals", c)):
        if votes[name].dtype.kind not in "iu" or np.any((votes[name] < 0) | (votes[name] >= most)):
            _refuse(path, f"votes whose {name} are not below {most}")


def _check_support_vectors(model: Any, state: dict[str, Any], n: int, path: str) -> None:
    """Coefficients by column, and an intercept for each pair of classes, or one."""
    X, k = model.X_fit_, len(state["classes_"]) if "classes_" in state else 0
    rest = getattr(model, "multi_class", "ovo") == "ovr" and k > 2
    if model.kernel_.domain == "vectors" and (X.ndim != 2 or X.shape[1] != state.get("n_features_in_", X.shape[1])):
        _refuse(path, f"support vectors of shape {X.shape} for {state.get('n_features_in_')} columns")
    outputs, restricted = k if rest else max(k * (k - 1) // 2, 1), state["restricted_"]
    wanted = {
        "dual_coef_": (outputs if restricted or rest else max(k - 1, 1), n),
        "support_": (0,) if restricted else (n,),
        "n_support_": (1,) if restricted else (max(k, 1),),
        "intercept_": (outputs,),
    }
    if "calibration_" in state:
        wanted["calibration_"] = (outputs, 2)
    for name, shape in wanted.items():
        if state[name].shape != shape:
            _refuse(path, f"{name} of shape {state[name].shape} for {n} support vectors of {k} classes")
    if model.n_support_.dtype.kind not in "iu" or np.min(model.n_support_) < 0 or model.n_support_.sum() != n:
        _refuse(path, f"n_support_ of {model.n_support_.tolist()} for {n} support vectors")


def _check_clusters(model: Any, n: int, path: str) -> None:
    """Of the training rows each has a label below the number of clusters, of which each has its means."""
    state, k = vars(model), model.n_clusters_
    labels = model.labels_
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or np.min(labels, initial=0) < 0 or labels.max() >= k:
        _refuse(path, f"labels of shape {labels.shape} for {k} clusters")
    for name in ("cluster_weights_", "center_norms_", "cluster_centers_"):
        if name in state and (state[name].ndim == 0 or len(state[name]) != k):
            _refuse(path, f"{name} of shape {state[name].shape} for {k} clusters")
    on_rows = "dual_coef_" not in state or "cluster_centers_" in state
    if on_rows and len(labels) != n:
        _refuse(path, f"{len(labels)} labels for {n} training rows")
    if "center_norms_" in state and not on_rows and model.dual_coef_.shape[1] != k:
        _refuse(path, f"coefficients of shape {model.dual_coef_.shape} for {k} clusters")
    if "cluster_centers_" in state and model.cluster_centers_.shape[1:] != model.dual_coef_.shape[1:]:
        _refuse(path, f"means of shape {model.cluster_centers_.shape} for {model.dual_coef_.shape[1]} components")


def _check_outputs(model: Any, path: str) -> None:
    if isinstance(model, KernelRidgeClassifier) and model.dual_coef_.ndim != 2:
        _refuse(path, f"dual_coef_ of shape {model.dual_coef_.shape} for a column of each output")
    outputs = 1 if model.dual_coef_.ndim == 1 else model.dual_coef_.shape[1]
    intercept = getattr(model, "intercept_", None)
    if intercept is not None and np.size(intercept) not in (1, outputs):
        _refuse(path, f"{np.size(intercept)} intercepts for {outputs} outputs")
    classes = getattr(model, "classes_", None)
    if classes is not None and intercept is not None and outputs != (1 if len(classes) == 2 else len(classes)):
        _refuse(path, f"{len(classes)} classes for {outputs} outputs")


def _check_encoder(encoder: Any, path: str) -> None:
    if "columns_" not in vars(encoder):
        if any(name.endswith("_") for name in vars(encoder)):
            _refuse(path, "the encoder has no columns_")
        return
    lists = [getattr(encoder, name, None) for name in ("columns_", "kinds_", "categories_", "flags_", "numbers_")]
    if any(one is None or len(one) != len(encoder.columns_) for one in lists):
        _refuse(path, "the encoder's columns are not all described")
    if encoder.numbers_.ndim != 2 or encoder.numbers_.shape[1] != 5:
        _refuse(path, f"the encoder's numbers have the shape {encoder.numbers_.shape}")
    plans = encoder._plans()  # refuses what no plan can be
    if any(plan.kind == "dropped" for plan in plans):
        _refuse(path, "the encoder keeps a column that is dropped")
    if sorted(plans, key=lambda plan: plan.of_objects) != plans:
        _refuse(path, "the encoder has a column of text before one of numbers")
    if encoder.feature_names_out_ != [feature for plan in plans for feature in plan.features]:
        _refuse(path, "the encoder's features are not those of its columns")


def _check_table_model(model: Any, path: str) -> None:
    encoders = TableEncoder | SequenceEncoder
    if not isinstance(model.encoder, encoders) or not isinstance(model.estimator, BaseEstimator):
        _refuse(path, "a table model without its encoder and estimator")
    if not isinstance(model.target, str):
        _refuse(path, "a table model without the name of its target")
    fitted = any(name.endswith("_") for part in (model.encoder, model.estimator) for name in vars(part))
    if fitted and "n_rows_" not in vars(model):
        _refuse(path, "a fitted table model has no n_rows_")
    if isinstance(model.encoder, SequenceEncoder):
        return
    rows: Any = getattr(model.estimator, "X_fit_", None)
    of_objects = isinstance(rows, np.ndarray) and rows.dtype == object
    if of_objects and rows.ndim != 2:
        _refuse(path, f"the encoder makes rows of columns and the estimator has an array of shape {rows.shape}")
    wide = len(model.encoder.feature_names_out_)
    fed = rows.shape[1] if of_objects else model.estimator.n_features_in_
    if wide != fed:
        _refuse(path, f"the encoder makes {wide} columns and the estimator takes {fed}")


def _refuse(path: str, what: str) -> None:
    raise ModelFileError(message(path, f"its contents do not fit together: {what}", "save the model again"))
