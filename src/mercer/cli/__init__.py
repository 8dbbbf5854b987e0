"""The command line: ``mercer fit``, ``tune``, ``compare``, ``predict``, ``evaluate`` and more."""

from __future__ import annotations

import io
import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit: with 0, 2 for bad input, 130 for Ctrl-C, 143 for SIGTERM, 1 for other failures."""
    missing = next((name for name in ("pandas", "rich", "typer") if find_spec(name) is None), None)
    if missing:
        given = f"the command line needs {missing}, which is not installed"
        print(f'mercer: cli: {given}; pip install "mercer[cli]".', file=sys.stderr)
        sys.exit(1)
    from mercer.cli.app import run
    from mercer.cli.guard import heed_termination

    heed_termination()
    # With PYTHONUNBUFFERED the rest of a short write would be lost in silence. A closed standard output is None.
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = open(sys.stdout.fileno(), "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115
    sys.exit(run(sys.argv[1:]))


def __dir__() -> list[str]:
    return sorted(__all__)
