"""The maximum of a log-likelihood over positive parameters within bounds, by L-BFGS-B in their logarithms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mercer.errors import InvalidInput, message
from mercer.events import SolverStep, emit
from mercer.keeping import Run, run_of

__all__ = ["Ascended", "Ascent", "LogLikelihood", "bounds_of"]

Floats = NDArray[np.float64]
LogLikelihood = Callable[[Floats], tuple[float, Floats] | None]
"""θ ↦ (log p, ∂ log p/∂ log θ), or None if the model has no likelihood at θ."""
Loss = Callable[[Floats], tuple[float, Floats]]
"""log θ ↦ (−log p, its gradient)."""

NONE = 1e25
"""−log p of parameters without a likelihood."""
SHARE = 4.0
"""Rows of the likelihood for each row of the coarse one, at least: more of them only make the end nearer."""
CURVED = 1e-3
"""Step of the differences that give the curvature of the coarse likelihood."""
ROUGH = 1e-5
"""Gain of log p, relative to it, at which the coarse search ends."""
NEAR = 2e-2
"""Slope in units of the curvature at which a search ends: the parameters are a fiftieth of their uncertainty away, and
log p is 2e-4 below its maximum for each of them."""
BESIDE = 0.1
"""The same for half of the rows, whose own end is further than that from the end with all rows."""
STEEP = 0.01
"""Slope of log p, relative to it, above which the end of a search is noted: a maximum is not near."""
SPREAD = np.log(10.0)
"""Further starts are drawn within a factor of 10 of the first."""


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """What a search has asked for so far, a row each: log θ, −log p, and its gradient."""

    rows: Floats

    @property
    def steps(self) -> int:
        return len(self.rows)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"rows": self.rows}


class _Evaluations:
    """The losses that a search asks for; those of a run that was killed are known, and lead it the same way again."""

    def __init__(self, run: Run) -> None:
        self.run, self.place = run, 0
        self.rows: list[Floats] = [] if run.arrays is None else list(run.arrays["rows"])

    def __call__(self, u: Floats, of: LogLikelihood) -> tuple[float, Floats]:
        size = len(u)
        if self.place == len(self.rows) or self.rows[self.place][:size].tobytes() != u.tobytes():
            found = of(np.exp(u))
            if found is None or not np.isfinite(found[0]):
                found = -NONE, np.zeros(size)
            self.rows[self.place :] = [np.concatenate([u, [-found[0]], -found[1]])]
            self.run.offer(_Evaluated(np.array(self.rows)))
        row = self.rows[self.place]
        self.place += 1
        return float(row[size]), row[size + 1 :].copy()


class _Walled:
    """A loss with a wall where there is no likelihood, and the end of a search that gains nothing.

    The wall is the mirror image of the slope that the line search came down. From a wall of 1e25 it would conclude
    that the minimum is 1e-25 of a step away, and steps so short gain nothing.
    """

    def __init__(self, loss: Loss, ftol: float, unit: float) -> None:
        self.loss, self.ftol, self.unit = loss, ftol, unit
        self.at: tuple[Floats, float, Floats] | None = None
        self.last: tuple[Floats, float, Floats] | None = None

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        value, gradient = self.loss(x)
        if self.at is not None and not value * self.unit < NONE / 2:
            before, height, slope = self.at
            return height + abs(float(slope @ (x - before))), -slope
        self.last = x.copy(), value, gradient
        self.at = self.at or self.last
        return value, gradient

    def step(self, _: Floats) -> None:
        """A step was taken, to the last place that was looked at."""
        assert self.at is not None
        assert self.last is not None
        (_, before, _), (_, after, _), self.at = self.at, self.last, self.last
        # L-BFGS-B's own test has |loss| for |−log p|, which a unit makes small: steep starts would end at once.
        if before - after <= self.ftol * max(abs(before), abs(after), 1 / self.unit):
            raise StopIteration


@dataclass(frozen=True, eq=False)
class Ascended:
    """The best end of all starts.

    Attributes
    ----------
    theta, gradient : arrays of shape (parameters,)
        θ, and ∂ log p/∂ log θ there.
    value : float
        log p.
    ends : tuple of float
        log p at the end of each start.
    evaluations : int
    notes : tuple of str
        Parameters that ended at a bound, an end that is steep, and a step limit that came first.
    """

    theta: Floats
    gradient: Floats
    value: float
    ends: tuple[float, ...]
    evaluations: int
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Ascent:
    """The search for max log p(θ), low ≤ θ ≤ high.

    Parameters
    ----------
    who : str
        The caller, for messages.
    names : tuple of str
    first, low, high : arrays of shape (parameters,)
        The first start, and the bounds.
    restarts : int
        Number of further starts.
    max_steps : int
        Most steps of each start.
    seed : int
        Of the further starts.
    firmer : str
        What to do where no parameters have a likelihood.

    Examples
    --------
    >>> ascent = Ascent("example", ("a",), np.array([1.0]), np.array([0.1]), np.array([10.0]))
    >>> found = ascent.run(lambda theta: (-float(np.log(theta[0] / 3) ** 2), -2 * np.log(theta / 3)))
    >>> found.theta.round(4), found.notes
    (array([3.]), ())
    """

    who: str
    names: tuple[str, ...]
    first: Floats
    low: Floats
    high: Floats
    restarts: int = 0
    max_steps: int = 100
    seed: int = 0
    firmer: str = "choose another kernel, or centre the columns"

    def run(self, likelihood: LogLikelihood, coarse: Sequence[LogLikelihood] = ()) -> Ascended:
        """The best end of all starts.

        `coarse` are likelihoods of fewer rows: of some, or of two shares in geometric progression to all. Each start is
        first improved by them, and the search with all rows begins with the curvature that they foretell.
        """
        count = 0
        with run_of(self, _Evaluated(np.empty((0, 2 * len(self.first) + 1)))) as run:
            loss = _Evaluations(run)

            def counted(u: Floats) -> tuple[float, Floats]:
                nonlocal count
                count += 1
                value, gradient = loss(u, likelihood)
                emit(SolverStep("L-BFGS-B", count, float(np.abs(gradient).max(initial=0.0)), 0.0))
                return value, gradient

            ends = []
            for start in self._starts():
                u = np.log(np.clip(start, self.low, self.high))
                end = self._by_curvature(counted, [partial(loss, of=one) for one in coarse], u) if coarse else None
                ends.append(self._descended(counted, u) if end is None else end)
        return self._best(ends, count)

    def _starts(self) -> list[Floats]:
        rng = np.random.default_rng(self.seed)
        factors = [np.exp(rng.uniform(-SPREAD, SPREAD, len(self.first))) for _ in range(self.restarts)]
        return [self.first, *(self.first * factor for factor in factors)]

    def _descended(self, loss: Loss, u: Floats, ftol: float = 1e-9) -> Any:
        """The end of a search from u, whose first step has the length 1: L-BFGS-B takes the gradient, to the bounds."""
        first = loss(u)
        steep = float(np.linalg.norm(first[1])) or 1.0

        def scaled(v: Floats) -> tuple[float, Floats]:
            value, gradient = first if np.array_equal(v, u) else loss(v)
            return value / steep, gradient / steep

        end = self._minimum(scaled, u, self._box, 1e-3 / steep, ftol, steep)
        end.fun, end.jac = end.fun * steep, end.jac * steep
        return end

    def _minimum(
        self, loss: Loss, start: Floats, box: list[tuple[float, float]], gtol: float, ftol: float, unit: float = 1.0
    ) -> Any:
        """L-BFGS-B's end: at a slope of gtol, or a gain of ftol of −log p, which is `unit` times the loss."""
        walled = _Walled(loss, ftol, unit)
        options = {"maxiter": self.max_steps, "gtol": gtol, "ftol": 0.0}
        return minimize(walled, start, jac=True, method="L-BFGS-B", bounds=box, options=options, callback=walled.step)

    @property
    def _box(self) -> list[tuple[float, float]]:
        return list(zip(np.log(self.low), np.log(self.high), strict=True))

    def _by_curvature(self, loss: Loss, coarse: Sequence[Loss], u: Floats) -> Any:
        """The end of a search that begins at the coarse ones' end, with the curvature H that follows from theirs.

        From a quarter to a half of the rows the curvature grows from H₁ to H₂, in some directions twofold, in others
        hardly: new rows between the old ones say little of an amplitude. It grows so again to all rows: H = H₂H₁⁻¹H₂.
        From a ninth to a third it grows up to threefold.

        None if a coarse likelihood has no maximum within the bounds, or the likelihood itself no value there.
        """
        rough = self._descended(coarse[0], u, ROUGH)
        near, H = rough.x, SHARE * _curvature(coarse[0], rough.x, rough.jac)
        for half in coarse[1:]:
            end = self._within(half, near, H / 2, BESIDE)
            if end is None:
                return None
            near, H = end.x, _curvature(half, end.x, end.jac)
            H = H @ np.linalg.pinv(_curvature(coarse[0], near, coarse[0](near)[1])) @ H
        return self._within(loss, near, H, NEAR)

    def _within(self, loss: Loss, near: Floats, H: Floats, slope: float) -> Any:
        """The end of a search from u*, in w = Sᵀ(u − u*) with SSᵀ = H; if it leaves the bounds, it goes on within them.

        None if u* is on a bound, H has no maximum there, or the likelihood has no value.
        """
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        inside = bool(np.all((near > np.log(self.low)) & (near < np.log(self.high))))
        if not inside or not values[0] > 0:
            return None
        turned = vectors / np.sqrt(values)

        def within(w: Floats) -> tuple[float, Floats]:
            nonlocal inside
            u = near + turned @ w
            inside &= bool(np.all((u >= np.log(self.low)) & (u <= np.log(self.high))))
            value, gradient = loss(u) if inside else (NONE, np.zeros(len(u)))
            return value, gradient @ turned

        box = [(-1e6, 1e6)] * len(near)  # with a box, the first step is as long as the curvature says
        end = self._minimum(within, np.zeros(len(near)), box, slope, 1e-9)
        if not end.fun < NONE / 2:
            return None
        end.x = near + turned @ end.x
        if not inside:
            return self._descended(loss, end.x)
        end.jac = np.linalg.solve(turned.T, end.jac)
        return end

    def _best(self, ends: list[Any], count: int) -> Ascended:
        best = min(ends, key=lambda end: end.fun)
        if not best.fun < NONE / 2:
            given = "a kernel matrix that was not positive definite for any parameters that were tried"
            raise InvalidInput(message(self.who, given, self.firmer))
        theta, notes = np.exp(best.x), []
        for name, u, value, low, high in zip(self.names, best.x, theta, self.low, self.high, strict=True):
            at = "lower" if u <= np.log(low) + 1e-6 else "upper" if u >= np.log(high) - 1e-6 else ""
            if at:
                notes.append(f"{name} = {value:.3g} is at its {at} bound")
        low, high = best.x <= np.log(self.low) + 1e-6, best.x >= np.log(self.high) - 1e-6
        rises = np.where((low & (best.jac > 0)) | (high & (best.jac < 0)), 0.0, np.abs(best.jac)).max(initial=0.0)
        if rises > STEEP * max(abs(float(best.fun)), 1.0):
            notes.append(f"the search ended at a slope of {rises:.2g} of log p: restarts= may find better parameters")
        if best.status == 1:
            notes.append(f"stopped after {self.max_steps} steps: more steps may find better parameters")
        ended = tuple(-float(end.fun) for end in ends)
        return Ascended(theta, -np.asarray(best.jac), -float(best.fun), ended, count, tuple(notes))


def _curvature(loss: Loss, u: Floats, gradient: Floats) -> Floats:
    """The Hessian matrix at u, by differences from the gradient there."""
    H = np.array([loss(u + step)[1] - gradient for step in CURVED * np.eye(len(u))]) / CURVED
    return np.asarray(H + H.T) / 2


def bounds_of(
    who: str, names: tuple[str, ...], first: Floats, given: tuple[float, float] | Mapping[str, tuple[float, float]]
) -> tuple[Floats, Floats]:
    """The bounds of all parameters: a pair (a, b) of multiples of their first values, or by name a pair of values.

    >>> bounds_of("example", ("a", "b"), np.array([1.0, 5.0]), {"b": (2.0, 7.0)})
    (array([1.e-05, 2.e+00]), array([1.e+05, 7.e+00]))
    """
    by_name = given if isinstance(given, Mapping) else {}
    strange = sorted(set(by_name) - set(names))
    if strange:
        do = f"the parameters that vary are {', '.join(names)}" if names else "no parameter varies"
        raise InvalidInput(message(who, f"bounds of {strange[0]!r}", do))
    factors = (1e-5, 1e5) if isinstance(given, Mapping) else given
    if np.shape(factors) != (2,) or not 0 < factors[0] <= 1 <= factors[1] < np.inf:
        given_text = f"bounds={given!r}"
        raise InvalidInput(message(who, given_text, "give (a, b) with 0 < a ≤ 1 ≤ b, or a dict of pairs by name"))
    low, high = first * factors[0], first * factors[1]
    for name, pair in by_name.items():
        if np.shape(pair) != (2,) or not 0 < pair[0] <= pair[1] < np.inf:
            raise InvalidInput(message(who, f"bounds of {name!r}: {pair!r}", "give (low, high) with 0 < low ≤ high"))
        low[names.index(name)], high[names.index(name)] = pair
    return low, high
