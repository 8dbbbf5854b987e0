"""What a search has found so far, in a file, so that it goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput, message

__all__ = ["Ledger", "distinct", "fingerprint"]


def fingerprint(*things: Any) -> str:
    """A digest of arrays, tables and of the text of everything else.

    >>> fingerprint(np.arange(3), "a") == fingerprint(np.arange(3), "a") != fingerprint(np.arange(3), "b")
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for thing in things:
        for part in _parts(thing):
            digest.update(part)
            digest.update(b"\0")
    return digest.hexdigest()


def _parts(thing: Any) -> list[bytes]:
    if sp.issparse(thing):
        plain = thing.tocsr()
        return [repr(plain.shape).encode(), *(np.ascontiguousarray(a).tobytes() for a in (plain.data, plain.indices))]
    if hasattr(thing, "columns") and hasattr(thing, "shape"):
        return [repr(list(thing.columns)).encode(), *_parts(np.asarray(thing))]
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return [f"{thing.shape}{thing.dtype}".encode(), np.ascontiguousarray(thing).tobytes()]
    if isinstance(thing, np.ndarray | list | tuple):
        return [part for one in thing for part in _parts(one)]
    return [repr(thing).encode()]


def distinct(texts: list[str]) -> list[str]:
    """The texts, with a number from the second of its like on: functions may differ and be written alike.

    >>> distinct(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: Counter[str] = Counter()
    out = []
    for text in texts:
        seen[text] += 1
        out.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return out


class Ledger:
    """Scores by candidate, kept in a JSON file if there is one.

    Parameters
    ----------
    path : str or Path, optional
    key : str
        The fingerprint of the search: a file of another search is refused, not overwritten.

    Examples
    --------
    >>> ledger = Ledger(None, "k")
    >>> ledger.put("alpha=1", {"test_score": [0.5]})
    >>> ledger.get("alpha=1"), ledger.get("alpha=2")
    ({'test_score': [0.5]}, None)
    """

    def __init__(self, path: Any, key: str) -> None:
        self.path, self.key = None if path is None else Path(path), key
        self.found: dict[str, dict[str, list[float]]] = {}
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def _read(self, path: Path) -> None:
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            key, found = kept["search"], kept["found"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            given = f"resume={str(path)!r} is no file of a search ({type(error).__name__})"
            raise InvalidInput(message("KernelSearchCV", given, "name another file, or delete it")) from error
        if key != self.key:
            given = f"resume={str(path)!r} is of other data, folds, candidates or settings"
            raise InvalidInput(message("KernelSearchCV", given, "name another file, or delete it"))
        self.found = found

    def get(self, name: str) -> dict[str, list[float]] | None:
        """What was found of a candidate."""
        return self.found.get(name)

    def put(self, name: str, scores: dict[str, Any]) -> None:
        """Keep what was found."""
        self.found[name] = {key: [float(value) for value in values] for key, values in scores.items()}

    def save(self) -> None:
        """Write the file, if there is one, as a whole."""
        if self.path is None:
            return
        beside = self.path.with_name(self.path.name + ".part")
        beside.write_text(json.dumps({"search": self.key, "found": self.found}), encoding="utf-8")
        os.replace(beside, self.path)
