"""The tables that notebooks show of an estimator say what its parameters and attributes are."""

from __future__ import annotations

import inspect
import re

import pytest

import mercer
from mercer import KernelRidge, NuSVR
from mercer.estimators.base.described import Described, description

KINDS = [
    one
    for one in (getattr(mercer, name) for name in mercer.__all__)
    if isinstance(one, type) and issubclass(one, Described)
]


def table(model, which):
    draw = getattr(model, which, None)
    if draw is None or not hasattr(draw(), "doc_link"):
        pytest.skip("this scikit-learn shows no descriptions")
    return draw()._repr_html_inner()


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_described(kind):
    for name in inspect.signature(kind).parameters:
        assert re.match(rf"{name}(: .|<br><br>.)", description(kind, "Parameters", name)), name
    assert description(kind, "Parameters", "nothing") == ""


def test_what_another_class_says_follows_a_reference_to_it():
    said = description(NuSVR, "Parameters", "tol")
    assert said.startswith("tol<br><br>As for <code>SVC</code>.<br><br>tol: float")
    assert description(mercer.SVC, "Parameters", "tol") in said
    inner = description(mercer.KernelRidgeClassifierCV, "Attributes", "dual_coef_")
    assert inner.count("<br><br>As ") == 1  # of KernelRidgeClassifier, which has its own
    assert "GridSearchCV</code>; several scorers too.<br><br>refit: bool, str" in description(
        mercer.KernelSearchCV, "Parameters", "refit"
    )


def test_the_table_of_parameters_has_descriptions_and_no_links():
    shown = table(KernelRidge("gaussian(gamma=2)"), "_get_params_html")
    assert shown.count('class="param-doc-description"') == len(inspect.signature(KernelRidge).parameters)
    assert "λ ≥ 0" in shown
    assert "href" not in shown


def test_the_table_of_fitted_attributes_has_descriptions():
    shown = table(KernelRidge().fit([[0.0], [1.0]], [0.0, 1.0]), "_get_fitted_attr_html")
    described = re.findall(r'tabindex="0"[^>]*>(\w+) ', shown)
    assert {"dual_coef_", "kernel_", "report_", "X_fit_"} <= set(described)
    assert "n_features_in_" not in described
    assert "n_features_in_" in shown


def test_descriptions_are_text():
    class Odd(KernelRidge):
        """A class.

        Parameters
        ----------
        kernel : <str> or None
            Not ``K < 0`` & so on.
        """

    assert description(Odd, "Parameters", "kernel") == (
        "kernel: &lt;str&gt; or None<br><br>Not <code>K &lt; 0</code> &amp; so on."
    )
    assert description(Odd, "Attributes", "kernel") == ""


def test_an_estimator_of_another_version_of_scikit_learn_is_shown_as_it_is(monkeypatch):
    plain = object()
    monkeypatch.setattr(Described.__mro__[1], "_get_params_html", lambda self, deep=True: plain, raising=False)
    assert KernelRidge()._get_params_html() is plain
