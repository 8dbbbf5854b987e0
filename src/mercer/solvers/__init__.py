"""Solvers: one file each, one loop for all. They see operators only, never a kernel."""

from typing import TYPE_CHECKING

from mercer.factorizations.cholesky import CholeskyFactor
from mercer.former_names import deprecated_names
from mercer.solvers.base import Problem, Solution, Solver, State, Status, solve
from mercer.solvers.choose import Choice, choose_eigen, choose_linear
from mercer.solvers.clustering.lloyd import Clustering, Lloyd, LloydState, Partition
from mercer.solvers.clustering.seeding import Seeds, best_of_starts, drawn_starts, plus_plus
from mercer.solvers.descent.feature_logistic import FeatureLogistic, NewtonFeatureLogistic
from mercer.solvers.descent.gradient import BatchLMS, LeastSquares, LMSState, StochasticLMS, replay, update_rates
from mercer.solvers.descent.logistic import Logistic, LogisticFit, LogisticState, NewtonLogistic
from mercer.solvers.descent.perceptron import ClassificationProblem, PerceptronRule, PerceptronState, margins, rivals
from mercer.solvers.eigen.dense import (
    DenseEigen,
    DenseEigenState,
    Eigenpairs,
    Eigenproblem,
    leading_pairs,
    rayleigh_ritz,
)
from mercer.solvers.eigen.krylov import BlockKrylov, KrylovState
from mercer.solvers.eigen.nipals import KernelNipals, LatentScores, NipalsState, ScoreProblem
from mercer.solvers.eigen.pencil import DensePencil, DensePencilState, Pencil
from mercer.solvers.linear.cg import CGState, ConjugateGradients
from mercer.solvers.linear.cholesky import Cholesky, CholeskyState
from mercer.solvers.linear.lanczos import LanczosState, LogDeterminant, LogDeterminantEstimate, StochasticLanczos
from mercer.solvers.linear.refinement import RefinedConjugateGradients, RefinedState
from mercer.solvers.linear.subsets import SubsetGradients, SubsetPreconditioner, SubsetState, SubsetSystems
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.online.budgeted import BudgetedDescent, BudgetedState
from mercer.solvers.online.learner import ChunkKernel, Learner
from mercer.solvers.online.projectron import Projectron, ProjectronState
from mercer.solvers.online.recursive import QuantisedLMS, QuantisedState, RecursiveLeastSquares, RecursiveState
from mercer.solvers.svm.dual import DualBatch, DualPoint
from mercer.solvers.svm.dual_coordinate import CoordinateState, DualCoordinateDescent, LinearDualBatch, LinearPoint
from mercer.solvers.svm.smo import SMO, SMOState
from mercer.solvers.svm.working_set import WorkingSet, WorkingSetState

__all__ = [
    "SMO",
    "BatchLMS",
    "BlockKrylov",
    "BudgetedDescent",
    "BudgetedState",
    "CGState",
    "Choice",
    "Cholesky",
    "CholeskyFactor",
    "CholeskyState",
    "ChunkKernel",
    "ClassificationProblem",
    "Clustering",
    "ConjugateGradients",
    "CoordinateState",
    "DenseEigen",
    "DenseEigenState",
    "DensePencil",
    "DensePencilState",
    "DualBatch",
    "DualCoordinateDescent",
    "DualPoint",
    "Eigenpairs",
    "Eigenproblem",
    "FeatureLogistic",
    "KernelNipals",
    "KrylovState",
    "LMSState",
    "LanczosState",
    "LatentScores",
    "Learner",
    "LeastSquares",
    "LinearDualBatch",
    "LinearPoint",
    "LinearSystem",
    "Lloyd",
    "LloydState",
    "LogDeterminant",
    "LogDeterminantEstimate",
    "Logistic",
    "LogisticFit",
    "LogisticState",
    "NewtonFeatureLogistic",
    "NewtonLogistic",
    "NipalsState",
    "Partition",
    "Pencil",
    "PerceptronRule",
    "PerceptronState",
    "Problem",
    "Projectron",
    "ProjectronState",
    "QuantisedLMS",
    "QuantisedState",
    "RecursiveLeastSquares",
    "RecursiveState",
    "RefinedConjugateGradients",
    "RefinedState",
    "SMOState",
    "ScoreProblem",
    "Seeds",
    "Solution",
    "Solver",
    "State",
    "Status",
    "StochasticLMS",
    "StochasticLanczos",
    "SubsetGradients",
    "SubsetPreconditioner",
    "SubsetState",
    "SubsetSystems",
    "WorkingSet",
    "WorkingSetState",
    "best_of_starts",
    "choose_eigen",
    "choose_linear",
    "drawn_starts",
    "leading_pairs",
    "margins",
    "plus_plus",
    "rayleigh_ritz",
    "replay",
    "rivals",
    "solve",
    "update_rates",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # it would hide misspelt names from type checkers
    __getattr__ = deprecated_names(__name__)
