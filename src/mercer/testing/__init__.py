"""Public contract suites: one line per class runs all checks of its contract."""

from mercer.testing.comparison import assert_close
from mercer.testing.engines import check_engine
from mercer.testing.estimators import check_atomic
from mercer.testing.operators import check_operator_contract
from mercer.testing.points import check_points
from mercer.testing.schemas import check_schema
from mercer.testing.solvers import check_solver_contract

__all__ = [
    "assert_close",
    "check_atomic",
    "check_engine",
    "check_operator_contract",
    "check_points",
    "check_schema",
    "check_solver_contract",
]


def __dir__() -> list[str]:
    return sorted(__all__)
