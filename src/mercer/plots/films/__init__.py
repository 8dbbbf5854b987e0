"""Films of models that learn step by step: as a GIF, or as one HTML file with a slider."""

from mercer.plots.films.frames import Film
from mercer.plots.films.making import film

__all__ = ["Film", "film"]
