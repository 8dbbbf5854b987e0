"""What notebooks show of an estimator: scikit-learn's tables, with what the docstring says of each name."""

from __future__ import annotations

import html
import inspect
import re
import sys
from typing import Any

from mercer.mixins import BaseEstimator

__all__ = ["Described", "description"]

# A name without a link, in scikit-learn 1.8 and later.
NAME = re.compile(
    r'<td class="param">\s*(?:<a class="param-doc-link" style="text-decoration:none;">)?(\w+)(?:</a>)?\s*</td>'
)
CELL = (
    '<td class="param"><a class="param-doc-link" tabindex="0" style="anchor-name: --doc-{name};">{name} '
    '<span class="param-doc-description" style="position-anchor: --doc-{name};">{text}</span></a></td>'
)
STYLE = (
    "<style>a.param-doc-link:focus .param-doc-description { display: block; }"
    " .param-doc-description { max-width: 24rem; white-space: normal; }</style>"
)


class Described(BaseEstimator):
    """The tables of parameters and of fitted attributes that notebooks show, with descriptions.

    scikit-learn shows descriptions only as links to its site; these tables need no site.
    """

    def _get_params_html(self, *args: Any, **options: Any) -> Any:
        return _described(super()._get_params_html(*args, **options), type(self), "Parameters")

    def _get_fitted_attr_html(self, *args: Any, **options: Any) -> Any:
        return _described(super()._get_fitted_attr_html(*args, **options), type(self), "Attributes")


def _described(table: Any, kind: type, section: str) -> Any:
    """scikit-learn's table, which draws descriptions in the cells of names; a version without them draws as before."""

    def cell(found: re.Match[str]) -> str:
        text = description(kind, section, found[1])
        return CELL.format(name=found[1], text=text) if text else found[0]

    if hasattr(table, "doc_link"):
        draw = table._html_repr
        table._html_repr = lambda: STYLE + NAME.sub(cell, draw())
    return table


def description(kind: type, section: str, name: str) -> str:
    """What the docstring of a class says of a parameter or an attribute, as HTML; empty if it says nothing.

    A reference to another class, "As for `SVC`", is followed by what that class says.

    >>> from mercer import NuSVR
    >>> description(NuSVR, "Parameters", "tol")[:53]
    'tol<br><br>As for <code>SVC</code>.<br><br>tol: float'
    """
    body = re.search(rf"(?m)^{section}\n-+\n((?:.*\n)*?)(?=\S.*\n---|\Z)", f"{inspect.getdoc(kind)}\n")
    for names, given, lines in re.findall(r"(?m)^(\S.*?)(?: : (.*))?\n((?:    .*\n|\n)*)", body[1] if body else ""):
        if name in names.split(", "):
            said = html.escape(" ".join(lines.split()))
            shown = f"{name}{': ' * bool(given)}{html.escape(given)}<br><br>{said}"
            other = re.match(r"As (?:for|of) `(\w+)`", said)
            there = description(_named(kind, other[1]), section, name) if other else ""
            return re.sub(r"``?([^`]+)``?", r"<code>\1</code>", shown) + "<br><br>" * bool(there) + there
    return ""


def _named(kind: type, name: str) -> type:
    """The class of that name that a docstring refers to."""
    above = {one.__name__: one for one in kind.__mro__}
    return above.get(name) or getattr(sys.modules["mercer.estimators"], name)
