"""Pictures of kernels and models, on matplotlib: ``pip install "mercer[plots]"``."""

import importlib.util

from mercer.errors import message

if importlib.util.find_spec("matplotlib") is None:
    raise ModuleNotFoundError(
        message("mercer.plots", "matplotlib is not installed", 'pip install "mercer[plots]"'), name="matplotlib"
    )

from mercer.plots.components import ComponentsDisplay
from mercer.plots.display import Display
from mercer.plots.surface import DecisionSurfaceDisplay
from mercer.plots.variances import VariancesDisplay

__all__ = ["ComponentsDisplay", "DecisionSurfaceDisplay", "Display", "VariancesDisplay"]


def __dir__() -> list[str]:
    return sorted(__all__)
