"""Pictures of kernels and models, on matplotlib: ``pip install "mercer[plots]"``."""

import importlib.util

from mercer.errors import message

if importlib.util.find_spec("matplotlib") is None:
    raise ModuleNotFoundError(
        message("mercer.plots", "matplotlib is not installed", 'pip install "mercer[plots]"'), name="matplotlib"
    )

from mercer.plots.components import ComponentsDisplay
from mercer.plots.display import Display
from mercer.plots.films import Film, film
from mercer.plots.gram import GramDisplay
from mercer.plots.posterior import PosteriorDisplay
from mercer.plots.scores import ScoresDisplay
from mercer.plots.spectrum import SpectrumDisplay
from mercer.plots.surface import DecisionSurfaceDisplay
from mercer.plots.variances import VariancesDisplay
from mercer.plots.witness import WitnessDisplay

__all__ = [
    "ComponentsDisplay",
    "DecisionSurfaceDisplay",
    "Display",
    "Film",
    "GramDisplay",
    "PosteriorDisplay",
    "ScoresDisplay",
    "SpectrumDisplay",
    "VariancesDisplay",
    "WitnessDisplay",
    "film",
]


def __dir__() -> list[str]:
    return sorted(__all__)
