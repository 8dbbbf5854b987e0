"""The benchmarks run, on toy sizes, so that their rows cannot rot; no test here looks at an absolute time."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
QUICK = ["--quick", "--threads", "1"]  # one: pools that spin beside each other take longer than the work


@pytest.fixture(scope="module")
def harness():
    from benchmarks import harness

    return harness


@pytest.fixture(scope="module")
def report(harness):
    from benchmarks import report

    return report


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    """Every row but those of KeOps, which compiles."""
    file = tmp_path_factory.mktemp("benchmarks") / "results.json"
    printed = command(*QUICK, "--only", "^(?!.*keops)", "--json", str(file))
    return printed, json.loads(file.read_text(encoding="utf-8"))


def test_every_row_runs(quick_run):
    _, document = quick_run
    assert len(document["results"]) > 20
    for result in document["results"]:
        if result["skipped"]:
            assert "not installed" in result["skipped"], result
        else:
            assert result["value"] is not None, result
            assert result["value"] >= 0, result


def test_every_error_is_small(quick_run):
    _, document = quick_run
    for result in document["results"]:
        of_the_method = result["key"].startswith(("usps,", "area,", "sentiment"))
        if result["ours_error"] is not None and not of_the_method:
            assert result["ours_error"] < max(1e-5, result["tolerance"] or 0.0), result["key"]


def test_toy_sizes_judge_nothing(quick_run):
    printed, document = quick_run
    assert "these figures mean nothing" in printed
    assert {result["met"] for result in document["results"]} == {None}


def test_list_names_the_rows(monkeypatch, capsys):
    from benchmarks.__main__ import main

    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # which it sets, and which are as before at the end
    assert main(["--list", "--only", "keops"]) == 0
    assert "product_keops,d=3" in capsys.readouterr().out.split()


def test_the_median_ratio_of_a_race(harness, monkeypatch):
    monkeypatch.setattr(harness.machine, "crowd", lambda: lambda: 0.0)  # a busy machine has its rounds again
    times = iter([1.0, 8.0, 2.0, 8.0, 1.0, 5.0])
    monkeypatch.setattr(harness, "clock", lambda call, rest: next(times))
    result = measured(harness, harness.Row("", lambda: 0.0, lambda: 0.0, target=harness.at_least(5)))
    assert (result.value, result.low, result.high) == (5.0, 4.0, 8.0)
    assert result.met


@pytest.mark.parametrize(("errors", "met"), [((0.0, 0.0), True), ((0.1, 0.0), False), ((0.0, 0.1), None)])
def test_a_target_is_met_by_exact_answers_only_and_set_by_exact_peers(harness, monkeypatch, errors, met):
    monkeypatch.setattr(harness, "clock", lambda call, rest: 1.0)
    row = harness.Row("", lambda: errors[0], lambda: errors[1], target=harness.at_least(1), error=float, tolerance=1e-3)
    assert measured(harness, row).met is met


def measured(harness, row):
    from benchmarks import machine

    case = harness.Case("case", "group", lambda setting: row)
    return harness.measure(case, harness.Setting(rounds=3), machine.Probe(64))


@pytest.mark.parametrize(("figure", "value"), [("speedup", 4.0), ("cost", 0.25), ("share", 2.0)])
def test_figures(harness, figure, value):
    work = (1.0, 2.0) if figure == "share" else (1.0, 1.0)
    assert harness.Row("", lambda: 0, figure=figure, work=work).value(0.5, 2.0) == value


def test_a_row_of_minutes_is_run_once_and_judged_by_its_memory_too(harness, monkeypatch):
    calls = []
    target = harness.at_most(1e6)
    row = harness.Row("", lambda: calls.append(1), figure="seconds", target=target, once=True, most_megabytes=1e6)
    result = measured(harness, row)
    assert len(calls) == result.rounds == 1
    assert result.value == result.ours_seconds
    assert result.met
    monkeypatch.setattr(harness.memory, "watched", lambda: contextlib.nullcontext(lambda: 2e6))
    assert measured(harness, row).met is False


def test_a_missing_peer_is_said(harness):
    from benchmarks import machine, peers

    case = harness.Case("case", "group", lambda setting: peers.need("no_such_peer"))
    assert harness.measure(case, harness.Setting(), machine.Probe(64)).skipped == "no_such_peer is not installed"


def test_the_references_can_fail(harness):
    from benchmarks import data

    X, v = data.normal(50, 3), data.vector(50)
    K = np.exp(-0.5 * ((X[:, None].astype(float) - X) ** 2).sum(-1))
    assert data.product_error(X, v, 0.5)(K @ v) < 1e-12
    assert data.product_error(X, v, 0.5)(K @ v * 1.001) > 1e-4
    assert data.entry_error(X, 0.5)(K) < 1e-12
    assert data.entry_error(X, 0.5)(K + 1e-3) > 1e-4


def test_tables_replace_what_stands_between_the_markers_only(harness, report, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"above\n{report.BEGIN}\nold\n{report.END}\nbelow\n")
    result = harness.Result("key", "group", name="A row", value=2.0, figure="speedup")
    run = harness.Run([result], {"cpu": "one"}, harness.Setting(), 1.0, 1.0)
    report.write_markdown(run, page)
    text = page.read_text()
    assert text.startswith("above\n")
    assert text.endswith("\nbelow\n")
    assert "A row" in text
    assert "old" not in text
    report.write_json(run, tmp_path / "results.json")
    assert "NaN" not in (tmp_path / "results.json").read_text()


def test_an_area_has_one_table_of_the_columns_that_it_fills(harness, report):
    def result(key, group, **values):
        return harness.Result(key, group, name=key, value=2.0, figure="speedup", target=3.0, **values)

    results = [
        result("a", "one", rounds=3, met=False, note="A note."),
        result("b", "two", ours_seconds=1.5),
        result("c|d", "one", rounds=5, note="A note."),
    ]
    page = report.markdown(harness.Run(results, {}, harness.Setting(), 1.0, 1.0))
    assert [line for line in page.splitlines() if line.startswith("### ")] == ["### one", "### two"]
    assert page.count("How measured: 3 to 5 rounds. A note.\n") == 1
    headings = [line for line in page.splitlines() if line.startswith("| what")]
    assert headings == ["| what | figure | target |", "| what | figure | target | ours |"]
    assert '| <a id="a"></a>a | **2 ×** | ≥ 3 ×, **missed** |' in page
    assert '| <a id="c-d"></a>c\\|d |' in page


def test_the_page_shows_the_stored_results(report):
    """Every figure of the page is in the JSON file."""
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    shown = page.partition(report.BEGIN)[2].partition(report.END)[0]
    assert shown.strip() == report.markdown(report.read_json(ROOT / "docs" / "benchmarks.json")).strip()


def test_a_run_of_some_rows_keeps_the_others_and_says_so(harness, report, tmp_path):
    def run(*results):
        return harness.Run(list(results), {}, harness.Setting(), 1.0, 1.0)

    first, second = (harness.Result(key, "group", name=key.upper(), value=2.0, figure="speedup") for key in "ab")
    gone = harness.Result("gone", "group")
    report.write_json(run(first, gone, second), tmp_path / "results.json")
    now = report.with_earlier(run(harness.Result("b", "group", value=3.0)), tmp_path / "results.json", ["a", "b", "c"])
    assert [(one.key, one.value, one.earlier) for one in now.results] == [("a", 2.0, True), ("b", 3.0, False)]
    assert np.isnan(now.results[0].ours_seconds)
    assert "A °" in report.markdown(now)


@pytest.mark.parametrize(("pace", "slow"), [(90.0, False), (1000.0, True)])
def test_a_row_is_judged_by_the_best_of_its_own_run(harness, report, tmp_path, monkeypatch, pace, slow):
    """100 is slow beside 300 in one run, 300 is not; the pace of a later run changes neither."""
    file, keys = tmp_path / "results.json", list("abc")
    first = run_at(harness, monkeypatch, [100.0, 100.0, 300.0, 290.0], "ab")
    report.write_json(first, file)
    later = run_at(harness, monkeypatch, [pace, 0.5 * pace if slow else pace], "c")
    expected = {"a": (True, True), "b": (True, False), "c": (False, slow)}
    for _ in range(2):  # the second time from a file that has rows of an earlier run itself
        now = report.with_earlier(later, file, keys)
        assert {one.key: (one.earlier, one.disturbed) for one in now.results} == expected
        report.write_json(now, file)
        written = json.loads(file.read_text(encoding="utf-8"))["results"]
        assert {one["key"]: (one["earlier"], one["disturbed"]) for one in written} == expected
    page = report.markdown(now)
    lines = {key: line for key in keys for line in page.splitlines() if line.startswith(f'| <a id="{key}"></a>')}
    assert ["⚠" in lines[key] for key in keys] == [True, False, slow]
    assert ["°" in lines[key] for key in keys] == [True, True, False]


def run_at(harness, monkeypatch, paces, keys, missing=""):
    """A run of a row for each key, on a machine whose paces before and after each row are these."""
    left = iter(paces)

    def pace(probe):
        rate = next(left)
        probe.best = max(probe.best, rate)
        return rate

    def build(key):
        if key in missing:
            raise harness.Missing("no peer")
        return harness.Row(key, lambda: None, figure="seconds", once=True)

    monkeypatch.setattr(harness.machine.Probe, "pace", pace)
    monkeypatch.setattr(harness.machine, "crowd", lambda: lambda: 0.0)
    cases = [harness.Case(key, "group", lambda setting, key=key: build(key)) for key in keys]
    return harness.run(cases, harness.Setting())


def test_marks_are_explained_where_a_row_shows_one(harness, report):
    def page(**values):
        result = harness.Result("key", "group", name="A row", value=2.0, figure="speedup", **values)
        return report.markdown(harness.Run([result], {}, harness.Setting(), 1.0, 1.0))

    for mark, values in {"⚠": {"disturbed": True}, "°": {"earlier": True}}.items():
        assert mark not in page()
        assert page(**values).count(mark) == 2  # the row's, and what it means
        assert mark not in page(**values, skipped="no peer")
    both = page(disturbed=True, earlier=True)
    assert both.count("⚠") == both.count("°") == 2


def test_a_row_that_was_skipped_is_not_called_disturbed(harness, monkeypatch):
    run = run_at(harness, monkeypatch, [100.0, 100.0], "ab", missing="b")
    assert [(one.skipped, one.disturbed) for one in run.results] == [("", False), ("no peer", False)]


@pytest.mark.parametrize(
    ("crowds", "kept"), [([0.0] * 9, [0, 1]), ([0.5, 0.0, 0.3, 0.1], [1, 3]), ([0.9, 0.8, 0.3, 0.7, 0.2, 0.5], [4, 2])]
)
def test_rounds_that_others_disturbed_are_measured_again(harness, monkeypatch, crowds, kept):
    times, left = iter(range(100)), iter(crowds)
    monkeypatch.setattr(harness, "clock", lambda call, rest: call())
    monkeypatch.setattr(harness.machine, "crowd", lambda: lambda: next(left))
    rounds = harness._rounds(lambda: next(times), lambda: -1, 2, 0.0)
    assert sorted(rounds) == sorted((place, -1) for place in kept)


def test_a_run_waits_for_a_quiet_machine_but_not_for_ever(harness, monkeypatch):
    machine, rests, left = harness.machine, [], iter([0.9, 0.5, 0.05, 0.0])
    monkeypatch.setattr(machine, "LOOK", 0.0)
    monkeypatch.setattr(machine, "crowd", lambda: lambda: next(left))
    monkeypatch.setattr(machine.time, "sleep", rests.append)
    machine.Probe(16).await_quiet(60.0)
    assert rests == [machine.PAUSE] * 2
    machine.Probe(16).await_quiet(0.0)
    assert next(left) == 0.0  # nobody looked


def test_a_row_that_fails_is_said_and_the_others_go_on(harness, capsys):
    from benchmarks import machine

    def build(setting):
        raise TypeError("only 32-bit indices")

    found = harness.measure(harness.Case("case", "group", build), harness.Setting(), machine.Probe(64))
    assert found.skipped == "failed: TypeError: only 32-bit indices"
    assert "only 32-bit indices" in capsys.readouterr().err


def test_the_page_has_its_markers(report):
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert 0 < page.find(report.BEGIN) < page.find(report.END)


def test_figures_in_the_text_are_those_of_the_rows_that_they_lead_to(report):
    run = report.read_json(ROOT / "docs" / "benchmarks.json")
    for page in report.pages_with_figures(ROOT):
        text = page.read_text(encoding="utf-8")
        assert text == report.with_figures(text, run), page.name
    key = report.anchor(run.results[0].key)
    wrong = f"[1.5 ×](docs/benchmarks.md#{key}) faster"
    assert report.with_figures(wrong, run) == f"[{run.results[0].value:.3g} ×](docs/benchmarks.md#{key}) faster"


def test_the_usps_table_on_other_digits(harness):
    from sklearn.datasets import load_digits

    from benchmarks import usps_table

    X, y = load_digits(return_X_y=True)
    X = X / 8.0 - 1.0
    columns = {d: usps_table.errors((X[:600], y[:600]), (X[600:900], y[600:900]), d, (4, 32, 100), 300) for d in (1, 2)}
    assert columns[1][100] is None, "a linear kernel has no more components than there are pixels"
    assert columns[2][32] < columns[2][4]
    assert columns[2][100] < 0.1
    assert usps_table.table(columns).splitlines()[-1].startswith("| 100 | – | ")


def test_the_table_of_defaults(harness, tmp_path, monkeypatch, capsys):
    from benchmarks import defaults_table

    wanted = "KernelRidgeClassifier", "KernelRidge"
    for name in ("classifiers", "regressors"):
        some = [model for model in getattr(defaults_table, name)() if model.name in wanted]
        monkeypatch.setattr(defaults_table, name, lambda some=some: some)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{defaults_table.BEGIN}\nold\n{defaults_table.END}\nafter\n")
    defaults_table.main(["--only", "wine", "--only", "diabetes", "--out", str(page)])
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith(("| wine", "| diabetes"))]
    assert len(rows) == 2
    for row in rows:
        default, tuned = (float(part.strip("*| ")) for part in row[2].split(" / "))
        assert 0 <= tuned <= 100
        assert (default > tuned + defaults_table.GAP) == ("**" in row[2])
    kept = (ROOT / "docs" / "defaults.md").read_text(encoding="utf-8")
    assert 0 < kept.find(defaults_table.BEGIN) < kept.find(defaults_table.END)
    assert defaults_table.cell(defaults_table.Result(8.0, 5.9)) == "**8.0** / 5.9"
    assert defaults_table.cell(defaults_table.Result(8.0, 6.0, warned=True)) == "8.0† / 6.0"
    assert defaults_table.cell(defaults_table.Result(float("nan"), 6.0)) == "– / 6.0"


def test_a_call_that_takes_memory_is_seen():
    """In a process of its own, as the harness does it: here what earlier tests freed would be taken again."""
    code = """
        import numpy as np
        from benchmarks import memory
        before = memory.in_use()[0]
        block = np.ones(4_000_000)
        print(memory.in_use()[1] - before)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert 25 < float(done.stdout) < 60
