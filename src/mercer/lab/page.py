"""The page of the lab: controls on the left, pictures beside them, and what joins both to the session."""

from __future__ import annotations

import html
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bokeh.document import Document
from bokeh.events import DocumentReady
from bokeh.layouts import column, row
from bokeh.models import (
    Button,
    CheckboxGroup,
    CustomJS,
    CustomJSTickFormatter,
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
from mercer.numerals import counted

__all__ = ["Page"]

TURN = threading.Lock()
"""One computation at a time, however many pages are open."""

POWER = "return (10 ** tick).toPrecision(3)"
SPINNER = 250
"""Milliseconds after which a computation shows that it goes on."""

TEMPLATE = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
LECTURE = 'document.body.classList.toggle("lecture", this.active)'
WRITE = """
for (const [name, text] of Object.entries(texts.tags[0])) {
  const place = document.getElementById(name)
  if (place.written !== text) place.innerHTML = place.written = text
}
for (const slider of sliders) {  // Bokeh gives the handles no names that a screen reader could say
  const handle = Bokeh.index.find_one(slider)?.shadow_el.querySelector(".noUi-handle")
  handle?.setAttribute("aria-label", slider.title)
}
"""
"""The texts are elements of the page and not of Bokeh, which would lay out the page again for each of them."""

COPY = """
const done = () => { button.label = "Copied"; setTimeout(() => { button.label = label }, 1200) }
const text = document.getElementById(source).textContent
navigator.clipboard.writeText(text).then(done, () => { button.label = "Select the text and copy it" })
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
            "steps": Slider(title="steps", value=begin.steps, start=1, end=500, step=1, width=290),
        }
        self.x, self.y = (_select(title, [], "", 140) for title in ("across", "up"))
        self.only = CheckboxGroup(labels=["use these columns only"], active=[])
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
        self.lecture.on_change("active", lambda _, __, on: self.figures.enlarge(on))
        self.lecture.js_on_change("active", CustomJS(code=LECTURE))

    def fill(self, document: Document) -> None:
        """Put the page into a document and compute what it shows at first."""
        self.document = document
        document.title = "mercer lab"
        document.template = TEMPLATE
        controls = [self.table, self.method, self.first, row(self.operation, self.second), self.scaled, self.kernel]
        controls += [*self.sliders.values(), row(self.x, self.y), self.only, self.lecture]
        controls += [row(_copier("Copy the Python", "python"), _copier("Copy the command", "command"))]
        self.texts = column(*controls, width=310, name="controls", tags=[{}])
        write = CustomJS(args={"texts": self.texts, "sliders": list(self.sliders.values())}, code=WRITE)
        self.texts.js_on_change("tags", write)
        document.js_on_event(DocumentReady, write)
        # Each is a root of its own, as a change within a root lays out all of it anew.
        for one in (self.texts, *self.figures.all):
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
        self.only.disabled, self.only.active = len(names) < 2, []

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
            steps=int(self.sliders["steps"].value),
            axes=(int(self.x.value), int(self.y.value)),
            only_axes=bool(self.only.active),
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
        counts = {"n_clusters": "clusters", "max_iter": "steps"}
        shown = {*settings.used, counts.get(method.parameter, "penalty") if method.parameter else ""}
        for name, slider in self.sliders.items():
            slider.visible = name in shown
        self.sliders["penalty"].title = method.symbol

    # ---- what is shown -----------------------------------------------------------------------------------------------

    def _deliver(self, asked: Asked, found: Outcome | Exception) -> None:
        self.document.add_next_tick_callback(partial(self._show, asked[0], found))

    def _wait(self, count: int) -> None:
        if count == self.count and self.shown < count:
            self._write(status='<span class="busy"></span> computing …')

    def _show(self, count: int, found: Outcome | Exception) -> None:
        if count != self.count:
            return
        self.document.hold("combine")
        try:
            if isinstance(found, Exception):
                self._say_error(found)
            else:
                self._show_stage(found)
        finally:
            self.document.unhold()

    def _show_stage(self, found: Outcome) -> None:
        if found.stage == "model":
            self.figures.show_model(found)
        elif found.stage == "components":
            self.figures.show_components(found)
        else:
            self._show_verdict(found)
        self._write(formula=f"k(x, z) = {html.escape(found.formula)}", said=self._said(found))

    def _said(self, found: Outcome) -> str:
        """The estimator, the score and the notes."""
        score = "" if found.score is None else f"<p><b>{found.score_name}: {found.score:.4f}</b></p>"
        notes = [("error", note) for note in found.notes] + [("other", note) for note in self.data.notes]
        said = "".join(f'<p class="{kind}">{html.escape(note)}</p>' for kind, note in notes)
        return f"<p>{html.escape(found.estimator)}</p>{score}{said}"

    def _show_verdict(self, found: Outcome) -> None:
        report = found.report
        kind = "other" if report is None else {"proved": "proved", "refuted": "refuted"}.get(report.verdict, "other")
        lines = "" if report is None else "\n".join(str(report).splitlines()[1:])
        verdict = f'<p class="{kind}"><b>{VERDICTS[kind]}</b></p><pre tabindex="0">{html.escape(lines)}</pre>'
        programs = {"python": html.escape(found.python), "command": html.escape(found.command)}
        self.figures.show_witness(None if report is None else report.witness)
        self._write(verdict=verdict, status=self._state(found), **programs)  # last: it says that all is shown
        self.shown = self.count

    def _state(self, found: Outcome) -> str:
        (n, d), drawn = self.data.X.shape, len(self.figures.drawn)
        rows = f"{counted(n, 'row')}{f' ({drawn} drawn)' * (drawn < n)}, {counted(d, 'column')}"
        return _state(self.count, found.stage, f"{rows}; {found.seconds * 1000:.0f} ms")

    def _say_error(self, error: Exception) -> None:
        self.shown = self.count
        text = str(error) if isinstance(error, MercerError) else f"{type(error).__name__}: {error}"
        self._write(status=_state(self.count, "error", text))

    def _write(self, **texts: str) -> None:
        """HTML for elements of the page, by their names."""
        self.texts.tags = [{**self.texts.tags[0], **texts}]


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


def _copier(label: str, source: str) -> Button:
    button = Button(label=label)
    button.js_on_click(CustomJS(args={"button": button, "source": source, "label": label}, code=COPY))
    return button
