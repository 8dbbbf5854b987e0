"""Solvers: one file each, one loop for all; they see operators only, never a kernel."""

from mercer.solvers.askotch import ASkotch, ASkotchState
from mercer.solvers.base import Problem, Solution, Solver, State, Status, solve
from mercer.solvers.budgeted import BudgetedDescent, BudgetedState
from mercer.solvers.cg import CGState, ConjugateGradients
from mercer.solvers.cholesky import Cholesky, CholeskyFactor, CholeskyState
from mercer.solvers.choose import Choice, choose_eigen, choose_linear
from mercer.solvers.dual import DualFamily, DualPoint
from mercer.solvers.dual_coordinate import CoordinateState, DualCoordinateDescent, LinearFamily, LinearPoint
from mercer.solvers.eigen import DenseEigen, DenseEigenState, Eigenpairs, Eigenproblem, leading_pairs, rayleigh_ritz
from mercer.solvers.forgetron import Forgetron, ForgetronState
from mercer.solvers.gradient import BatchLMS, LeastSquares, LMSState, StochasticLMS, replay, update_rates
from mercer.solvers.krylov import BlockKrylov, KrylovState
from mercer.solvers.linear import LinearSystem
from mercer.solvers.lloyd import Clustering, Lloyd, LloydState, Partition
from mercer.solvers.logistic import Logistic, LogisticFit, LogisticState, NewtonLogistic
from mercer.solvers.mistakes import Labelled, Mistakes, MistakeState, margins, rivals
from mercer.solvers.nipals import KernelNipals, LatentScores, NipalsState, ScoreProblem
from mercer.solvers.online import Learner, Meeting
from mercer.solvers.pencil import DensePencil, DensePencilState, Pencil
from mercer.solvers.projectron import Projectron, ProjectronState
from mercer.solvers.recursive import QuantisedLMS, QuantisedState, RecursiveLeastSquares, RecursiveState
from mercer.solvers.refinement import RefinedConjugateGradients, RefinedState
from mercer.solvers.seeding import Seeds, best_of_starts, drawn_starts, plus_plus
from mercer.solvers.smo import SMO, SMOState
from mercer.solvers.subsets import SubsetGradients, SubsetPreconditioner, SubsetState, SubsetSystems
from mercer.solvers.working_set import WorkingSet, WorkingSetState

__all__ = [
    "SMO",
    "ASkotch",
    "ASkotchState",
    "BatchLMS",
    "BlockKrylov",
    "BudgetedDescent",
    "BudgetedState",
    "CGState",
    "Choice",
    "Cholesky",
    "CholeskyFactor",
    "CholeskyState",
    "Clustering",
    "ConjugateGradients",
    "CoordinateState",
    "DenseEigen",
    "DenseEigenState",
    "DensePencil",
    "DensePencilState",
    "DualCoordinateDescent",
    "DualFamily",
    "DualPoint",
    "Eigenpairs",
    "Eigenproblem",
    "Forgetron",
    "ForgetronState",
    "KernelNipals",
    "KrylovState",
    "LMSState",
    "Labelled",
    "LatentScores",
    "Learner",
    "LeastSquares",
    "LinearFamily",
    "LinearPoint",
    "LinearSystem",
    "Lloyd",
    "LloydState",
    "Logistic",
    "LogisticFit",
    "LogisticState",
    "Meeting",
    "MistakeState",
    "Mistakes",
    "NewtonLogistic",
    "NipalsState",
    "Partition",
    "Pencil",
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
