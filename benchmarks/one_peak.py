"""Prints the peak memory of one row in megabytes. `memory.peak` runs it as a process of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.harness import Setting, select
from benchmarks.memory import in_use


def main() -> None:
    """Build the row, warm up on a small size of it, run one side once, and print the megabytes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("key")
    parser.add_argument("side", choices=["ours", "peer"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()

    case = next(case for case in select() if case.key == options.key)
    small = case.build(Setting(True, 1, options.threads, options.data))
    getattr(small, options.side)()  # libraries, thread pools and their stacks are no part of the price of a call
    row = case.build(Setting(options.quick, 1, options.threads, options.data))
    before, _ = in_use()
    getattr(row, options.side)()
    _, most = in_use()
    print(max(0.0, most - before))


if __name__ == "__main__":
    main()
