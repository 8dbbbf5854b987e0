"""Online learners: rows are met one by one, within a budget."""

from mercer.solvers.online.learner import Basis, Learner, Meeting

__all__ = ["Basis", "Learner", "Meeting"]
