"""The documentation site: ``make site`` builds it, with warnings as errors."""

from __future__ import annotations

import inspect
import os
import re
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("MERCER_MACHINE", "off")  # pages say the same wherever they are built

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

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
    "draw_benchmarks",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "code"
nitpicky = False
# The types of parameters are words, not names; docstrings taken over from scikit-learn refer to labels of its own site.
suppress_warnings = ["myst.header", "config.cache", "ref.python", "ref.ref"]

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
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
    "write_computation_times": False,  # its page asks other hosts for scripts
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


class LinkedNames(SphinxPostTransform):
    """A name in `code`, such as `KernelRidge` or `mercer.KernelPCA.fit`, leads to its place in the reference."""

    default_priority = 5

    def run(self, **_: object) -> None:
        domain = self.env.domains["py"]
        places = places_of(domain)
        for literal in list(self.document.findall(nodes.literal)):
            name = "mercer." + re.sub(r"\(.*", "", literal.astext()).removeprefix("mercer.")
            found = places.get(name) or places.get(re.sub(r"\.\w+_$", "", name))
            if (
                found
                and not isinstance(literal.parent, nodes.reference)
                and self.env.docname[:4] not in ("api/", "gall")
            ):
                page, anchor = domain.objects[found][:2]
                link = make_refnode(self.app.builder, self.env.docname, page, anchor, literal.deepcopy(), found)
                literal.replace_self(link)


@cache
def places_of(domain: object) -> dict[str, str]:
    """Full names by what the text calls them: `mercer.KernelPCA.fit`, `mercer.kernels.Gaussian`, or `Gaussian`."""
    names = sorted(domain.objects, key=lambda name: (name.startswith("mercer.kernels."), name))  # type: ignore[attr-defined]
    alone = {re.sub(r"^mercer\.\w+\.(?=[A-Z])", "mercer.", name): name for name in names}
    return alone | {"mercer." + short(name): name for name in names}


def short(name: str) -> str:
    """A name as users import it, from the package itself if it can be had there.

    >>> short("mercer.estimators.KernelPCA.fit"), short("mercer.kernels.Gaussian")
    ('KernelPCA.fit', 'kernels.Gaussian')
    """
    module, _, rest = name.removeprefix("mercer.").partition(".")
    return rest if rest.partition(".")[0] in mercer.__all__ else f"{module}.{rest}".rstrip(".")


def as_pages(app: object, page: str, source: list[str]) -> None:
    """Links to the gallery's scripts, files in a repository, lead to pages of the site; anchors are known to Sphinx."""
    up = "../" * page.count("/")
    source[0] = re.sub(r"\]\((?:\.\./)+examples/(plot_\w+)\.py\)", rf"]({up}gallery/\1.rst)", source[0])
    source[0] = source[0].replace("](../examples)", "](gallery/index.rst)")
    source[0] = re.sub(r'<a id="([\w-]+)"></a>', r"[]{#\1}", source[0])


def setup(app: object) -> None:
    """Called by Sphinx."""
    app.connect("source-read", as_pages)  # type: ignore[attr-defined]
    app.add_post_transform(LinkedNames)  # type: ignore[attr-defined]
    app.connect("autodoc-process-signature", signature)  # type: ignore[attr-defined]
    app.connect("autodoc-skip-member", skip)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", escape, priority=100)  # type: ignore[attr-defined]
