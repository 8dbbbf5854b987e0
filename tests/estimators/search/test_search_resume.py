"""A search goes on with the file of the same search only: one test for each thing that its scores depend on."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import make_scorer
from sklearn.model_selection import GroupKFold, KFold

import mercer.estimators.search.kernel_search
from mercer import SVC, KernelRidge, KernelSearchCV
from mercer.errors import InvalidInput
from mercer.kernels import Function, Gaussian

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((40, 3)), RNG.standard_normal(40)
WEIGHTS, GROUPS, LABELS = RNG.uniform(1, 2, 40), np.arange(40) % 5, np.arange(40) % 2


def changed(array, place=17):
    out = np.array(array)
    out[place] += 1
    return out


def ends(row):
    """Forty rows of one entry each but two: where the first row ends is in `indptr` alone."""
    indptr = np.arange(41)
    indptr[1] = row
    return sp.csr_array((np.ones(40), np.arange(40) % 3, indptr), shape=(40, 3))


def test_what_an_estimator_was_fitted_to_does_not_count(tmp_path):
    path = tmp_path / "scores.json"
    for estimator in (KernelRidge("linear"), KernelRidge("linear").fit(X, Y)):
        grid = {"alpha": [0.1, 1.0], "kernel": ["linear", Gaussian()]}
        search = KernelSearchCV(estimator, grid, resume=path).fit(X, Y)
    assert search.method_.startswith("none: all scores were in")


def test_a_link_to_the_scores_stays_one_and_a_missing_folder_is_named(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "scores.json")
    search = KernelSearchCV(KernelRidge("linear"), {"alpha": [0.1, 1.0]}, resume=tmp_path / "link.json")
    search.fit(X, Y)
    assert (tmp_path / "link.json").is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.json", "scores.json"]
    with pytest.raises(InvalidInput, match=r"KernelSearchCV: .*cannot be written"):
        search.set_params(resume=tmp_path / "none" / "scores.json").fit(X, Y)


def worth(factor):
    return make_scorer(lambda y, f: factor * float(np.mean(np.abs(y - f))))


def scaled(factor):
    return Function(lambda A, B: factor * A @ B.T)


LONG = [np.where(np.arange(3000) == place, 2.0, 1.0) for place in (1500, 1501)]
RIDGE, GRID = KernelRidge("linear"), {"alpha": [0.1, 1.0]}
SAME = {"estimator": RIDGE, "grid": GRID, "X": X, "y": Y, "options": {}, "fit": {}}
CHANGES = {
    "rows": ({}, {"X": changed(X)}),
    "dtype": ({}, {"X": X.astype(np.float32)}),
    "where sparse rows end": ({"X": ends(0)}, {"X": ends(1)}),
    "targets": ({}, {"y": changed(Y)}),
    "weights": ({"fit": {"sample_weight": WEIGHTS}}, {"fit": {"sample_weight": changed(WEIGHTS)}}),
    "weights or none": ({}, {"fit": {"sample_weight": np.ones(40)}}),
    "how many folds": ({}, {"options": {"cv": 4}}),
    "which folds": (
        {"options": {"cv": KFold(3, shuffle=True, random_state=0)}},
        {"options": {"cv": KFold(3, shuffle=True, random_state=1)}},
    ),
    "groups": (
        {"options": {"cv": GroupKFold(2)}, "fit": {"groups": GROUPS}},
        {"options": {"cv": GroupKFold(2)}, "fit": {"groups": changed(GROUPS)}},
    ),
    "the scorer's name": ({"options": {"scoring": "r2"}}, {"options": {"scoring": "neg_mean_squared_error"}}),
    "a scorer that is written alike": ({"options": {"scoring": worth(1)}}, {"options": {"scoring": worth(2)}}),
    "what a failure scores": ({}, {"options": {"error_score": 0.0}}),
    "the race": ({}, {"options": {"halving": 2, "min_rows": 10}}),
    "the rows of a race": (
        {"options": {"halving": 2, "min_rows": 10}},
        {"options": {"halving": 2, "min_rows": 10, "random_state": 1}},
    ),
    "the first round of a race": (
        {"options": {"halving": 2, "min_rows": 10}},
        {"options": {"halving": 2, "min_rows": 20}},
    ),
    "a parameter of the estimator": ({}, {"estimator": KernelRidge("linear", fit_intercept=True)}),
    "the class of the estimator": ({"y": LABELS}, {"y": LABELS, "estimator": SVC(), "grid": {"C": [0.1, 1.0]}}),
    "a parameter of the kernel": ({"estimator": KernelRidge(Gaussian(1.0))}, {"estimator": KernelRidge(Gaussian(2.0))}),
    "a kernel that is written alike": ({"estimator": KernelRidge(scaled(1))}, {"estimator": KernelRidge(scaled(2))}),
    "a candidate": ({}, {"grid": {"alpha": [0.1, 2.0]}}),
    "a candidate's kernel, written alike": (
        {"grid": {"kernel": [scaled(1), scaled(3)]}},
        {"grid": {"kernel": [scaled(2), scaled(3)]}},
    ),
    "the middle of a candidate's array": (
        {"X": np.ones((40, 3000)), "grid": {"kernel": [Gaussian(1e-4).with_length_scales(LONG[0])]}},
        {"X": np.ones((40, 3000)), "grid": {"kernel": [Gaussian(1e-4).with_length_scales(LONG[1])]}},
    ),
}


def search(file, **what):
    what = {**SAME, **what}
    options = {"cv": 3, **what["options"], "resume": file}
    return KernelSearchCV(what["estimator"], what["grid"], **options).fit(what["X"], what["y"], **what["fit"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHANGES)
def test_a_search_of_something_else_is_refused(tmp_path, name):
    before, after = CHANGES[name]
    first = search(tmp_path / "file", **before)
    again = search(tmp_path / "file", **before)
    assert again.method_.startswith("none: all scores were in")
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], first.cv_results_["mean_test_score"])
    with pytest.raises(InvalidInput, match="is of other data"):
        search(tmp_path / "file", **after)


def test_the_middle_of_a_tensor(tmp_path):
    torch = pytest.importorskip("torch")
    rows = [torch.from_numpy(changed(np.zeros((40, 30)), (20, column))) for column in (15, 16)]
    assert repr(rows[0]) == repr(rows[1])
    search(tmp_path / "file", X=rows[0])
    with pytest.raises(InvalidInput, match="is of other data"):
        search(tmp_path / "file", X=rows[1])


def test_another_version(tmp_path, monkeypatch):
    search(tmp_path / "file")
    monkeypatch.setattr(mercer.estimators.search.kernel_search, "__version__", "another")
    with pytest.raises(InvalidInput, match="another version"):
        search(tmp_path / "file")


def test_what_the_scores_do_not_depend_on(tmp_path):
    """Where the rows lie, what was fitted before, and what is done with the winner."""
    search(tmp_path / "file")
    fitted = KernelRidge("linear").fit(X, Y)
    again = search(
        tmp_path / "file", X=np.asfortranarray(X), estimator=fitted, options={"refit": False, "memory": "1GB"}
    )
    assert again.method_.startswith("none: all scores were in")


def test_nothing_is_read_without_a_file():
    search(None, X=X, y=Y, options={"scoring": lambda model, X, y, unused=(one for one in "ab"): 0.0})


def test_a_stopped_search_has_no_score_of_the_fit_that_was_stopped(tmp_path):
    class Stop:
        left = 12

        def on_event(self, event):
            self.left -= 1
            if not self.left:
                raise mercer.errors.Cancelled("enough")

    grid = {"C": [0.1, 1.0, 10.0]}
    whole = search(None, estimator=SVC(), grid=grid, y=LABELS)
    for _ in range(2):
        with pytest.raises(mercer.errors.Cancelled), mercer.observe(Stop()):
            search(tmp_path / "file", estimator=SVC(), grid=grid, y=LABELS)
    resumed = search(tmp_path / "file", estimator=SVC(), grid=grid, y=LABELS)
    np.testing.assert_array_equal(resumed.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])


def test_a_cancelled_fit_stops_the_searches_of_scikit_learn():
    from sklearn.model_selection import GridSearchCV

    with pytest.raises(mercer.errors.Cancelled), mercer.observe(mercer.Cancel(when=lambda: True)):
        GridSearchCV(KernelRidge(), GRID, cv=2).fit(X, Y)
