"""The scores of a search so far, in a file, so that an interrupted search can continue."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from mercer.errors import InvalidInput, message
from mercer.files import write_whole

__all__ = ["Ledger", "distinct"]


def distinct(texts: list[str]) -> list[str]:
    """The texts, with a number added to repeated ones: different functions may have the same text.

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
    who : str
        Whose scores they are, in messages.

    Examples
    --------
    >>> ledger = Ledger(None, "k")
    >>> ledger.put("alpha=1", {"test_score": [0.5]})
    >>> ledger.get("alpha=1"), ledger.get("alpha=2")
    ({'test_score': [0.5]}, None)
    """

    def __init__(self, path: Any, key: str, who: str = "KernelSearchCV") -> None:
        self.path, self.key, self.who = None if path is None else Path(path), key, who
        self.found: dict[str, dict[str, list[Any]]] = {}
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def _read(self, path: Path) -> None:
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            key, found = kept["search"], kept["found"]
            digest = kept.get("digest", _digest(found))  # files of earlier versions have none
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            given = f"resume={str(path)!r} is not the file of a search ({type(error).__name__})"
            raise InvalidInput(message(self.who, given, "name another file, or delete it")) from error
        if digest != _digest(found):
            given = f"resume={str(path)!r} was changed since it was written: its checksum does not fit"
            raise InvalidInput(message(self.who, given, "name another file, or delete it"))
        if key != self.key:
            other = "other data, weights, folds, candidates, settings or code of yours, or another version"
            given = f"resume={str(path)!r} is of {other}"
            raise InvalidInput(message(self.who, given, "name another file, or delete it"))
        self.found = found

    def get(self, name: str) -> dict[str, list[Any]] | None:
        """The scores of a candidate, or None."""
        return self.found.get(name)

    def put(self, name: str, scores: dict[str, Any]) -> None:
        """Keep what was found: lists of numbers or texts."""
        self.found[name] = {
            key: [value if isinstance(value, str) else float(value) for value in values]
            for key, values in scores.items()
        }

    def save(self) -> None:
        """Write the file, if there is one, as a whole."""
        if self.path is None:
            return
        kept = {"search": self.key, "digest": _digest(self.found), "found": self.found}
        write_whole(self.path, json.dumps(kept).encode(), self.who, f"resume={str(self.path)!r}")


def _digest(found: Any) -> str:
    return hashlib.blake2b(json.dumps(found).encode(), digest_size=16).hexdigest()
