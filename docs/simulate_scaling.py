"""What many workers would take: the cost model of docs/scaling.md, and a simulation of its network and stragglers.

``python docs/simulate_scaling.py`` prints the last table of the page.
"""

from __future__ import annotations

import heapq
import sys
from dataclasses import dataclass

import numpy as np

from mercer.planning import costs
from mercer.planning.machine import Machine
from mercer.shards.reading import boundaries


@dataclass(frozen=True)
class Cluster:
    """A scheduler that sends one task after the other, a client with one link, and workers of one thread."""

    workers: int
    message: float = 2.5e-3
    """Seconds of the scheduler and the client for a task."""
    trip: float = 14e-3
    """Seconds between the last result of a product and the first task of the next one."""
    link: float = 1e9
    """Bytes a second between the client and the workers."""


@dataclass(frozen=True)
class Step:
    """A product: how many tasks, the seconds of one, and the bytes that one sends and receives."""

    tasks: int
    seconds: float
    bytes: float


def landmarks(machine: Machine, n: float, d: int, m: int) -> Step:
    """A normal product with n rows and m landmarks, in float64 (`gram/sharded/operator.py`, `_parts`)."""
    tasks = int(min(max(n * m / 2e8, 64), len(boundaries(int(n), 1)) - 1))
    return Step(tasks, n * m * (machine.pair(d, 8) + machine.block(8) / 8) / tasks, 8.0 * m)


def exact(machine: Machine, n: float, d: int) -> Step:
    """A product with K, in float64, by pairs of blocks (`_add_pairs`)."""
    blocks = int(min(max(round(n / 12_500), 4), 64))
    tasks = blocks * (blocks + 1) // 2
    return Step(tasks, costs.product(machine, int(n), d) / tasks, 32.0 * n / blocks)


def predicted(step: Step, cluster: Cluster) -> float:
    """The largest of the work of a worker, of the scheduler and of the link, and a trip."""
    rounds = -(-step.tasks // cluster.workers)
    sent = step.tasks * max(cluster.message, step.bytes / cluster.link)
    return max(rounds * step.seconds, sent) + cluster.message + cluster.trip


def simulated(step: Step, cluster: Cluster, rng: np.random.Generator, slow: float = 0.2, share: float = 0.02) -> float:
    """One product: tasks start one by one, take a random time, and every fiftieth takes four times as long."""
    free = [0.0] * cluster.workers
    sent = received = 0.0
    for _ in range(step.tasks):
        sent += cluster.message / 2 + step.bytes / 2 / cluster.link
        long = 4.0 if rng.random() < share else 1.0
        end = max(heapq.heappop(free), sent) + step.seconds * rng.lognormal(0.0, slow) * long
        heapq.heappush(free, end)
        received = max(received, end) + cluster.message / 2 + step.bytes / 2 / cluster.link
    return float(max(received, *free) + cluster.trip)


def speedup(step: Step, workers: int, repeats: int = 20) -> tuple[float, float]:
    """How many times as fast as one worker without messages: predicted, and simulated."""
    cluster, rng, alone = Cluster(workers), np.random.default_rng(0), step.tasks * step.seconds
    times = [simulated(step, cluster, rng) for _ in range(repeats)]
    return alone / predicted(step, cluster), alone / float(np.mean(times))


def main() -> None:
    """Print the table."""
    machine = Machine.documented(1)
    steps = {f"K V, n = {n:.0e}": exact(machine, n, 20) for n in (5e4, 2e5, 1e6)}
    for n, m in ((1e6, 1000), (1e6, 5000), (1e7, 5000), (1e8, 10_000), (1e9, 10_000)):
        steps[f"landmarks, n = {n:.0e}, m = {m}"] = landmarks(machine, n, 20, m)
    lines = ["| work | tasks | seconds of a task | 2 | 4 | 64 | 1024 workers |", "|---|---|---|---|---|---|---|"]
    for name, step in steps.items():
        cells = ["{:.3g} / {:.3g}".format(*speedup(step, workers)) for workers in (2, 4, 64, 1024)]
        lines.append(f"| {name} | {step.tasks} | {step.seconds:.2g} | {' | '.join(cells)} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
