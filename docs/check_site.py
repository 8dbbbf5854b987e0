"""Checks the built site: links lead somewhere, public names have a place. `python docs/check_site.py HTML`."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Where the site may lead, whole: a build asks no other host, so a new address is a new line here, and they are few.
ELSEWHERE = {
    "https://docs.dask.org",
    "https://onnx.ai",
    "https://onnxruntime.ai",
    "https://pydata-sphinx-theme.readthedocs.io/en/stable/index.html",  # in the footers
    "https://sphinx-gallery.github.io",
    "https://www.sphinx-doc.org/",
}


@dataclass
class Page(HTMLParser):
    """The anchors of one page, and the addresses that it names."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self.links += [given[name] for name in ("href", "src", "xlink:href") if name in given]


def wrong_links(root: Path) -> Iterator[str]:
    """A line for each link of the site under ``root`` that leads nowhere."""
    pages = {path: Page(path) for path in sorted(root.resolve().rglob("*.html")) if "_static" not in path.parts}
    for path, page in pages.items():
        for link in sorted(set(page.links)):
            if why := wrong(link, path, pages):
                yield f"{path.relative_to(root.resolve())}: {link!r} {why}"


def wrong(link: str, page: Path, pages: dict[Path, Page]) -> str:
    """Why ``link`` of ``page`` leads nowhere; empty if it does not."""
    parts = urlsplit(link)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return "" if link in ELSEWHERE else "is not one of the known addresses elsewhere"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return "is not a file of the site"
    known = target not in pages or not parts.fragment or unquote(parts.fragment) in pages[target].anchors
    return "" if known else "is not an anchor of that page"


def public_names() -> Iterator[str]:
    """The names that users import, with their modules: of `mercer` itself and of the packages in the reference."""
    text = (Path(__file__).parent / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^ +(mercer\.\w+)$", text, re.MULTILINE)
    modules = [name for name in named if importlib.util.find_spec(name)]  # others are functions
    documented = [importlib.import_module(name) for name in modules]
    seen = {name for module in documented for name in module.__all__}
    yield from (f"{module.__name__}.{name}" for module in documented for name in module.__all__)
    top = importlib.import_module("mercer")
    known = {name.removeprefix("mercer.") for name in modules}
    yield from (f"mercer.{name}" for name in {*top.__all__, *top.PACKAGES} - seen - known)


def undocumented(root: Path, names: set[str]) -> set[str]:
    """Those of ``names`` that no page of the reference under ``root`` has an anchor for."""
    return names.difference(
        *(Page(path).anchors for path in [root / "api.html", *sorted((root / "api").glob("*.html"))])
    )


def main(root: Path) -> int:
    """Print what is wrong; 1 if anything is."""
    lines = [
        *wrong_links(root),
        *(f"{name} is not in the reference" for name in sorted(undocumented(root, {*public_names()}))),
    ]
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
