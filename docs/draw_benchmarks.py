"""Charts of docs/benchmarks.json for the site: a directive draws one area as an SVG whose rows lead to the table."""

from __future__ import annotations

import io
import json
import re
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

JSON = Path(__file__).with_name("benchmarks.json")
WIDTH, LINE, LEAST = 4.4, 0.15, 1e-3  # of a chart and of a line in inches, and the shortest bar
TEXT, MET, MISSED, PLAIN = "#010203", "#3d8fd1", "#d9822b", "#8a8f98"
BETTER = {True: "times as fast as the peer", False: "share of the limit"}


def rows_of(group: str, ratios: bool) -> list[dict[str, Any]]:
    """The measured rows of an area: ratios to a peer, of which more is better, or figures with a limit."""
    rows = [one for one in json.loads(JSON.read_text(encoding="utf-8"))["results"] if one["group"] == group]
    rows = [one for one in rows if not one["skipped"] and (ratios or one["target"])]
    return [one for one in rows if (one["figure"] in ("speedup", "share")) is ratios]


def said(row: dict[str, Any]) -> str:
    """The figure of a row as text, with its target.

    >>> said({"value": 5.27, "figure": "speedup", "target": 10, "target_is_least": True, "met": False})
    '5.3 ×, target 10 missed'
    >>> said({"value": 1e-7, "figure": "error", "target": 1e-5, "target_is_least": False, "met": True})
    '1e-07, limit 1e-05'
    """
    unit = {"speedup": " ×", "share": " ×", "cost": " ×", "seconds": " s", "memory": " MB", "error": ""}[row["figure"]]
    text = f"{row['value']:.2g}" if row["value"] < 100 else f"{row['value']:.0f}"
    if row["target"] is None or (row["met"] and row["target_is_least"]):
        return text + unit
    bound = "target" if row["target_is_least"] else "limit"
    return f"{text}{unit}, {bound} {row['target']:g}{' missed' * (not row['met'])}"


def colour(row: dict[str, Any]) -> str:
    """Whether a row met its target."""
    if row["met"] is None or row["target"] is None:
        return PLAIN
    return MET if row["met"] else MISSED


def anchor(key: str) -> str:
    """The anchor of a row in docs/benchmarks.md."""
    return re.sub(r"[\W_]+", "-", key).lower()


def svg(rows: list[dict[str, Any]], ratios: bool) -> str:
    """The chart of some rows: a label, and below it a bar on a logarithmic axis with the figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    labels = [
        wrap(f"{row['name']} – {row['peer_name']}".rstrip("– ").replace("`", ""), 62, break_on_hyphens=False)
        for row in rows
    ]
    heights = [LINE * len(lines) + 0.28 for lines in labels]
    with mpl.rc_context({"svg.fonttype": "none", "font.size": 8, "font.family": "sans-serif", "text.color": TEXT}):
        figure = Figure(figsize=(WIDTH, sum(heights) + 0.5))
        room = 0.45 / figure.get_figheight()
        axes = figure.add_axes((0.02, room, 0.96, 1 - room))
        widths = [max(row["value"] / (1 if ratios else row["target"]), LEAST) for row in rows]
        low, high = (min(1, *widths), max(widths)) if ratios else (LEAST, max(1.0, *widths))
        axes.set(xscale="log", xlim=(low, high * (high / low) ** 0.6), ylim=(sum(heights), 0), xlabel=BETTER[ratios])
        top, start = 0.0, 1 if ratios else low
        for row, lines, height, width in zip(rows, labels, heights, widths, strict=True):
            axes.text(low, top + 0.04, "\n".join(lines), va="top", url=f"benchmarks.html#{anchor(row['key'])}")
            middle = top + height - 0.12
            axes.barh(middle, width - start, 0.14, left=start, color=colour(row))
            axes.text(max(width, start) * (high / low) ** 0.02, middle, said(row), va="center", weight="bold")
            axes.plot((1, 1), (middle - 0.11, middle + 0.11), color=TEXT, linewidth=0.8)
            top += height
        axes.tick_params(colors=TEXT)
        axes.xaxis.label.set_color(TEXT)
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(side.spine_type == "bottom")
            side.set_color(TEXT)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return written.getvalue()


def inline(drawn: str, name: str) -> str:
    """An SVG file as a part of a page: the page's text colour, ids of its own, as wide as there is room."""
    drawn = drawn[drawn.index("<svg") :].replace(TEXT, "currentColor")
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", drawn)
    opening = r'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="\1">'
    return re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', opening, drawn, count=1)


class Benchmarks(SphinxDirective):
    """The charts of one area of docs/benchmarks.json, by its name."""

    required_arguments, final_argument_whitespace = 1, True

    def run(self) -> list[nodes.Node]:
        """One figure for the ratios, and one for figures with limits."""
        self.env.note_dependency(str(JSON))
        found: list[nodes.Node] = []
        for ratios in (True, False):
            if rows := rows_of(self.arguments[0], ratios):
                about = f"{self.arguments[0]}, {BETTER[ratios]}: "
                alt = about + "; ".join(f"{row['name']}: {said(row)}" for row in rows)
                name = re.sub(r"\W+", "-", about).lower()
                chart = inline(svg(rows, ratios), name)
                label = f'class="benchmarks" role="group" aria-label="{escape(alt)}"'
                found.append(nodes.raw("", f"<figure {label}>{chart}</figure>", format="html"))
        if not found:
            raise self.error(f"docs/benchmarks.json has no area {self.arguments[0]!r}; take one of its groups")
        return found


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.add_directive("benchmarks", Benchmarks)
