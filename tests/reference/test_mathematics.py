"""docs/mathematics.md names code and tests that exist."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "mathematics.md").read_text(encoding="utf-8")
BOXED = ("(21.18)", "(21.36)", "(21.55)", "(21.56)")


def found(name):
    """A module, what it holds, or an attribute of that: a method, or a fitted array that the class describes."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            if not hasattr(thing, part):
                return part.endswith("_") and re.search(rf"\b{part}\b", inspect.getdoc(thing) or "") is not None
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(mercer\.[\w.]+)`", PAGE))))
def test_code_exists(name):
    assert found(name)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(\d{3}\w*::test_\w+)`", PAGE))))
def test_tests_exist(name):
    chapter, test = name.split("::")
    source = (HERE / f"test_chapter_{chapter}.py").read_text(encoding="utf-8")
    assert f"def {test}(" in source


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(\w+/test_\w+\.py::test_\w+)`", PAGE))))
def test_other_tests_exist(name):
    file, test = name.split("::")
    assert f"def {test}(" in (HERE.parent / file).read_text(encoding="utf-8")


def test_every_reference_test_is_on_the_page():
    for file in HERE.glob("test_chapter_*.py"):
        for test in re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            assert f"{file.stem.removeprefix('test_chapter_')}::{test}`" in PAGE, test


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\]\(\.\./examples/(\w+\.py)\)", PAGE))))
def test_gallery_pages_exist(name):
    assert (HERE.parents[1] / "examples" / name).is_file()


@pytest.mark.parametrize("equation", BOXED)
def test_boxed_equations_are_on_the_page(equation):
    assert f"**{equation}**" in PAGE


@pytest.mark.parametrize(
    "name", ["mercer.KernelPCA.guess", "mercer.KernelPCA.guess_", "mercer.nothing", "numpyy.array"]
)
def test_the_search_can_fail(name):
    assert not found(name)
