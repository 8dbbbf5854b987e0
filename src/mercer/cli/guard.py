"""Errors become one line and an exit status."""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer

__all__ = ["BAD_INPUT", "FAILED", "INTERRUPTED", "discard_output", "guarded", "tell", "told_warnings"]

FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 1, 2, 130, 143
NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
AS_GOOD_AS_NONE = r".* ended with a relative residual of \d\.\de-(0[7-9]|[1-9]\d|\d{3}), not "
"""The warning of a solve that missed its tolerance with a residual below 1e-6, which no prediction shows."""
OPTIONS = {"save": "--out", "stream": "--out", "checkpoint": "--checkpoint", "mercer.report.write": "--report"}
"""What the functions that write files are on the command line."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command that prints an error as one line on standard error; with ``debug=True`` it raises the error.

    >>> @guarded
    ... def command(debug=False):
    ...     raise ValueError("two\\nlines")
    >>> try:
    ...     command()
    ... except typer.Exit as end:
    ...     print(end.exit_code)
    1
    """

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        from mercer.errors import Cancelled

        try:
            with told_warnings():
                _require_output(kwargs)
                command(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            discard_output()
            raise typer.Exit(FAILED) from None
        except (Exception, KeyboardInterrupt, Cancelled) as error:
            if kwargs.get("debug"):
                raise
            if _full(error):
                discard_output()
            status, text = _line(error, kwargs)
            tell(" ".join([f"mercer: {text}", *getattr(error, "__notes__", [])]))
            raise typer.Exit(status) from None

    return wrapper


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does: what was not written whole is deleted."""


def heed_termination() -> None:
    """Let SIGTERM raise `Terminated` in this process, unless it is ignored or handled."""
    caller = os.getpid()

    def end(number: int, frame: object) -> None:
        if os.getpid() == caller:
            raise Terminated
        os._exit(128 + number)  # a process that was forked has nothing of its own to clean up

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def _require_output(given: dict[str, Any]) -> None:
    """End the command if nobody would get its results: Python has no stream for a closed standard output."""
    from mercer.errors import message

    if sys.stdout is None and given.get("out") is None:
        tell(f"mercer: {message('standard output', 'it is closed', 'leave it open, or give it a file')}")
        raise typer.Exit(FAILED)


def discard_output() -> None:
    """Write no more to standard output, whose reader (such as ``head``) has closed the pipe.

    Without this, Python would complain about the pipe when it exits.
    """
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def tell(line: str) -> None:
    """Print a line on standard error; if nobody reads it, go on without it.

    >>> tell("note: 3 rows have no target")
    """
    try:
        typer.echo(line, err=True)
    except OSError:
        _discard(sys.stderr)


def _full(error: BaseException | None) -> bool:
    """Whether there is no room for what was written: on the device, or for its owner."""
    return isinstance(error, OSError) and error.errno in NO_ROOM


def _line(error: BaseException, given: dict[str, Any]) -> tuple[int, str]:
    """The exit status, and the error as a line. The speaker is the option of the parameter, if it has a value."""
    from mercer.errors import Cancelled, MercerError, message

    if isinstance(error, KeyboardInterrupt):
        return (TERMINATED if isinstance(error, Terminated) else INTERRUPTED), "stopped."
    text = " ".join(str(error).split())
    if isinstance(error, MercerError | Cancelled):
        who, _, rest = text.partition(": ")
        name, equals, value = rest.partition("=")
        of_option = equals and given.get(name) is not None
        text = f"--{name.replace('_', '-')}: {value}" if of_option else f"{OPTIONS.get(who, who)}: {rest}"
        bad = isinstance(error, ValueError | TypeError) and not _full(error.__cause__)
        return (BAD_INPUT if bad else FAILED), text
    if isinstance(error, ModuleNotFoundError) and 'pip install "mercer[' in text:
        return BAD_INPUT, text  # an option that needs an extra
    if _full(error):
        return FAILED, message("output", f"it cannot be written ({os.strerror(errno.ENOSPC)})", "make room")
    if isinstance(error, MemoryError):
        return FAILED, message("memory", text or "there is not enough of it", "give fewer rows, or --memory")
    return FAILED, message("an unexpected error", f"{type(error).__name__}: {text}", "--debug shows where it came from")


@contextmanager
def told_warnings() -> Iterator[None]:
    """Print each warning of mercer once, as one line after the results; those of other libraries are not shown.

    A checkpoint that cannot be written is told at once, while there are hours left to make room. A residual that is as
    good as none stands in the report alone: its advice is a tolerance, for which the commands have no option.
    """
    told: list[str] = []
    later: list[str] = []

    def hear(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = f"warning: {' '.join(str(message).split())}"
        if text in (*told, *later):
            return
        if issubclass(category, CheckpointWarning):
            told.append(text)
            tell(text)
        else:
            later.append(text)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mercer.errors import CheckpointWarning, ConvergenceWarning, IndefiniteKernelWarning

        warnings.simplefilter("always", CheckpointWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("always", IndefiniteKernelWarning)
        warnings.filterwarnings("ignore", AS_GOOD_AS_NONE, ConvergenceWarning)
        warnings.showwarning = hear
        try:
            yield
        finally:
            for text in later:
                tell(text)
