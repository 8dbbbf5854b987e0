"""The page of the lab: controls on the left, pictures beside them, and what joins both to the session."""

from __future__ import annotations

import html
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bokeh.document import Document
from bokeh.layouts import column, row
from bokeh.models import (
    Button,
    CheckboxGroup,
    CustomJS,
    CustomJSTickFormatter,
    Div,
    Select,
    Slider,
    TextInput,
    Toggle,
)

from mercer.engine.backend import spare_threads
from mercer.errors import MercerError
from mercer.lab.data import Dataset
from mercer.lab.figures import Figures
from mercer.lab.session import Outcome, outcomes
from mercer.lab.settings import METHODS, MOST_LETTERS, OPERATIONS, PARTS, Settings, kernel_of_parts
from mercer.lab.worker import Worker

__all__ = ["Page"]

TURN = threading.Lock()
"""One computation at a time, however many pages are open."""

POWER = "return (10 ** tick).toPrecision(3)"
SPINNER = 250
"""Milliseconds after which a computation shows that it goes on."""

TEMPLATE = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
PANEL = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
LECTURE = 'document.body.classList.toggle("lecture", this.active)'
COPY = """
const done = () => { button.label = "Copied"; setTimeout(() => { button.label = label }, 1200) }
navigator.clipboard.writeText(source.tags[0]).then(done, () => { button.label = "Select the text and copy it" })
"""


Asked = tuple[int, Dataset, Settings]
"""The number of the request, and what it is about."""


class Page:
    """One open page.

    Parameters
    ----------
    tables : mapping of name to callable
        Each makes a `Dataset`.
    first : str
        The table that is shown at first.
    settings : Settings
        As which the controls begin.
    """

    def __init__(self, tables: Mapping[str, Any], first: str, settings: Settings) -> None:
        self.tables, self.data, self.count, self.filling = tables, tables[first](), 0, False
        self.settings, self.figures = settings, Figures(self.data)
        self._make_controls(first, settings)
        self._make_texts()
        self.shown = 0
        self.worker: Worker[Asked, Outcome] = Worker(_computed, self._deliver, TURN)

    # ---- what is on the page -----------------------------------------------------------------------------------------

    def _make_controls(self, first: str, begin: Settings) -> None:
        self.table = _select("Table", list(self.tables), first)
        self.method = _select("Method", self._methods(), begin.method)
        self.first = _select("Kernel", list(PARTS), "gaussian")
        self.operation = _select("and", list(OPERATIONS), "alone", 90)
        self.second = _select("another", list(PARTS), "linear", 190)
        self.scaled = CheckboxGroup(labels=["scaled by a weight"], active=[])
        self.kernel = TextInput(
            title="as text, or a formula of your own", value=begin.kernel, max_length=MOST_LETTERS, width=290
        )
        self.sliders = {
            "gamma": _power("γ", begin.gamma, -4, 2),
            "gamma2": _power("γ₂", begin.gamma2, -4, 2),
            "degree": Slider(title="degree", value=begin.degree, start=1, end=10, step=1, width=290),
            "coef0": Slider(title="constant", value=begin.coef0, start=-3, end=5, step=0.1, width=290),
            "weight": _power("weight", begin.weight, -3, 3),
            "penalty": _power("α", begin.penalty, -6, 4),
            "clusters": Slider(title="clusters", value=begin.clusters, start=2, end=10, step=1, width=290),
        }
        self.x, self.y = (_select(title, [], "", 140) for title in ("across", "up"))
        self.only = CheckboxGroup(labels=["use these two columns only"], active=[])
        self.lecture = Toggle(label="Lecture: large type")
        for name, one in (*vars(self).items(), *self.sliders.items()):
            if hasattr(one, "css_classes"):
                one.css_classes = [f"lab-{name}"]
        self._fill_axes()
        self._watch()

    def _watch(self) -> None:
        self.table.on_change("value", self._another_table)
        for one in (self.first, self.operation, self.second):
            one.on_change("value", self._build)
        self.scaled.on_change("active", self._build)
        for one in (self.method, self.kernel, self.x, self.y, *self.sliders.values()):
            one.on_change("value", self._changed)
        self.only.on_change("active", self._changed)
        self.lecture.on_change("active", lambda _, __, on: self._enlarge(on))
        self.lecture.js_on_change("active", CustomJS(code=LECTURE))

    def _make_texts(self) -> None:
        self.header, self.verdict, self.status = _text("header"), _text("verdict"), _text("status")
        self.code, self.line = _text("code"), _text("line")
        self.texts = self.header, self.verdict, self.status, self.code, self.line
        self.copy_code, self.copy_line = _copier("Copy the Python", self.code), _copier("Copy the command", self.line)

    def fill(self, document: Document) -> None:
        """Put the page into a document and compute what it shows at first."""
        self.document = document
        document.title = "mercer lab"
        document.template = TEMPLATE
        controls = [self.table, self.method, self.first, row(self.operation, self.second), self.scaled, self.kernel]
        controls += [*self.sliders.values(), row(self.x, self.y), self.only, self.lecture]
        controls += [row(self.copy_code, self.copy_line)]
        # Each is a root of its own, as a change within a root lays out all of it anew.
        for one in (column(*controls, width=310, name="controls"), *self.texts, *self.figures.all):
            document.add_root(one)
        document.on_session_destroyed(lambda _: self.worker.close())
        document.add_next_tick_callback(self._ask)  # results of another thread need the session to be there

    def _methods(self) -> list[tuple[str, str]]:
        return [(name, one.title) for name, one in METHODS.items() if self.data.task in one.estimators]

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def _another_table(self, _: str, __: str, name: str) -> None:
        self.data = self.tables[name]()
        self.filling = True
        self.method.options = self._methods()
        if self.data.task not in METHODS[self.method.value].estimators:
            self.method.value = "ridge"
        self._fill_axes()
        self.figures.use(self.data)
        self.filling = False
        self._ask()

    def _fill_axes(self) -> None:
        names = [(str(i), name) for i, name in enumerate(self.data.columns)]
        self.x.options = self.y.options = names
        self.x.value, self.y.value = "0", str(min(1, len(names) - 1))
        self.only.disabled, self.only.active = len(names) < 3, []

    def _build(self, _: str, __: Any, ___: Any) -> None:
        self.second.disabled = self.operation.value == "alone"
        parts = self.first.value, self.operation.value, self.second.value
        self.kernel.value = kernel_of_parts(*parts, scaled=bool(self.scaled.active))

    def _current(self) -> Settings:
        powers = {name: _short(10 ** self.sliders[name].value) for name in ("gamma", "gamma2", "weight", "penalty")}
        return Settings(
            method=self.method.value,
            kernel=self.kernel.value,
            degree=int(self.sliders["degree"].value),
            coef0=_short(self.sliders["coef0"].value),
            clusters=int(self.sliders["clusters"].value),
            axes=(int(self.x.value), int(self.y.value)),
            only_axes=bool(self.only.active) and self.x.value != self.y.value,
            **powers,
        )

    def _changed(self, _: str, __: Any, ___: Any) -> None:
        self._ask()

    def _ask(self) -> None:
        if self.filling:
            return
        try:
            settings = self._current()
        except MercerError as error:
            self._say_error(error)
            return
        self._offer(settings)
        self.count += 1
        self.document.add_timeout_callback(partial(self._wait, self.count), SPINNER)
        self.worker.submit((self.count, self.data, settings))

    def _offer(self, settings: Settings) -> None:
        """The sliders that belong to the kernel and the method, and no others."""
        method = METHODS[settings.method]
        for name, slider in self.sliders.items():
            slider.visible = name in settings.used
        self.sliders["clusters"].visible = method.parameter == "n_clusters"
        self.sliders["penalty"].visible = method.parameter not in ("", "n_clusters")
        self.sliders["penalty"].title = method.symbol

    # ---- what is shown -----------------------------------------------------------------------------------------------

    def _deliver(self, asked: Asked, found: Outcome | Exception) -> None:
        self.document.add_next_tick_callback(partial(self._show, asked[0], found))

    def _wait(self, count: int) -> None:
        if count == self.count and self.shown < count:
            self.status.text = '<span class="busy"></span> computing …'

    def _show(self, count: int, found: Outcome | Exception) -> None:
        if count != self.count:
            return
        self.shown = count
        self.document.hold("combine")
        try:
            if isinstance(found, Exception):
                self._say_error(found)
            elif found.report is None:
                self._show_first(found)
            else:
                self._show_verdict(found)
        finally:
            self.document.unhold()

    def _show_first(self, found: Outcome) -> None:
        self.figures.show(found)
        score = "" if found.score is None else f"<p><b>{found.score_name}: {found.score:.4f}</b></p>"
        notes = "".join(f'<p class="error">{html.escape(note)}</p>' for note in (*found.notes, *self.data.notes))
        formula = f'<div class="formula">k(x, z) = {html.escape(found.formula)}</div>'
        shares = found.ratios
        two = "" if shares is None else f"<p>two components: {shares[:2].sum():.1%} of the variance</p>"
        self.header.text = self._framed(f"{formula}<p>{html.escape(found.estimator)}</p>{score}{two}{notes}")
        for one, text in ((self.code, found.python), (self.line, found.command)):
            one.text, one.tags = f"<pre>{html.escape(text)}</pre>", [text]
        self.status.text = self._state(found, "pictures")

    def _show_verdict(self, found: Outcome) -> None:
        assert found.report is not None
        kind = {"proved": "proved", "refuted": "refuted"}.get(found.report.verdict, "other")
        lines = "\n".join(str(found.report).splitlines()[1:])
        self.verdict.text = self._framed(
            f'<p class="{kind}"><b>{VERDICTS[kind]}</b></p><pre>{html.escape(lines)}</pre>'
        )
        self.figures.show_witness(found.report.witness)
        self.status.text = self._state(found, "done")

    def _framed(self, text: str) -> str:
        return f'<div class="{"large" if self.lecture.active else "desk"}">{text}</div>'

    def _state(self, found: Outcome, state: str) -> str:
        n, drawn = len(self.data.y), len(self.figures.drawn)
        rows = f"{n} rows{f' ({drawn} drawn)' * (drawn < n)}, {self.data.X.shape[1]} columns"
        return _state(self.count, state, f"{rows}; {found.seconds * 1000:.0f} ms")

    def _say_error(self, error: Exception) -> None:
        text = str(error) if isinstance(error, MercerError) else f"{type(error).__name__}: {error}"
        self.status.text = (
            f'<span class="error" data-update="{self.count}" data-state="error">{html.escape(text)}</span>'
        )

    def _enlarge(self, large: bool) -> None:
        self.figures.enlarge(large)
        self._ask()


def _computed(asked: Asked) -> Iterator[Outcome]:
    with spare_threads():  # on this thread: a section that another thread has opened would keep its number
        yield from outcomes(*asked[1:])


VERDICTS = {"proved": "A Mercer kernel: proved", "refuted": "Not a Mercer kernel", "other": "Not decided"}


def _select(title: str, options: Any, value: str, width: int = 290) -> Any:
    return Select(title=title, options=options, value=value, width=width)


def _power(title: str, value: float, low: float, high: float) -> Any:
    """A slider over powers of ten."""
    from math import log10

    shown = CustomJSTickFormatter(code=POWER)
    return Slider(title=title, value=log10(value), start=low, end=high, step=0.05, format=shown, width=290)


def _short(value: float) -> float:
    """Three digits, as the slider shows it.

    >>> _short(0.123456)
    0.123
    """
    return float(f"{value:.3g}")


def _state(count: int, state: str, text: str) -> str:
    kind = "error" if state == "error" else ""
    return f'<span class="{kind}" data-update="{count}" data-state="{state}">{html.escape(text)}</span>'


def _text(name: str) -> Div:
    """Never read as mathematics, for which the page would load a program from elsewhere."""
    return Div(
        text="",
        disable_math=True,
        stylesheets=[PANEL],
        css_classes=[f"lab-{name}"],
        name=name,
        sizing_mode="stretch_width",
    )


def _copier(label: str, source: Div) -> Button:
    button = Button(label=label)
    button.js_on_click(CustomJS(args={"button": button, "source": source, "label": label}, code=COPY))
    return button
