"""Tests and examples plan by documented rates, so that they take the same ways on all machines."""

import importlib.util
import os

os.environ["MERCER_MACHINE"] = "off"
os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are drawn, not shown

collect_ignore = [] if importlib.util.find_spec("matplotlib") else ["src/mercer/plots", "docs/plots.md"]
