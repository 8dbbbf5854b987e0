"""The control groups that limit this process on Linux."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["folders"]

ROOT, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def folders(controller: str, root: Path = ROOT, membership: Path = MEMBERSHIP) -> Iterator[tuple[int, Path]]:
    """(version, folder) of each control group of this process that may have limits of a controller, and of its parents.

    Parameters
    ----------
    controller : str
        "cpu" or "memory".
    root, membership : Path
        Where the groups are mounted, and the file that names those of this process.
    """
    try:
        lines = membership.read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            version, base = 2, root
        elif controller in controllers.split(","):
            version, base = 1, root / controller
        else:
            continue
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            yield version, folder
            if folder == base:
                break
