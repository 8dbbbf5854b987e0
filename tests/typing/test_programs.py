"""The programs that type checkers read also run."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where `dataclass` looks for the names of types
    spec.loader.exec_module(module)
    return module


programs = loaded("programs")


@pytest.mark.filterwarnings("ignore")  # of convergence and definiteness, which are not what this asks
@pytest.mark.parametrize("name", ["kernels", "operators", "regressors", "classifiers", "transformers", "groups"])
def test_programs_run(name):
    assert np.all(np.isfinite(getattr(programs, name)()))


def test_every_kernel_is_imported():
    assert np.all(loaded("every_kernel").kernel()(np.eye(3)) > 0)


@pytest.mark.filterwarnings("ignore")
def test_statements(tmp_path):
    assert "proved" in programs.statements(tmp_path)
