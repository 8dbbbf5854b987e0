"""Solvers: one file each, one loop for all; they see operators only, never a kernel."""

from mercer.solvers.base import Problem, Solution, Solver, State, Status, solve
from mercer.solvers.cg import CGState, ConjugateGradients
from mercer.solvers.cholesky import Cholesky, CholeskyFactor, CholeskyState
from mercer.solvers.eigen import DenseEigen, DenseEigenState, Eigenpairs, Eigenproblem
from mercer.solvers.linear import LinearSystem

__all__ = [
    "CGState",
    "Cholesky",
    "CholeskyFactor",
    "CholeskyState",
    "ConjugateGradients",
    "DenseEigen",
    "DenseEigenState",
    "Eigenpairs",
    "Eigenproblem",
    "LinearSystem",
    "Problem",
    "Solution",
    "Solver",
    "State",
    "Status",
    "solve",
]
