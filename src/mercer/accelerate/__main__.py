"""``python -m mercer.accelerate``."""

import argparse
import gc
import runpy
import sys
from pathlib import Path

from mercer.accelerate.imports import install
from mercer.accelerate.ledger import summary


def main() -> None:
    """Run a script or a module with our classes, and say at the end what ran where."""
    parser = argparse.ArgumentParser(prog="python -m mercer.accelerate", description=main.__doc__)
    parser.add_argument("--strict", action="store_true", help="all in mercer, or an error")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    given = parser.parse_args()
    if not given.module and not Path(given.script).is_file():
        parser.error(f"{given.script}: no such file; give the path of a script, or -m and the name of a module")
    sys.argv = [given.script, *given.arguments]
    install(strict=given.strict)
    gc.freeze()  # what is imported by now stays; collections in the script need not look at it
    try:
        if given.module:
            sys.path.insert(0, "")
            runpy.run_module(given.script, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(given.script).resolve().parent))
            runpy.run_path(given.script, run_name="__main__")
    finally:
        sys.stderr.write(summary() + "\n")


if __name__ == "__main__":
    main()
