"""Rows on which a formula has no value: refused by their number and with the reason, whatever is asked of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import is_regressor

import mercer
from mercer import select
from mercer.errors import InvalidInput

RATIO = "dot/(xx*zz)"
"""Positive semi-definite, and 0/0 at the zero row."""
POLE = "dot + 1/(xx*zz)"
"""Infinite there, so that sums are infinite and not NaN."""
ASKED = (
    "decision_function",
    "predict",
    "predict_proba",
    "transform",
    "score_samples",
    "spe",
    "hotelling_t2",
    "latent",
    "staged_decision_function",
    "staged_predict",
)


@pytest.fixture
def rows() -> np.ndarray:
    return np.abs(np.random.default_rng(0).standard_normal((60, 4))) + 0.1


def models() -> list[Any]:
    return [
        mercer.SVC(),
        mercer.SVC(solver="nystroem", n_landmarks=20, random_state=0),
        mercer.NuSVC(),
        mercer.SVR(),
        mercer.NuSVR(),
        mercer.OneClassSVM(),
        mercer.KernelRidge(),
        mercer.KernelRidge(solver="nystroem", n_landmarks=20, random_state=0),
        mercer.KernelRidgeClassifier(),
        mercer.KernelLogisticRegression(),
        mercer.KernelDiscriminantAnalysis(),
        mercer.KernelPCA(2),
        mercer.KernelPLS(2),
        mercer.KernelKMeans(2, keep_history=True, random_state=0),
        mercer.KernelKMeans(2, n_landmarks=20, random_state=0),
        mercer.KernelSpectralClustering(2, random_state=0),
        mercer.GaussianProcessRegressor(optimize=False),
        mercer.GaussianProcessClassifier(optimize=False),
        mercer.KernelLMS(keep_history=True),
        mercer.KernelPerceptron(keep_history=True),
        mercer.KernelPerceptron(method="voted"),
        mercer.OnlineKernelClassifier(),
        mercer.OnlineKernelRegressor(),
        mercer.Nystroem(n_components=20, random_state=0),
        mercer.EmpiricalKernelMap(),
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("formula", [RATIO, POLE])
@pytest.mark.parametrize("model", models(), ids=lambda model: repr(model)[:60])
def test_a_new_row_without_a_value_is_refused_by_its_number(model, formula, rows):
    y = rows[:, 0] if is_regressor(model) else rows[:, 0] > 0.8
    model.set_params(kernel=formula).fit(rows, y)
    new = rows.copy()
    new[3] = 0.0
    asked = [name for name in ASKED if hasattr(model, name) and ("history_" in vars(model) or name[:6] != "staged")]
    assert asked
    for name in asked:
        with pytest.raises(InvalidInput, match=r"has no value \(division by 0\) at row 3; define k there by where"):
            found = getattr(model, name)(new)
            if name.startswith("staged"):
                list(found)


@pytest.mark.parametrize("model", [mercer.SVC(), mercer.SVC(solver="nystroem"), mercer.NuSVC(), mercer.OneClassSVM()])
def test_a_machine_names_the_row_as_it_was_given(model, rows):
    """Machines sort rows by class."""
    y = np.arange(60) % 3
    rows[7] = 0.0
    with pytest.raises(InvalidInput, match=r"has no value \(division by 0\) at row 7; define"):
        model.set_params(kernel=RATIO).fit(rows, y)


@pytest.mark.parametrize("model", [mercer.GaussianProcessRegressor(), mercer.GaussianProcessClassifier()])
def test_a_process_says_what_is_wrong_with_its_matrix(model, rows):
    rows[7] = 0.0
    with pytest.raises(InvalidInput, match=r"has no value \(division by 0\) at row 7; define k there by where"):
        model.set_params(kernel=RATIO).fit(rows, np.arange(60) % 3)


def test_more_is_asked_of_a_model(rows):
    new = rows.copy()
    new[3] = 0.0
    process = mercer.GaussianProcessRegressor(kernel=RATIO, optimize=False).fit(rows, rows[:, 0])
    ridge = mercer.KernelRidge(RATIO).fit(rows, rows[:, 0])
    correlation = mercer.KernelCCA(2, kernel="linear", kernel_y=RATIO).fit(rows, rows)
    asked = [
        lambda: process.predict(new, return_std=True),
        lambda: process.predict(new, return_cov=True),
        lambda: ridge.posterior().std(new),
        lambda: ridge.posterior().covariance(new),
        lambda: correlation.transform(rows, new),
        lambda: mercer.explain(ridge, new),
    ]
    for one in asked:
        with pytest.raises(InvalidInput, match=r"has no value \(division by 0\) at row 3; define"):
            one()


def test_what_is_no_estimator_refuses_such_rows_too(rows):
    """Tests had p = 0.001 with a statistic of NaN, alignments 0, mixtures equal weights, and numbers of clusters -1."""
    new, y = rows.copy(), rows[:, 0]
    new[3] = 0.0
    asked = [
        lambda: mercer.mmd_test(new, rows, RATIO),
        lambda: mercer.mmd_test(new, rows, RATIO, estimator="linear"),
        lambda: mercer.hsic_test(new, rows[:, :1], RATIO),
        lambda: mercer.herd(new, 5, kernel=RATIO),
        lambda: mercer.thin(new, 5, kernel=RATIO),
        lambda: select.centered_alignment(RATIO, new, y),
        lambda: select.combine_kernels([RATIO, "gaussian"], new, y),
        lambda: select.combine_kernels([RATIO, "gaussian"], new, y, method="ridge"),
        lambda: select.choose_n_clusters(new, RATIO),
        lambda: select.cross_validate_kernel_pca(new, [RATIO]),
        lambda: select.log_marginal_likelihood(RATIO, new, y, 1.0),
        lambda: select.maximise_marginal_likelihood(RATIO, new, y),
    ]
    for one in asked:
        with pytest.raises(InvalidInput, match=r"without a finite k\(x, x\) for 1 row, the first of them row 3; stand"):
            one()
    with pytest.raises(InvalidInput, match="not finite"):
        select.alignment_weights([np.full((60, 60), np.nan), np.eye(60)], y)


@pytest.mark.parametrize(("formula", "verdict"), [(RATIO, "proved"), ("dot/(xx+zz-dot)", "undefined")])
def test_a_kernel_is_checked_on_rows_where_it_has_no_value(formula, verdict, rows):
    """It ended with an error of LAPACK."""
    rows[3] = 0.0
    found = mercer.check_kernel(formula, rows)
    assert found.verdict == verdict
    assert found.spectrum is None
    assert "rows without a finite k(x, x), the first of them 3" in str(found)
    assert "no value (division by 0)" in str(found)
