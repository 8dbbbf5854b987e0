"""The picture of the floors in architecture.md, from the layers in pyproject.toml and the first lines of the folders.

``python docs/draw_floors.py`` writes it into the page; a test holds the page to it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, SOURCE = ROOT / "docs" / "architecture.md", ROOT / "src" / "mercer"
BEGIN, END = "<!-- floors: drawn by docs/draw_floors.py -->\n", "<!-- end of floors -->"


def floors() -> list[list[str]]:
    """The names on each floor, from the top down."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return [re.findall(r"\w+", layer) for layer in layers]


def room(name: str) -> list[str]:
    """A folder or a module: what its first line says, and the folders in it. Nothing if the source has no such room."""
    folder = SOURCE / name
    file = folder / "__init__.py" if folder.is_dir() else SOURCE / f"{name}.py"
    if not file.exists():
        return []
    says = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n")[0]
    inside = sorted(one.parent.name for one in folder.glob("*/__init__.py"))
    return [f"{name:<15} {says}"] + ([f"{'':<15} ↳ {', '.join(inside)}"] if inside else [])


def picture() -> str:
    """The floors from the top down, each with its number at its first room."""
    drawn = [[line for name in names for line in room(name)] for names in floors()]
    drawn = [lines for lines in drawn if lines]
    lines = [
        f"{f'F{len(drawn) - 1 - i}' if not j else '':<4}{line}"
        for i, floor in enumerate(drawn)
        for j, line in enumerate(floor)
    ]
    return "\n".join(["```text", *lines, "```", ""])


def drawn(page: str) -> str:
    """The page with today's picture."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + picture() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
