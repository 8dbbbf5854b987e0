"""Docstrings of public classes and functions have numpydoc's sections, and these agree with the code."""

from __future__ import annotations

import ast
import inspect
import re
from abc import ABC
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import pytest

import mercer
from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.solvers import State

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
NAMED = re.findall(r"mercer\.\w+", REFERENCE.read_text(encoding="utf-8"))
ROOMS = ("mercer", *(name for name in NAMED if find_spec(name)))
ORDER = (
    "Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References",
    "Examples",
)  # fmt: skip
OF_SCIKIT_LEARN = {"n_features_in_", "feature_names_in_"}


def public() -> dict[Any, str]:
    """Each public class and function, with its name."""
    found: dict[Any, str] = {}
    for room in ROOMS:
        module = pytest.importorskip(room, exc_type=ImportError) if room != "mercer" else mercer
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith("mercer"):
                found.setdefault(thing, f"{room}.{name}")
    return found


PUBLIC = public()


def doc_of(thing: Any) -> str:
    own = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    return inspect.cleandoc(own or "")


def sections(doc: str) -> dict[str, list[str]]:
    """The lines of each section, under "" those before the first one."""
    lines, found, name = doc.splitlines(), {"": []}, ""
    for line, below in pairwise([*lines, ""]):
        if re.fullmatch("-{3,}", below) and len(below) == len(line):
            name = line
            found[name] = []
        elif not re.fullmatch("-{3,}", line):
            found[name].append(line)
    return found


def entries(lines: list[str]) -> list[str]:
    """The names that a section of parameters or attributes describes."""
    heads = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def parameters(thing: Any) -> list[str]:
    """The names of the parameters; classes that nobody makes directly have none."""
    if inspect.isclass(thing) and (Protocol in thing.__bases__ or issubclass(thing, Enum | BaseException)):
        return []
    made = inspect.isclass(thing) and inspect.isfunction(vars(thing).get("__init__"))  # `__new__` may pass it on
    names = list(inspect.signature(thing.__init__ if made else thing).parameters)[made:]
    return [name for name in names if thing is not Kernel and name[0] != "_"]  # kernels have parameters of their own


@lru_cache
def definitions(file: str) -> list[Any]:
    """The classes and functions of a file, as they are written."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef | ast.FunctionDef)]


def errors(thing: Any) -> set[str]:
    """Mercer's errors that a function raises itself, and a class when it is made or fitted."""
    tree: Any = next((one for one in definitions(inspect.getfile(thing)) if one.name == thing.__name__), ast.Module([]))
    if isinstance(tree, ast.ClassDef):
        made = [one for one in tree.body if getattr(one, "name", "") in ("__init__", "__post_init__", "fit")]
        tree = ast.Module(made, [])
    raised = [one.exc for one in ast.walk(tree) if isinstance(one, ast.Raise)]
    names = {one.func.id for one in raised if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
    return {name for name in names if hasattr(mercer.errors, name)}


def faults(thing: Any) -> list[str]:
    """What is wrong with the sections of a docstring, but for examples."""
    doc = doc_of(thing)
    parts = sections(doc)
    found = [f"the section {name!r}" for name in parts if name and name not in ORDER]
    if [name for name in ORDER if name in parts] != [name for name in parts if name in ORDER]:
        found.append(f"the order of {', '.join(parts)}")
    own, described = parameters(thing), entries(parts.get("Parameters", []))
    results = entries(parts.get("Attributes", [])) if inspect.isclass(thing) else []
    if len(doc.splitlines()) == 1:  # a line that names them all needs no section
        described = [name for name in own if re.search(rf"\b{name}\b", doc)]
    found += [f"no parameter {name}" for name in own if name not in (*described, *results)]
    found += [f"{name} is not a parameter" for name in described if name not in own]
    found += [f"{name} is not under Raises" for name in errors(thing) - set(entries(parts.get("Raises", [])))]
    schema = getattr(thing, "fitted", None)
    if schema is not None and inspect.isclass(thing):
        fitted = {name for name in schema.names if name[0] != "_"}
        found += [f"no attribute {name}" for name in sorted(fitted - set(results) - OF_SCIKIT_LEARN)]
        others = set(results) - fitted
        found += [f"{name} is no attribute" for name in sorted(others) if not hasattr(thing, name)]
    for name, method in vars(thing).items() if inspect.isclass(thing) else ():
        if not name.startswith("_") and inspect.isfunction(method):
            described = entries(sections(doc_of(method)).get("Parameters", []))
            wanted = [one for one in inspect.signature(method).parameters if one != "self"]
            found += [f"{name}: {one} is not a parameter" for one in described if one not in wanted]
    return found


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: PUBLIC[thing])
def test_sections_agree_with_the_code(thing):
    assert not faults(thing)


def test_every_public_name_occurs_in_an_example():
    """In its own, or in that of what makes it. States and results of a run are not made by hand."""
    lines = [line for thing in PUBLIC for line in sections(doc_of(thing)).get("Examples", [])]
    methods = [method for thing in PUBLIC if inspect.isclass(thing) for method in vars(thing).values()]
    lines += [line for method in methods if inspect.isfunction(method) for line in (method.__doc__ or "").splitlines()]
    shown = set(re.findall(r"\w+", "\n".join(line for line in lines if line.strip().startswith((">>>", "...")))))
    missing = [name for thing, name in PUBLIC.items() if name.rpartition(".")[2] not in shown and needs_example(thing)]
    assert not missing


def needs_example(thing: Any) -> bool:
    parts = sections(doc_of(thing))
    if "Examples" in parts or (not inspect.isclass(thing) and len(doc_of(thing).splitlines()) == 1):
        return False
    if not inspect.isclass(thing):
        return True
    result = "Attributes" in parts and "Parameters" not in parts
    contract = Protocol in thing.__bases__ or ABC in thing.__bases__ or inspect.isabstract(thing)
    return not (result or contract or issubclass(thing, State | Enum | BaseException))


def test_chapters_are_cited_by_their_titles():
    bare = [
        name
        for thing, name in PUBLIC.items()
        if re.search(r"[Cc]hapters? \d+(?! \(|\d)", " ".join(sections(doc_of(thing)).get("References", [])))
    ]
    assert not bare


# ---- the checks can fail ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sound:
    """x + y.

    Parameters
    ----------
    x, y : float

    Raises
    ------
    InvalidInput
        If x is negative.
    """

    x: float
    y: float


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("x, y :", "x :", "no parameter y"),
        ("x, y :", "x, y, z :", "z is not a parameter"),
        ("Raises\n------", "Trouble\n-------", "the section 'Trouble'"),
        ("Raises\n------", "Examples\n--------\n\nRaises\n------", "the order of"),
    ],
)
def test_a_fault_is_found(old, new, fault):
    assert not faults(Sound)
    changed = dataclass(frozen=True)(type("Sound", (Sound,), {"__doc__": inspect.getdoc(Sound).replace(old, new)}))
    assert any(one.startswith(fault) for one in faults(changed))


def test_an_error_without_its_section_is_found():
    def refused(x: float) -> None:
        """Refuse x.

        Parameters
        ----------
        x : float
        """
        raise InvalidInput(str(x))

    assert faults(refused) == ["InvalidInput is not under Raises"]
