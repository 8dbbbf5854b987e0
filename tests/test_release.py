"""What is published agrees with itself: the metadata, the recipe for conda-forge, the workflows and the documents."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, TOOL = PYPROJECT["project"], PYPROJECT["tool"]
EXTRAS = PROJECT["optional-dependencies"]
RECIPE = (ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8")
RELEASE = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
LEAST = PROJECT["requires-python"].removeprefix(">=")


def names(requirements: list[str]) -> dict[str, str]:
    """The least version of each requirement, by its name."""
    found = (re.fullmatch(r"([\w-]+)(?:\[.*\])? ?(.*)", one.partition(";")[0].strip()) for one in requirements)
    return {match[1]: match[2].removeprefix(">=") for match in found if match and match[1] != "mercer"}


def recipe(section: str) -> dict[str, str]:
    lines = re.search(rf"\n  {section}:\n((?:    .*\n)+)", RECIPE)
    assert lines
    return names(re.findall(r"^    - (\w.*)$", lines[1], re.MULTILINE))


def versions(text: str) -> list[str]:
    return re.findall(r"\b3\.\d+\b", text)


def test_the_recipe_has_the_requirements_of_the_wheel_and_of_the_command_line():
    asked = recipe("run")
    assert asked.pop("python") == ""
    assert asked == names(PROJECT["dependencies"]) | names(EXTRAS["cli"])
    built = recipe("host")
    assert {name: least for name, least in built.items() if least} == names(PYPROJECT["build-system"]["requires"])


def test_one_version_and_licence_and_summary():
    assert f'version: "{PROJECT["version"]}"' in RECIPE
    assert f"license: {PROJECT['license']}" in RECIPE
    assert "mercer = mercer.cli:main" in RECIPE
    assert PROJECT["scripts"] == {"mercer": "mercer.cli:main"}


def test_the_versions_of_python_agree():
    named = [one for line in PROJECT["classifiers"] if (one := line.partition("Python :: ")[2])[:2] == "3."]
    assert named == [f"3.{minor}" for minor in range(int(LEAST[2:]), int(LEAST[2:]) + len(named))]
    tried = re.search(r"python: \[(.*)\]", RELEASE)
    assert tried
    assert versions(tried[1]) == named
    assert f'python_min: "{LEAST}"' in RECIPE
    assert TOOL["ruff"]["target-version"] == "py" + LEAST.replace(".", "")
    assert f"find_package(Python {LEAST} REQUIRED" in (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    # One wheel before the stable ABI, and one with it for all later versions.
    stable = TOOL["scikit-build"]["wheel"]["py-api"]
    assert TOOL["cibuildwheel"]["build"] == [f"cp{LEAST.replace('.', '')}-*", f"{stable}-*"]
    assert int(stable[3:]) == int(LEAST[2:]) + 1


def test_extras_have_names_that_exist():
    for asked in EXTRAS.values():
        for one in asked:
            within = re.fullmatch(r"mercer\[(.*)\]", one)
            assert within is None or set(within[1].split(",")) <= set(EXTRAS), one
    told = 0
    for file in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]:
        for inside in re.findall(r"mercer\[([a-z,]+)\]", file.read_text(encoding="utf-8")):
            assert set(inside.split(",")) <= set(EXTRAS), f"{file}: {inside}"
            told += 1
    assert told > 5


def test_the_source_distribution_has_what_building_takes(tmp_path):
    """Its files are tracked ones: the core, the package, and the files that the build reads."""
    sdist = pytest.importorskip(
        "scikit_build_core.build", reason="scikit-build-core is not installed: no sdist is made"
    )
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = sdist.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        files = {member.partition("/")[2] for member in archive.getnames()}
    listed = subprocess.run([git, "ls-files", "core", "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    needed = {one for one in listed.stdout.splitlines() if (ROOT / one).exists()}
    others = {"CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"}
    assert needed | others <= files
    assert {one for one in files - needed - others if not one.startswith(("src/", "core/"))} == set()
    assert not [one for one in files if one.endswith((".so", ".pyd", ".pyc"))]
