"""Online learners: they visit rows one by one and keep a dictionary within a budget."""

from typing import TYPE_CHECKING

from mercer.former_names import deprecated_names
from mercer.solvers.online.learner import Basis, ChunkKernel, Learner

__all__ = ["Basis", "ChunkKernel", "Learner"]

if not TYPE_CHECKING:  # it would hide misspelt names from type checkers
    __getattr__ = deprecated_names(__name__)
