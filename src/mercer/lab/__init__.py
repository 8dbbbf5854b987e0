"""``mercer lab``: a page on this machine that shows what kernels, methods and their parameters do.

Only `mercer.lab.page` and `mercer.lab.server` need the framework of the page (``pip install "mercer[lab]"``).
"""

from mercer.lab.data import BUNDLED, Dataset, bundled
from mercer.lab.session import Outcome, Surface, outcomes
from mercer.lab.settings import METHODS, Settings, kernel_of_parts

__all__ = ["BUNDLED", "METHODS", "Dataset", "Outcome", "Settings", "Surface", "bundled", "kernel_of_parts", "outcomes"]


def __dir__() -> list[str]:
    return sorted(__all__)
