"""Draws the picture of the README and the first page, from a script of the gallery. `python docs/draw_picture.py`."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
HERE = Path(__file__).parent
SCRIPT = HERE.parent / "examples" / "plot_perceptron_film.py"

if __name__ == "__main__":
    display = runpy.run_path(str(SCRIPT))["display"]
    display.figure_.savefig(HERE / "_static" / "moons.png", dpi=90, bbox_inches="tight", facecolor="white")
