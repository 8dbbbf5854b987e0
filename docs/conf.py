"""The documentation site: ``make site`` builds it, with warnings as errors."""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("MERCER_MACHINE", "off")  # pages say the same wherever they are built

import mercer

project, author = "mercer", "the mercer developers"
release = version = mercer.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",  # pages request nothing from elsewhere
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "code"
nitpicky = False
suppress_warnings = ["myst.header", "config.cache", "ref.python"]  # the types of parameters are words, not names

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "undoc-members": False, "inherited-members": False}
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = "mercer"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "navbar_persistent": ["search-button"],
}
html_static_path = ["_static"]
html_css_files = ["mercer.css"]
html_show_sourcelink = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}


def escape(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with formulas: |α| is no substitution, a * no emphasis. Examples stay as they are."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(^ *[*] |:math:`.*?`|``.*?``|`.*?`)", line)
            lines[i] = "".join(part if place % 2 else escaped(part) for place, part in enumerate(parts))


def escaped(text: str) -> str:
    """Text without marks of reStructuredText.

    >>> escaped("|a| and n *targets")
    '\\\\|a\\\\| and n \\\\*targets'
    """
    return re.sub(r"(?<!\\)([|*])", r"\\\1", re.sub(r"(\w)_(?=\W|$)", r"\1\\_", text))


def signature(
    app: object, what: str, name: str, thing: object, options: object, given: str | None, returned: str | None
) -> tuple[str, None] | None:
    """The parameters of a class without their types, which the docstring explains."""
    if what != "class" or given is None or not isinstance(thing, type):
        return None
    parameters = inspect.signature(thing).parameters.values()
    plain = inspect.Signature([one.replace(annotation=inspect.Parameter.empty) for one in parameters])
    return str(plain), None


def skip(app: object, what: str, name: str, thing: object, skipped: bool, options: object) -> bool | None:
    """Leave out what scikit-learn adds to every estimator for its routing of metadata."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def setup(app: object) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", signature)  # type: ignore[attr-defined]
    app.connect("autodoc-skip-member", skip)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", escape, priority=100)  # type: ignore[attr-defined]
