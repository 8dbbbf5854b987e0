"""Pictures of kernels and models, on matplotlib: ``pip install "mercer[plots]"``."""

import importlib.util

from mercer.errors import message

if importlib.util.find_spec("matplotlib") is None:
    raise ModuleNotFoundError(
        message("mercer.plots", "matplotlib is not installed", 'pip install "mercer[plots]"'), name="matplotlib"
    )

from mercer.plots.components import ComponentsDisplay
from mercer.plots.control import ControlChartDisplay
from mercer.plots.drawing.display import Display
from mercer.plots.explanation import ExplanationDisplay
from mercer.plots.films import Film, film
from mercer.plots.gram import GramDisplay
from mercer.plots.learning import LearningCurveDisplay
from mercer.plots.logo import SequenceLogoDisplay
from mercer.plots.path import RegularizationPathDisplay
from mercer.plots.posterior import PosteriorDisplay
from mercer.plots.preimages import PreImagesDisplay
from mercer.plots.scores import ScoresDisplay
from mercer.plots.spectrum import SpectrumDisplay
from mercer.plots.surface import DecisionSurfaceDisplay
from mercer.plots.variances import VariancesDisplay
from mercer.plots.witness import WitnessDisplay

__all__ = [
    "ComponentsDisplay",
    "ControlChartDisplay",
    "DecisionSurfaceDisplay",
    "Display",
    "ExplanationDisplay",
    "Film",
    "GramDisplay",
    "LearningCurveDisplay",
    "PosteriorDisplay",
    "PreImagesDisplay",
    "RegularizationPathDisplay",
    "ScoresDisplay",
    "SequenceLogoDisplay",
    "SpectrumDisplay",
    "VariancesDisplay",
    "WitnessDisplay",
    "film",
]


def __dir__() -> list[str]:
    return sorted(__all__)
