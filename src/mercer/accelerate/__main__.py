"""``python -m mercer.accelerate``."""

import argparse
import builtins
import gc
import io
import os
import runpy
import sys
from importlib.machinery import SourceFileLoader
from itertools import takewhile
from pathlib import Path
from types import ModuleType

from mercer.accelerate.imports import install
from mercer.accelerate.ledger import at_end, summary

MAIN = {"__builtins__": builtins}
"""What Python puts into `__main__`; into other modules it puts a dictionary."""


def main() -> None:
    """Run a script or a module with our classes, and say at the end what ran where."""
    parser = argparse.ArgumentParser(prog="python -m mercer.accelerate", description=main.__doc__)
    parser.add_argument("--strict", action="store_true", help="all in mercer, or an error")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    first = 2 + len(list(takewhile(lambda one: one.startswith("-"), sys.argv[1:])))
    given = parser.parse_args(sys.argv[1:first])  # of what follows SCRIPT, argparse would take a `--` for its own
    if not given.module and not Path(given.script).is_file():
        parser.error(f"{given.script}: no such file; give the path of a script, or -m and the name of a module")
    sys.argv = [given.script, *given.arguments, *sys.argv[first:]]
    install(strict=given.strict)
    at_end(_say)
    gc.freeze()  # what is imported by now stays; collections in the script need not look at it
    if given.module:
        runpy.run_module(given.script, MAIN, "__main__", alter_sys=True)
    else:
        _run(given.script)


def _say() -> None:
    """Write the summary, if that can be done."""
    said = summary()
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(said + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # the disk is full, or the file is closed
        sys.stderr = None  # Python would flush it once more, fail, and put 120 for the exit code of the script


def _run(script: str) -> None:
    """Run a script as Python does: with `__file__` absolute, and `sys.argv[0]` as given. `runpy` has one for both."""
    archive = Path(script).suffix in (".pyz", ".zip")
    if not sys.flags.safe_path:  # else Python puts nothing there, be it for a script or for -m
        sys.path[0] = os.path.abspath(script) if archive else str(Path(script).resolve().parent)
    if archive or Path(script).suffix == ".pyc":
        runpy.run_path(script, MAIN, "__main__")
        return
    module, file = ModuleType("__main__"), os.path.abspath(script)
    vars(module).update(MAIN, __file__=file, __loader__=SourceFileLoader("__main__", file))
    sys.modules["__main__"] = module
    with io.open_code(file) as code:
        exec(compile(code.read(), file, "exec", dont_inherit=True), vars(module))


if __name__ == "__main__":
    main()
