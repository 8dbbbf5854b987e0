"""A kernel's traced formula in ONNX's operators, all in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.io.onnx.graph import Graph
from mercer.kernels.symbolic.expression import LEAVES, Expression
from mercer.kernels.symbolic.views import Circle, Columns, LengthScales, View

__all__ = ["Formula"]

DIRECT = 32
"""Up to this many columns ‖x − z‖² is a sum of differences. Beyond, of centred rows it is ⟨x, x⟩ + ⟨z, z⟩ − 2⟨x, z⟩,
whose error is a few 10⁻¹⁶ of ‖x‖² + ‖z‖²; a root of it would have 10⁻⁸ for close rows, so there differences stay."""

OPERATORS = {
    "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh", "sin": "Sin", "cos": "Cos", "abs": "Abs",
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "minimum": "Min", "maximum": "Max",
}  # fmt: skip
COMPARISONS = {"less": "Less", "less_equal": "LessOrEqual"}


class Formula:
    """k(x, z) for all rows x of an input with the rows z of a constant.

    Parameters
    ----------
    graph : Graph
    x, z : str
        The names of both, in float64, of shapes (m, columns) and (rows, columns).
    rows, columns : int
        The shape of z.
    expression : Expression
    """

    def __init__(self, graph: Graph, x: str, z: str, rows: int, columns: int, expression: Expression) -> None:
        self.graph, self.expression = graph, expression
        self.nodes = list(_nodes(expression))
        self.has_roots = any(_is_root(e) for e in self.nodes)
        self.sides: dict[tuple[str, tuple[View, ...]], tuple[str, int]] = {
            ("x", ()): (x, columns),
            ("z", ()): (z, columns),
        }
        self.values: dict[Expression, str] = {}
        height = graph.add("Shape", x, start=0, end=1)
        self.shape = graph.add("Concat", height, graph.constant(np.array([rows])), axis=0)

    def matrix(self) -> str:
        """All values, of shape (m, rows)."""
        found = self.value(self.expression)
        if any(e.op == "pairing" for e in self.nodes):
            return found
        return self.graph.add("Expand", found, self.shape)  # a constant, or a function of one side

    def value(self, e: Expression) -> str:
        """The name of an expression's value; equal expressions are computed once."""
        if e not in self.values:
            self.values[e] = self._computed(e)
        return self.values[e]

    def _computed(self, e: Expression) -> str:
        graph = self.graph
        if e.op == "const":
            return graph.constant(np.float64(e.value))
        if e.op == "pow":
            return graph.add("Pow", self.value(e.args[0]), graph.constant(np.float64(e.value)))
        if e.op == "where":
            condition, *values = e.args
            return graph.add("Where", self._condition(condition), *map(self.value, values))
        if e.op in COMPARISONS:
            return graph.cast(self._condition(e), np.float64)
        if e.op in OPERATORS:
            return graph.add(OPERATORS[e.op], *map(self.value, e.args))
        if e.op in LEAVES and e.value[0] in ("dot", *TERMS):
            kind, views = e.value
            return self._of_one_row(e.op, kind, views) if e.op != "pairing" else self._pairing(kind, views)
        raise InvalidInput(message("to_onnx", f"a formula with {e!r:.60}", "choose a kernel without it"))

    def _condition(self, e: Expression) -> str:
        if e.op in COMPARISONS:
            return self.graph.add(COMPARISONS[e.op], *map(self.value, e.args))
        return self.graph.cast(self.value(e), np.bool_)

    # ---- pairings ----------------------------------------------------------------------------------------------------

    def _of_one_row(self, op: str, kind: str, views: tuple[View, ...]) -> str:
        """⟨x, x⟩ or Σ xᵢ, m × 1 or of shape (rows,)."""
        rows, _ = self._rows(op.removeprefix("self_"), views)
        terms = self.graph.add("Mul", rows, rows) if kind == "dot" else rows
        return self._sum(terms, keep=op == "self_x")

    def _sum(self, terms: str, keep: bool) -> str:
        return self.graph.add("ReduceSum", terms, self.graph.constant(np.array([1])), keepdims=int(keep))

    def _pairing(self, kind: str, views: tuple[View, ...]) -> str:
        (x, columns), (z, _) = self._rows("x", views), self._rows("z", views)
        if kind == "dot":
            return self._dot(x, z)
        if kind == "sqdist" and columns > DIRECT and not self.has_roots:
            return self._expanded(x, z)
        start = self.graph.add("Expand", self.graph.constant(np.float64(0.0)), self.shape)
        return self.graph.over_columns(x, z, start, TERMS[kind])

    def _dot(self, x: str, z: str) -> str:
        return self.graph.add("MatMul", x, self.graph.transposed(z))

    def _expanded(self, x: str, z: str) -> str:
        """‖x − z‖² of rows less the mean of the z."""
        add = self.graph.add
        mean = add("ReduceMean", z, axes=[0], keepdims=1)
        a, b = add("Sub", x, mean), add("Sub", z, mean)
        squares = add("Add", self._sum(add("Mul", a, a), keep=True), self._sum(add("Mul", b, b), keep=False))
        product = add("Mul", self.graph.constant(np.float64(2.0)), self._dot(a, b))
        return add("Max", add("Sub", squares, product), self.graph.constant(np.float64(0.0)))

    # ---- views -------------------------------------------------------------------------------------------------------

    def _rows(self, side: str, views: tuple[View, ...]) -> tuple[str, int]:
        """The rows of one side as the views map them, and the number of their columns."""
        key = side, views
        if key not in self.sides:
            self.sides[key] = self._viewed(*self._rows(side, views[:-1]), views[-1])
        return self.sides[key]

    def _viewed(self, rows: str, columns: int, view: View) -> tuple[str, int]:
        add, constant = self.graph.add, self.graph.constant
        if isinstance(view, Columns):
            return add("Gather", rows, constant(np.array(view.indices, np.int64)), axis=1), len(view.indices)
        if isinstance(view, LengthScales):
            return add("Mul", rows, constant(1.0 / np.asarray(view.scales))), columns
        if isinstance(view, Circle):
            turns = add("Div", rows, constant(np.float64(view.period)))
            angle = add("Mul", add("Sub", turns, add("Floor", turns)), constant(np.float64(2 * np.pi)))
            return add("Concat", add("Cos", angle), add("Sin", angle), axis=1), 2 * columns
        raise InvalidInput(message("to_onnx", f"a kernel with the view {view!r:.60}", "choose a kernel without it"))


def _nodes(expression: Expression) -> Iterator[Expression]:
    """All different nodes."""
    seen, waiting = {expression}, [expression]
    while waiting:
        yield (e := waiting.pop())
        new = set(e.args) - seen
        seen |= new
        waiting += new


def _is_root(e: Expression) -> bool:
    return e.op == "sqrt" or (e.op == "pow" and not float(e.value).is_integer())


# ---- the term of one column in a sum over columns --------------------------------------------------------------------


def _squared_difference(step: Graph, x: str, z: str) -> str:
    difference = step.add("Sub", x, z)
    return step.add("Mul", difference, difference)


def _chi2(step: Graph, x: str, z: str) -> str:
    """(x − z)²/(x + z), divided before squared, where 0/0 = 0."""
    difference, total = step.add("Sub", x, z), step.add("Add", x, z)
    nothing = step.cast(step.add("Equal", total, step.constant(np.float64(0.0))), np.float64)
    return step.add("Mul", difference, step.add("Div", difference, step.add("Add", total, nothing)))


TERMS = {
    "sqdist": _squared_difference,
    "l1": lambda step, x, z: step.add("Abs", step.add("Sub", x, z)),
    "min_sum": lambda step, x, z: step.add("Min", x, z),
    "chi2": _chi2,
    "mismatches": lambda step, x, z: step.cast(step.add("Not", step.add("Equal", x, z)), np.float64),
}  # fmt: skip
