"""A plugin of pytest: scikit-learn's public modules hold mercer's classes before its tests are read.

What becomes of each test is written to the file that OUTCOMES names.
"""

import importlib
import json
import os
from pathlib import Path

import mercer.sklearn

outcomes: dict[str, str] = {}


def pytest_configure(config):
    for module, names in mercer.sklearn._MODULES.items():
        for name in names:
            setattr(importlib.import_module(module.removeprefix("mercer.")), name, getattr(mercer.sklearn, name))


def pytest_runtest_logreport(report):
    name = report.nodeid.rpartition("/")[2].replace(".py::", "::")
    if report.when == "call" or not report.passed:
        outcomes[name] = "xfailed" if hasattr(report, "wasxfail") else report.outcome


def pytest_sessionfinish(session):
    Path(os.environ["OUTCOMES"]).write_text(json.dumps(outcomes))
