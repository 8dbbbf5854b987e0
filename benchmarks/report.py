"""Results as JSON, and as tables for people."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

from benchmarks.harness import Result, Run, Setting
from benchmarks.machine import Quiet

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"

FIGURE = re.compile(r"\[([\d.e-]+ (?:×|s|MB|%))\]\([\w/.]*benchmarks\.md#([\w-]+)\)")

HEADINGS = ("what", "against", "figure", "target", "ours", "peer", "error: ours", "peer", "MB: ours", "peer")
NONE = "–"


def write_json(run: Run, path: Path) -> None:
    """Write all measurements as JSON; a missing value is null."""
    document = {
        "machine": run.machine,
        "setting": {"rounds": run.setting.rounds, "threads": run.setting.threads, "quick": run.setting.quick},
        "sgemm_gflops": run.pace,
        "seconds": run.seconds,
        "results": [dataclasses.asdict(result) for result in run.results],
    }
    path.write_text(json.dumps(_plain(document), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Run:
    """The run that `write_json` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    results = [_result(one) for one in document["results"]]
    return Run(
        results, document["machine"], Setting(**document["setting"]), document["sgemm_gflops"], document["seconds"]
    )


def with_earlier(run: Run, path: Path, keys: list[str]) -> Run:
    """A run of some rows, completed by the other rows of the document at `path`, in the order of `keys`."""
    found = {result.key: result for result in run.results}
    for one in read_json(path).results:
        if one.key in keys and one.key not in found:
            found[one.key] = dataclasses.replace(one, earlier=True)
    return dataclasses.replace(run, results=[found[key] for key in keys if key in found])


def _result(one: dict[str, Any]) -> Result:
    kinds = {field.name: field.type for field in dataclasses.fields(Result)}
    values = {name: value for name, value in one.items() if name in kinds}
    absent = {name: math.nan for name, value in values.items() if value is None and kinds[name] == "float"}
    return Result(**values | absent | {"quiet": Quiet(**one["quiet"])})


def _plain(value: Any) -> Any:
    """The value, or None for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_markdown(run: Run, path: Path, marks: tuple[str, str] = (BEGIN, END)) -> None:
    """Replace the text between the two markers; the rest of the page is written by hand."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise ValueError(f"{path.name} has no {marks[0]} … {marks[1]}: put the two lines where the tables belong")
    path.write_text(f"{before}{begin}\n\n{markdown(run)}\n{end}{after}", encoding="utf-8")


def pages_with_figures(root: Path) -> list[Path]:
    """The pages that quote figures: `[49 ×](docs/benchmarks.md#anchor)`."""
    return [
        page
        for page in [root / "README.md", *sorted(root.glob("docs/*.md"))]
        if FIGURE.search(page.read_text(encoding="utf-8"))
    ]


def with_figures(text: str, run: Run) -> str:
    """The text with the figures that lead to a row replaced by those of the run."""
    figures = {anchor(result.key): _number(result.value, result.figure) for result in run.results}
    return FIGURE.sub(lambda found: f"[{figures.get(found[2], found[1])}]({found[0].partition('](')[2]}", text)


def markdown(run: Run) -> str:
    """The machine, a table for each area, and the meaning of the marks."""
    parts = [_machine(run)]
    for group in dict.fromkeys(result.group for result in run.results):
        parts.append(_table(group, [result for result in run.results if result.group == group]))
    shown = [result for result in run.results if not result.skipped]
    if any(result.disturbed for result in shown):
        best = "its best in the run that measured the row"
        parts.append(f"⚠ measured while the machine was slower than at {best}, or busy: not to be trusted.\n")
    if any(result.earlier for result in shown):
        parts.append("° of an earlier run, on a machine of the same kind; the others were measured after it.\n")
    return "\n".join(parts)


def _machine(run: Run) -> str:
    facts = [f"- {name}: {value}" for name, value in run.machine.items()]
    facts.append(f"- sgemm at its best: {run.pace:.0f} GFLOP/s")
    facts.append(f"- the last run: {run.seconds:.0f} s, up to {run.setting.rounds} rounds")
    warning = "**Toy sizes: these figures mean nothing.**\n\n" if run.setting.quick else ""
    return warning + "\n".join(facts) + "\n"


def _table(group: str, results: list[Result]) -> str:
    """The heading of an area, how it was measured, and its rows, without columns that are empty in all of them."""
    rows = [_cells(result) for result in results]
    kept = [i for i in range(len(HEADINGS)) if any(row[i] != NONE for row in rows)]
    lines = [
        [HEADINGS[i] for i in kept],
        ["---"] * len(kept),
        *([row[i].replace("|", "\\|") for i in kept] for row in rows),
    ]
    return "\n".join([f"### {group}\n", _how(results), *("| " + " | ".join(line) + " |" for line in lines), ""])


def _how(results: list[Result]) -> str:
    """The number of timed rounds, and the remarks of the rows."""
    shown = [result for result in results if not result.skipped]
    timed = sorted({result.rounds for result in shown if result.rounds})
    rounds = f"{timed[0]} to {timed[-1]} rounds" if len(timed) > 1 else f"{timed[0]} rounds" if timed else "not timed"
    notes = dict.fromkeys(result.note for result in shown if result.note)
    return " ".join([f"How measured: {rounds.replace('1 rounds', '1 round')}.", *notes]) + "\n"


def _cells(r: Result) -> list[str]:
    if r.skipped:
        return [r.name or r.key, r.peer_name or NONE, f"skipped: {r.skipped}", *[NONE] * (len(HEADINGS) - 3)]
    return [
        f'<a id="{anchor(r.key)}"></a>{r.name}' + (" °" if r.earlier else ""),
        r.peer_name or NONE,
        _figure(r) + (" ⚠" if r.disturbed else ""),
        _target(r),
        _seconds(r.ours_seconds),
        _seconds(r.peer_seconds),
        _scientific(r.ours_error),
        _scientific(r.peer_error),
        _megabytes(r.ours_megabytes),
        _megabytes(r.peer_megabytes),
    ]


def anchor(key: str) -> str:
    """The anchor of a row in the page, for links from elsewhere."""
    return re.sub(r"[\W_]+", "-", key).lower()


def _target(r: Result) -> str:
    if r.target is None:
        return NONE
    bound = f"{'≥' if r.target_is_least else '≤'} {_number(r.target, r.figure)}"
    return f"{bound}, **missed**" if r.met is False else bound


def _figure(r: Result) -> str:
    text = f"**{_number(r.value, r.figure)}**"
    if math.isfinite(r.low) and r.rounds > 1:
        text += f" ({_number(r.low, r.figure)} – {_number(r.high, r.figure)})"
    return text


def _number(value: float, figure: str) -> str:
    if figure == "share":
        return f"{100 * value:.0f} %"
    if figure == "error":
        return f"{value:.1e}"
    if figure == "seconds":
        return f"{value:.3g} s"
    if figure == "rate":
        return f"{value:.2g} pairs a second"
    return f"{value:.0f} MB" if figure == "memory" else f"{value:.3g} ×"


def _seconds(value: float) -> str:
    if not math.isfinite(value):
        return NONE
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.1f} ms"


def _scientific(value: float) -> str:
    return f"{value:.1e}" if math.isfinite(value) else NONE


def _megabytes(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else NONE
