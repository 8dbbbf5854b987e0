"""Tests and examples plan by documented rates, so that they take the same ways on all machines."""

import importlib.util
import os

os.environ["MERCER_MACHINE"] = "off"
os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are drawn, not shown

collect_ignore = []
if not importlib.util.find_spec("matplotlib"):
    collect_ignore += ["src/mercer/plots", "docs/plots.md", "src/mercer/report"]
    collect_ignore += [f"docs/how-to/{name}.md" for name in ("gaussian-processes", "large-data", "process-monitoring")]
if not importlib.util.find_spec("jinja2"):
    collect_ignore += ["src/mercer/report", "docs/how-to/reading-a-report.md"]
