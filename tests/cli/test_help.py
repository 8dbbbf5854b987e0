"""What the command line says of itself: the help of every command, and one letter for the regularisation."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
typer = pytest.importorskip("typer")

from mercer.cli import app as commands  # noqa: E402

NAMES = [
    "fit",
    "tune",
    "compare",
    "predict",
    "transform",
    "evaluate",
    "inspect",
    "plot",
    "check",
    "demo",
    "schema",
    "lab",
]


def options():
    """(command, option) of all of them."""
    group = typer.main.get_command(commands.app)
    return [(name, one) for name, command in group.commands.items() for one in command.params]


def test_mercer_alone_shows_the_help(capsys):
    assert commands.run([]) == 0
    shown = capsys.readouterr()
    assert all(f"\n  {name} " in shown.out for name in NAMES)
    assert shown.err == ""


@pytest.mark.parametrize("name", ["", *NAMES])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_help(name, option, capsys):
    assert commands.run([*name.split(), option]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: mercer{' ' * bool(name)}{name} ")
    assert "-h, --help" in shown


def test_the_help_of_an_option_is_of_full_sentences():
    seen = options()
    assert {name for name, _ in seen} == set(NAMES)
    for name, one in seen:
        _, *others = one.help.split()
        assert re.fullmatch(r"[A-Z].*\.", one.help), (name, one.name, one.help)
        assert len(others) >= 2, (name, one.name, one.help)
        assert one.metavar or one.is_flag or one.secondary_opts, (name, one.name)


def test_the_regularisation_has_one_letter():
    said = [one.help for _, one in options()] + [command.help for command in commands.app.registered_commands]
    lines = [text for text in said if text and re.search("λ|lambda|penalty", text)]
    assert set(lines) == {next(one.help for name, one in options() if (name, one.name) == ("fit", "alpha"))}
    assert "(λ in the chapters)" in lines[0]


def test_what_is_printed_has_one_letter_for_the_regularisation(tmp_path, capsys):
    rows = [f"{i / 7:.3f},{(i / 7) ** 2:.3f},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("x,y,kind\n" + "\n".join(rows) + "\n")
    for command in ("fit", "tune"):
        assert commands.run([command, str(tmp_path / "t.csv"), "--target", "y"]) == 0
        shown = capsys.readouterr().out
        assert "α = " in shown
        assert not re.search("λ|lambda|penalty|alpha ?=", shown), shown
    assert commands.run(["fit", str(tmp_path / "t.csv"), "--target", "y", "--kernel", "sigmoid(gamma=1.0, coef0=-3.0)",
                         "--alpha", "1e-9"]) in (0, 1, 2)  # fmt: skip
    shown = capsys.readouterr()
    assert not re.search(r"λ(?!min)|penalty", shown.out + shown.err)
