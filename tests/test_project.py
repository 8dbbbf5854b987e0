"""The project keeps its own rules: floors, docstrings, versions, sizes, and nothing that belongs to one machine."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import re
import shutil
import subprocess
import symtable
import tokenize
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "mercer"
FILES = sorted(SOURCE.rglob("*.py"))
FOLDERS = sorted({file.parent for file in FILES})

LONGEST_FUNCTION, MOST_IN_A_FOLDER = 40, 16
# "path:function" -> why it is longer than the rest.
LONGER_FOR_A_REASON: dict[str, str] = {}

MACHINE = {
    "a path of one machine": r"(?<![\w.:/])/(?:home|Users|root|work|workspace|builds)/\w",
    "a Windows user's path": r"[A-Z]:\\+Users\\+\w",
    "a package registry": r"https?://[^\s\"'>)]*(?:artifactory|nexus|devpi|/simple\b)",
    "a choice of registry": r"(?:--(?:extra-)?index-url|PIP_(?:EXTRA_)?INDEX_URL)[ =:]*\w",
    "a private address": r"\b(?:10\.\d+|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d+\.\d+\b",
}


def module_name(file: Path) -> str:
    parts = ("mercer", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_floors_hold(monkeypatch, capsys):
    cli = pytest.importorskip("importlinter.cli")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("logging.config.dictConfig", lambda settings: None)  # it would disable all other loggers
    failed = cli.lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert not failed, capsys.readouterr().out


def test_the_installed_package_has_its_pages():
    pages = [file for file in SOURCE.rglob("*") if file.suffix in {".html", ".css", ".js", ".typed"}]
    assert {file.name for file in pages} >= {"page.html", "py.typed"}
    for file in pages:
        installed = resources.files("mercer").joinpath(*file.relative_to(SOURCE).parts)
        assert installed.read_bytes() == file.read_bytes(), file


def tracked_files() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return []
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_no_tracked_file_names_one_machine():
    files = tracked_files()
    if not files:
        pytest.skip("not a git checkout")
    found = []
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for number, line in enumerate(lines, start=1):
            found += [f"{file.relative_to(ROOT)}:{number}: {what}" for what, p in MACHINE.items() if re.search(p, line)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "cd " + "/home" + "/ada/mercer",
        r"C:" + r"\Users" + r"\ada",
        "https://" + "nexus.example.org/pypi",
        "--index-" + "url " + "https:" + "//example.org",
        "http://192." + "168.0.7/",
    ],
)
def test_the_machine_patterns_can_match(line):
    assert any(re.search(pattern, line) for pattern in MACHINE.values())


# What a machine does in a second, or how long it takes, is said in one place.
TIMES = re.compile(
    r"(?<![\w(])\d[\d.,]* ?(?:ns|µs|ms|s|min|h)\b(?![\])+*-])|[GT]FLOP|\b(?:nano|micro|milli)seconds?\b"
    r"|\b(?:tenths?|hundredths?|fractions?) of a second\b|\b(?:rows|entries|operations|bytes|pairs) a second\b"
)
WHERE_TIMES_ARE = ("planning/", "gram/rates.py", "cli/", "events/")


def times_in(text: str) -> list[str]:
    """Lines of comments and docstrings that state a time or a rate."""
    inside = [
        part.string
        for part in tokenize.generate_tokens(io.StringIO(text).readline)
        if part.type == tokenize.COMMENT or (part.type == tokenize.STRING and part.string.startswith(('"""', 'r"""')))
    ]
    plain = [re.sub(r"(?m)^\s*(?:>>>|\.\.\.).*", "", one) for one in inside]
    return [line.strip() for one in plain for line in one.splitlines() if TIMES.search(line)]


def test_no_file_but_the_cost_model_states_a_time_or_a_rate():
    found = [
        f"{path}: {line}"
        for file in FILES
        if not (path := file.relative_to(SOURCE).as_posix()).startswith(WHERE_TIMES_ARE)
        for line in times_in(file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    ["# takes 42 ms", "# at 5 GFLOP/s", '"""Of shape (n, d), 0.5 s on one core."""', "# some tenths of a second"],
)
def test_the_pattern_of_times_can_match(line):
    assert times_in(line + "\n")


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert mercer.__version__ == project["version"]
    try:
        installed = importlib.metadata.version("mercer")
    except importlib.metadata.PackageNotFoundError:
        return
    assert installed == project["version"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SOURCE)))
def test_every_public_name_has_a_docstring(folder):
    bare, missing = [], set()
    for file in sorted(folder.glob("*.py")):
        try:
            module = importlib.import_module(module_name(file))
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("mercer"):
                raise
            missing.add(error.name)
            continue
        names = getattr(module, "__all__", [])
        assert len(set(names)) == len(names), file
        bare += [f"{file.name}: {one}" for name in names for one in undocumented(name, getattr(module, name))]
    assert not bare, f"no docstring on {', '.join(bare)}"
    if missing:
        pytest.skip(f"{', '.join(sorted(missing))} not installed")


def undocumented(name: str, thing: object) -> list[str]:
    """What lacks a docstring: the thing (a dataclass's automatic signature doesn't count) or its public methods."""
    if inspect.isroutine(thing):
        return [] if thing.__doc__ else [name]
    if not (inspect.isclass(thing) and thing.__module__.startswith("mercer")):
        return []
    own = vars(thing).get("__doc__") or ""
    bare = [] if own.strip() and not own.startswith(f"{thing.__name__}(") else [name]
    methods = [key for key, member in vars(thing).items() if not key.startswith("_") and inspect.isfunction(member)]
    return bare + [f"{name}.{method}" for method in methods if not inspect.getdoc(getattr(thing, method))]


@pytest.fixture(scope="module")
def trees():
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


def test_short_functions(trees):
    functions = [
        (f"{file.relative_to(SOURCE).as_posix()}:{node.name}", length(node))
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = {name for name, lines in functions if lines > LONGEST_FUNCTION} - LONGER_FOR_A_REASON.keys()
    assert not long, f"{', '.join(sorted(long))}: beyond {LONGEST_FUNCTION} lines"


def test_one_concept_a_file(trees):
    """Each file and folder says in one line what is in it."""
    silent = [
        (str(file.relative_to(SOURCE)), first)
        for file, tree in trees.items()
        if file.name not in ("__main__.py", "version.py")
        and not (first := (ast.get_docstring(tree) or "").split("\n")[0]).endswith((".", "?", ":"))
    ]
    assert not silent, "no first line that says what is in it"


def test_no_file_imports_from_the_doors_of_its_own_folders(trees):
    """What such a door hands out may need the file itself."""
    found = []
    for file, tree in trees.items():
        name = module_name(file)
        above = {name.rsplit(".", n)[0] for n in range(1, name.count("."))}  # import-linter has the front door
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in above:
                names = [f"{node.module}.{one.name}" for one in node.names]
                found += [(f"{name}:{node.lineno}", one) for one in names if importlib.util.find_spec(one) is None]
    assert not found


def test_the_picture_of_the_floors_is_of_today(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    draw = importlib.import_module("draw_floors")
    page = draw.PAGE.read_text(encoding="utf-8")
    assert draw.drawn(page) == page, "python docs/draw_floors.py draws it anew"
    assert len(page.splitlines()) <= 150, "a tour, not a book"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SOURCE)))
def test_small_folders(folder):
    modules = [one for one in folder.glob("*.py") if one.name != "__init__.py"]
    assert len(modules) <= MOST_IN_A_FOLDER, f"{len(modules)} modules: divide them into folders"


# What asks which kind of array the rows are, outside of points/: how often it may be there, which only ever goes down.
KINDS_OF_ROWS = {
    "the name of a space is compared": (r"domain(?:\(\))?\s*(?:==|!=|in|not in)\s*[\[({\"']", 0),
    "an attribute that some kinds have": (r"hasattr\([\w.]+, \"(?:shape|columns|to_numpy|iloc|ndim|dtypes?)\"\)", 0),
    "zeros that may be left out": (r"\bissparse\(", 5),
}


@pytest.mark.parametrize("question", KINDS_OF_ROWS)
def test_points_know_what_kind_they_are(question):
    pattern, most = KINDS_OF_ROWS[question]
    found = []
    for file in FILES:
        if file.relative_to(SOURCE).parts[0] != "points":
            lines = file.read_text(encoding="utf-8").splitlines()
            found += [f"{file.name}:{i}: {line.strip()}" for i, line in enumerate(lines, 1) if re.search(pattern, line)]
    listed = "\n".join(found)
    assert len(found) == most, f"{question} in {len(found)} places, not {most}; ask the points:\n{listed}"


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("the name of a space is compared", 'if kernel.domain == "any":'),
        ("the name of a space is compared", 'if self._domain() in ("any", "vectors"):'),
        ("an attribute that some kinds have", 'n = X.shape[0] if hasattr(X, "shape") else len(X)'),
        ("zeros that may be left out", "if sp.issparse(self.X_fit_):"),
    ],
)
def test_questions_about_rows_are_found(question, line):
    assert re.search(KINDS_OF_ROWS[question][0], line)


def test_data_of_tests_do_not_depend_on_their_order():
    """What a test draws from a generator of its module depends on what ran before; the fixture `rng` is its own."""
    files = [
        file for file in sorted((ROOT / "tests").rglob("*.py")) if "default_rng(" in file.read_text(encoding="utf-8")
    ]
    found = [f"{file.name}: {one}" for file in files for one in shared_draws(file.read_text(encoding="utf-8"))]
    assert not found, f"draws from the module's generator in {', '.join(found)}"


def shared_draws(source: str) -> list[str]:
    """The functions that draw from a generator of the module."""
    generators = set(re.findall(r"^(\w+) = np\.random\.default_rng\([^()]*\)$", source, re.MULTILINE))
    comprehensions = {"genexpr", "listcomp", "setcomp", "dictcomp"}
    module = symtable.symtable(source, "test", "exec")
    tables = [table for table in module.get_children() if table.get_name() not in comprehensions]
    found = []
    while tables:
        table = tables.pop()
        tables += table.get_children()
        if any(one.get_name() in generators and one.is_global() for one in table.get_symbols()):
            found.append(table.get_name())
    return found


def test_shared_draws_are_found():
    module = "import numpy as np\nRNG = np.random.default_rng(0)\nX = [RNG.random() for _ in range(3)]\n"
    assert shared_draws(module + "def test_one(rng):\n    return rng.random(3)") == []
    assert shared_draws(module + "def test_one():\n    RNG = np.random.default_rng(1)\n    return RNG.random(3)") == []
    assert shared_draws(module + "def test_one():\n    return RNG.random(3)") == ["test_one"]
    assert shared_draws(module + "ROWS = {'few': lambda: RNG.random(3)}") == ["lambda"]
    assert shared_draws(module + "def test_one():\n    return [RNG.random() for _ in range(3)]")


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring and decorators."""
    first = node.body[0]
    docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node, clean=False) is not None else 0
    return node.end_lineno - node.lineno + 1 - docstring
