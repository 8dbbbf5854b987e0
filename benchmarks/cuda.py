"""Measure the CUDA engine on this machine's NVIDIA devices: `make bench-cuda`."""

from __future__ import annotations

import argparse
import dataclasses
import sys

import mercer
from benchmarks import report, rows_cuda
from benchmarks.__main__ import DOCS
from benchmarks.harness import Setting, run, select
from mercer.errors import DeviceError

BEGIN, END = "<!-- cuda: begin -->", "<!-- cuda: end -->"


def main(arguments: list[str] | None = None) -> int:
    """Measure all rows, print the tables, and with ``--write`` put them into docs/benchmarks.md."""
    options = _options(arguments)
    sizes = {one.name: getattr(options, one.name) for one in dataclasses.fields(rows_cuda.Sizes)}
    rows_cuda.given.choose(**sizes)
    rows_cuda.chosen.devices, rows_cuda.chosen.tensor_cores = tuple(options.devices), not options.no_tensor_cores
    try:
        mercer.use("cuda", devices=options.devices, tensor_cores=not options.no_tensor_cores)
    except DeviceError as error:
        print(f"nothing was measured: {error}", file=sys.stderr)
        return 2
    full = rows_cuda.given == rows_cuda.Sizes()
    results = run(select(options.only or "^cuda_", ("rows_cuda",)), Setting(not full, options.rounds, 1))
    results.machine["tensor cores"] = "off" if options.no_tensor_cores else "for 64 float32 columns or more"
    print(report.markdown(results))
    if options.write:
        report.write_markdown(results, DOCS / "benchmarks.md", (BEGIN, END))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda", description="What NVIDIA devices do.")
    parser.add_argument("--only", default="", metavar="PATTERN", help="rows whose key matches this regular expression")
    parser.add_argument("--rounds", type=int, default=3, help="how often ours and the peer take turns (3)")
    parser.add_argument("--devices", type=int, nargs="+", default=[0], metavar="N", help="the devices to use (0)")
    parser.add_argument("--no-tensor-cores", action="store_true", help="FP32 units only")
    for one in dataclasses.fields(rows_cuda.Sizes):
        name = "--" + one.name.replace("_", "-")
        parser.add_argument(name, type=int, default=one.default, metavar="N", help=f"({one.default})")
    parser.add_argument("--write", action="store_true", help="put the results into docs/benchmarks.md")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
