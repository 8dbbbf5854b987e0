"""``python -m mercer.accelerate``."""

import argparse
import gc
import io
import os
import runpy
import sys
from pathlib import Path
from types import ModuleType

from mercer.accelerate.imports import install
from mercer.accelerate.ledger import counts, summary


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
            _run(given.script)
    finally:
        if counts():
            sys.stderr.write(summary() + "\n")


def _run(script: str) -> None:
    """Run a script as Python does: with `__file__` absolute, and `sys.argv[0]` as given. `runpy` has one for both."""
    if Path(script).suffix in (".pyc", ".pyz", ".zip"):
        runpy.run_path(script, run_name="__main__")
        return
    module = ModuleType("__main__")
    module.__file__ = os.path.abspath(script)
    sys.modules["__main__"] = module
    with io.open_code(module.__file__) as file:
        exec(compile(file.read(), module.__file__, "exec", dont_inherit=True), vars(module))


if __name__ == "__main__":
    main()
