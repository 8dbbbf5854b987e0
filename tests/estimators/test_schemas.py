"""Every estimator leaves what it declares, and a model file keeps all of it or is refused."""

from __future__ import annotations

import pytest

from mercer.testing import check_schema

pytest.importorskip("safetensors")


def test_a_fit_leaves_what_is_declared(example):
    if example.name.startswith("search"):
        pytest.skip("a search is not saved: its best_estimator_ is")
    assert check_schema(example.estimator, *example.first) > 4
