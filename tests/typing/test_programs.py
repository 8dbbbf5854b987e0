"""The programs that type checkers read also run."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

spec = importlib.util.spec_from_file_location("programs", Path(__file__).with_name("programs.py"))
programs = importlib.util.module_from_spec(spec)
sys.modules["programs"] = programs  # where `dataclass` looks for the names of types
spec.loader.exec_module(programs)


@pytest.mark.filterwarnings("ignore")  # of convergence and definiteness, which are not what this asks
@pytest.mark.parametrize("name", ["kernels", "operators", "regressors", "classifiers", "transformers", "groups"])
def test_programs_run(name):
    assert np.all(np.isfinite(getattr(programs, name)()))


@pytest.mark.filterwarnings("ignore")
def test_statements(tmp_path):
    assert "proved" in programs.statements(tmp_path)
