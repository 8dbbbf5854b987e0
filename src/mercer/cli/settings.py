"""The settings of a run as a TOML file: ``--config`` reads them, and ``--save-config`` writes them."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from mercer.errors import InvalidInput, message
from mercer.files import write_whole
from mercer.io.outputs import check_output
from mercer.tables.texts import near_names
from mercer.version import __version__

__all__ = ["apply_settings", "as_toml", "check_settings_place", "given_settings", "save_settings"]

HEAD = "# mercer "
UNSAVED = ("config", "save-config", "debug", "help", "install-completion", "show-completion")
SHOWN = 30


def apply_settings(context: typer.Context, path: Path | None) -> Path | None:
    """Let the settings in a file be the defaults of the other options; the callback of ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    own, found = _parameters(context), _read(path)
    name = str(context.info_name)
    written = found.pop("command", name)
    if written != name:
        given = f"has the settings of mercer {written}, not of mercer {name}"
        raise InvalidInput(message(path.name, given, f"give it to mercer {written}"))
    context.default_map = {**(context.default_map or {}), **_values(path.name, name, own, found)}
    return path


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        given, do = "there is no such file", "check the name and the folder"
    except IsADirectoryError:
        given, do = "is a folder", "name a file in it"
    except OSError as error:
        given, do = f"may not be read ({error.strerror})", "change its permissions"
    except ValueError as error:  # of TOML, or of UTF-8
        given, do = f"is not a TOML file ({' '.join(str(error).split())})", "write lines such as seed = 1"
    raise InvalidInput(message(path.name or str(path), given, do))


def _values(file: str, command: str, own: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The values in a file by the names that the command has for them."""
    values: dict[str, Any] = {}
    for key, value in found.items():
        name = key.replace("_", "-")
        if name not in own:
            near = near_names(name, own)
            do = f"did you mean {near[0]!r}?" if near else f"its settings are {', '.join(list(own)[:SHOWN])}"
            raise InvalidInput(message(file, f"{key!r} is not a setting of mercer {command}", do))
        values[own[name].name] = _value(file, name, own[name], value)
    return values


def _value(file: str, name: str, parameter: Any, value: Any) -> Any:
    """A value as the command line would have it: text, a truth value for a flag, or a list of texts."""
    flag = bool(getattr(parameter, "is_flag", False))
    plain = isinstance(value, str | int | float)
    if flag != isinstance(value, bool) or not (plain or isinstance(value, list)):
        kind = "true or false" if flag else "a text, a number, or a list of texts"
        raise InvalidInput(message(file, f"{name} = {value!r}", f"give {kind}"))
    if isinstance(value, list):
        if not value or not all(isinstance(one, str) for one in value):
            raise InvalidInput(message(file, f"{name} = {value!r}", "give a list of texts"))
        return value if getattr(parameter, "multiple", False) else _joined(value)
    if getattr(parameter, "multiple", False):
        return [str(value)]
    return value if flag else str(value)


def _joined(names: Iterable[str]) -> str:
    """Names with commas between them, quoted if they have some, as ``--columns`` reads them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(list(names))
    return line.getvalue()


def _parameters(context: typer.Context) -> dict[str, Any]:
    """The arguments and options of a command, by the names that a file has for them."""
    named = {}
    for one in context.command.params:
        long = next((text for text in one.opts if text.startswith("--")), str(one.name))
        named[long.lstrip("-")] = one
    return {name: one for name, one in named.items() if name not in UNSAVED}


def given_settings(context: typer.Context) -> dict[str, Any]:
    """All settings of a run, defaults too, but those that are nothing."""
    settings: dict[str, Any] = {"command": context.info_name}
    for name, one in _parameters(context).items():
        value = context.params.get(str(one.name))
        if value is not None and value != () and value != []:
            settings[name] = str(value) if isinstance(value, Path) else value
    return settings


def check_settings_place(path: Path | None, inputs: Iterable[Path]) -> None:
    """Raise InvalidInput if settings must not be written here."""
    if path is not None:
        check_output("--save-config", path, inputs, "settings of mercer", _is_ours)


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(HEAD)) == HEAD.encode()


def save_settings(path: Path, settings: dict[str, Any]) -> None:
    """Write settings to a file, whole or not at all."""
    head = f"{HEAD}{__version__}; the same again: mercer {settings['command']} --config {path.name}\n"
    write_whole(path, (head + as_toml(settings)).encode(), "--save-config")


def as_toml(settings: dict[str, Any]) -> str:
    """Texts, numbers, truth values and lists of these as TOML, a line each.

    >>> print(as_toml({"kernel": 'gaussian("median")', "alpha": 0.1, "holdout": True, "kernels": ["a", "b"]}), end="")
    kernel = "gaussian(\\"median\\")"
    alpha = 0.1
    holdout = true
    kernels = ["a", "b"]
    """
    return "".join(f"{name} = {_as_toml(value)}\n" for name, value in settings.items())


def _as_toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    if isinstance(value, float):
        return repr(float(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's texts are TOML's, but for DEL
