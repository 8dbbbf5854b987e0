"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main(arguments: list[str] | None = None) -> int:
    """Measure the chosen rows, print the tables, and with ``--write`` put them into the documentation."""
    options = _options(arguments)
    # Thread pools read these when their libraries are loaded, so they come before every import that loads one.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)

    from benchmarks import report
    from benchmarks.harness import Setting, run, select

    cases = select(options.only)
    if options.list:
        print("\n".join(case.key for case in cases))
        return 0
    if not cases:
        print(f"no row matches {options.only!r}; --list names them", file=sys.stderr)
        return 2
    rounds = 1 if options.quick else options.rounds
    setting = Setting(options.quick, rounds, options.threads, options.data, options.patience)
    results = run(cases, setting)
    print(report.markdown(results))
    if options.json:
        report.write_json(results, options.json)
    if options.write:
        results = report.with_earlier(results, DOCS / "benchmarks.json", [case.key for case in select("")])
        report.write_json(results, DOCS / "benchmarks.json")
        report.write_markdown(results, DOCS / "benchmarks.md")
        for page in report.pages_with_figures(DOCS.parent):
            page.write_text(report.with_figures(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ours and the peers in turn, in one run.")
    parser.add_argument("--only", default="", metavar="PATTERN", help="rows whose key matches this regular expression")
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    parser.add_argument("--rounds", type=int, default=5, help="how often ours and the peer take turns (5)")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1), help="for ours and every peer (2)")
    patience = "seconds to wait before a row while others take the cores (0)"
    parser.add_argument("--patience", type=float, default=0.0, metavar="SECONDS", help=patience)
    parser.add_argument("--data", type=Path, metavar="DIR", help="has zip.train.gz (USPS); rows without it are skipped")
    parser.add_argument("--quick", action="store_true", help="toy sizes, one round: only shows that the rows run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here as well")
    write = "put the results into docs/benchmarks.json and .md; rows that were not measured stay as they are"
    parser.add_argument("--write", action="store_true", help=write)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
