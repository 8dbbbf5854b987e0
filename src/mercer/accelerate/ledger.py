"""Where calls ran, with seconds and reasons, in this process and in the workers that it starts."""

from __future__ import annotations

import atexit
import json
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["Call", "at_end", "begin", "counts", "note", "strict", "summary"]

VARIABLE = "MERCER_ACCELERATE"
"""The process that counts, 1 if nothing may be left to scikit-learn, and the file to which its workers write."""


class Call(NamedTuple):
    """One call, by mercer if `why` is empty, else by scikit-learn for this reason."""

    what: str
    seconds: float
    why: str = ""


_calls: list[Call] = []
_end = ExitStack()
atexit.register(_end.close)  # before joblib is imported, so after its hooks, which wait for processes that were forked


def at_end(do: Callable[[], object]) -> None:
    """Do this at the end of this process, after the script's threads and hooks; not in processes that it has forked."""
    owner = os.getpid()
    _end.callback(lambda: os.getpid() == owner and do())


def begin(strict: bool) -> None:
    """Count from here on."""
    _calls.clear()
    file = _file(os.getpid())
    file.write_text("", encoding="utf-8")
    os.environ[VARIABLE] = f"{os.getpid()}:{int(strict)}:{file}"


@cache
def _file(owner: int) -> Path:
    """The file of this process, one for all that call `begin`, since the summary at its end reads it."""
    handle, path = tempfile.mkstemp(prefix="mercer-", suffix=".jsonl")
    os.close(handle)
    file = Path(path)
    at_end(lambda: file.unlink(missing_ok=True))
    return file


def _setting() -> tuple[int, bool, str]:
    owner, strict, path = os.environ.get(VARIABLE, f"{os.getpid()}:0:").split(":", 2)
    return int(owner), strict == "1", path


def strict() -> bool:
    """Whether what mercer does not cover is an error."""
    return _setting()[1]


def counts() -> bool:
    """Whether this is the process that counts, not one that it has forked."""
    return _setting()[0] == os.getpid()


def note(call: Call) -> None:
    """Count a call; in a worker write it to the file."""
    if counts():
        _calls.append(call)
    else:
        with open(_setting()[2], "a", encoding="utf-8") as file:
            file.write(json.dumps(call) + "\n")


def _all() -> Iterator[Call]:
    yield from _calls
    path = Path(_setting()[2] or os.devnull)
    if path.is_file():
        yield from (Call(*json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())


def summary() -> str:
    """What ran in mercer and what in scikit-learn: calls, seconds, and why not in mercer.

    Examples
    --------
    >>> import mercer.accelerate
    >>> mercer.accelerate.install()
    >>> mercer.accelerate.summary()
    'mercer.accelerate: nothing of what mercer covers was called.'
    >>> mercer.accelerate.uninstall()
    """
    found: dict[tuple[str, bool], list[Call]] = defaultdict(list)
    for call in _all():
        found[call.what, not call.why].append(call)
    if not found:
        return "mercer.accelerate: nothing of what mercer covers was called."
    lines = ["mercer.accelerate:"]
    for (what, ours), calls in sorted(found.items(), key=lambda one: -sum(call.seconds for call in one[1])):
        where = "mercer" if ours else "scikit-learn"
        seconds = sum(call.seconds for call in calls)
        lines.append(f"  {what:36} {len(calls):6} × in {where:12} {seconds:9.3f} s")
        lines += [
            f"    {count} ×: {why}" for why, count in Counter(call.why for call in calls if call.why).most_common()
        ]
    return "\n".join(lines)
