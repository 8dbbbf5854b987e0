"""The page of what ``--json`` prints, from the types of the results.

``python docs/draw_results.py`` writes it; a test holds the page to it.
"""

from __future__ import annotations

from pathlib import Path

from mercer.cli.output.schema import RESULTS, rows

PAGE = Path(__file__).resolve().parent / "json.md"
HEAD = """# Results for programs

<!-- drawn by docs/draw_results.py -->

With `--json` a command prints one JSON object, in one line, on standard output, and nothing else there. Numbers are in
full precision; `null` stands for what is not a finite number. Notes, warnings and errors are lines on standard error:
after an error standard output is empty, and the exit status says what happened ([the command line](command-line.md)).

`mercer schema COMMAND` prints the JSON Schema (2020-12) of a command's result, to which
the tests hold the real results. New versions may add fields; within a major version none is removed or changes its
meaning.

```sh
mercer fit houses.csv --target price --json | jq .score
mercer compare houses.csv --target price --json | jq -r '.leaderboard[] | [.name, .mean, .low, .high] | @tsv'
```

`a.b` is the field `b` of the object `a`, and `a[].b` that of each object in the list `a`.
"""


def page() -> str:
    """The whole page: a table of fields for each command."""
    parts = [HEAD]
    for command in RESULTS:
        lines = [f"| `{field}` | {kind.replace('|', ',')} | {said} |" for field, kind, said in rows(command)]
        parts.append("\n".join([f"## mercer {command}", "", "| field | type | meaning |", "|---|---|---|", *lines, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
