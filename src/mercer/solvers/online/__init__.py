"""Online learners: they visit rows one by one and keep a dictionary within a budget."""

from mercer.former_names import deprecated_names
from mercer.solvers.online.learner import Basis, ChunkKernel, Learner

__all__ = ["Basis", "ChunkKernel", "Learner"]

__getattr__ = deprecated_names(__name__)
