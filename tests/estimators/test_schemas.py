"""Every estimator leaves what it declares, and a model file keeps all of it or is refused."""

from __future__ import annotations

from copy import copy

import pytest
from sklearn.base import clone

from mercer import KernelSearchCV
from mercer.schemas import SchemaError
from mercer.testing import check_schema

pytest.importorskip("safetensors")


def test_a_fit_leaves_what_is_declared(example):
    if not isinstance(example.estimator, KernelSearchCV):
        assert check_schema(example.estimator, *example.first) > 4
        return
    model = clone(example.estimator).fit(*example.first)  # a search is not saved, but its best_estimator_ is
    assert vars(model).keys() - model.get_params(deep=False).keys() <= model.fitted.names
    model.fitted.check(model)
    for name, wrong in {"n_splits_": -1, "best_estimator_": None, "undeclared_": 1}.items():
        changed = copy(model)
        setattr(changed, name, wrong)
        with pytest.raises(SchemaError, match=name):
            model.fitted.check(changed)
