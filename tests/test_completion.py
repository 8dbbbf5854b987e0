"""What completion offers: public names only, of packages and of estimators."""

import importlib
import pkgutil

import pytest

import mercer
from mercer import KernelPCA, KernelRidge, KernelSearchCV
from mercer.estimators.base.estimator import KernelEstimator
from mercer.estimators.base.parameters import NamedParameters

PACKAGES = ["mercer"] + [
    f"mercer.{one.name}" for one in pkgutil.iter_modules(mercer.__path__) if one.ispkg and one.name[0] != "_"
]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_shows_its_public_names(name):
    module = importlib.import_module(name)
    offered = [one for one in dir(module) if one != "__version__"]
    assert set(offered) >= set(module.__all__)
    assert all(hasattr(module, one) for one in offered)
    inner = set(offered) - set(module.__all__)
    assert not inner if name != "mercer" else inner <= {one.removeprefix("mercer.") for one in PACKAGES}


@pytest.mark.parametrize("model", [KernelRidge(), KernelPCA(), KernelSearchCV(KernelRidge(), {"alpha": [1.0]})])
def test_an_estimator_shows_its_parameters_methods_and_what_was_fitted(model):
    assert set(dir(model)) >= {*model.get_params(deep=False), "fit", "set_params", "__doc__"}
    model.fit([[0.0], [1.0], [3.0], [4.0], [5.0]], [0.0, 1.0, 2.0, 3.0, 4.0])
    assert set(dir(model)) >= set(vars(model))
    assert all(hasattr(model, one) for one in dir(model) if one[0] != "_")


def kinds(root):
    return [root, *(one for kind in root.__subclasses__() for one in kinds(kind))]


@pytest.mark.parametrize("kind", [one for one in kinds(NamedParameters) if one.__name__ in mercer.__all__])
def test_no_estimator_shows_what_its_methods_are_made_with(kind):
    model = kind.__new__(kind)
    plain = {
        name for base in KernelEstimator.__mro__ for name, one in vars(base).items() if isinstance(one, str | tuple)
    }
    assert {"penalty", "step_limit", "indefinite_meaning"} <= plain
    assert not {one for one in dir(model) if one[0] != "_"} & plain


def test_a_kernel_shows_what_users_call_or_override():
    shown = {name for name in dir(mercer.kernels.Gaussian() + 1.0) + dir(mercer.kernels.Gaussian()) if name[0] != "_"}
    assert not shown & {"precedence", "prefers_large_blocks", "counts_features", "checks_data", "has_fast_matmul"}
    assert not shown & {"rule_parameter", "prepared", "factors"}
    assert shown >= {"formula", "properties", "block", "diagonal", "gamma", "get_params", "resolve", "space", "left"}
