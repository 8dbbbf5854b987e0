"""The lab in a headless Chromium: kernels and sliders, a witness, and code that gives the numbers of the page again."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("bokeh")
pytest.importorskip("selenium.webdriver", reason="selenium is not installed: the page is not tried")

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

ROOT = Path(__file__).resolve().parents[2]

FIND = """
const found = []
const look = (root) => {
  found.push(...root.querySelectorAll(arguments[0]))
  for (const one of root.querySelectorAll("*")) if (one.shadowRoot) look(one.shadowRoot)
}
look(document)
return arguments[1] ? found.slice(0, 1).map((one) => arguments[1].map((name) => one[name] ?? one.dataset[name])) : found
"""


TITLE = "return Bokeh.documents[0].roots().find((one) => one.name == 'surface').title.text"

BARS = """
const [variances] = Bokeh.documents[0].roots().filter((one) => one.name == "variances")
return [...variances.renderers[0].data_source.data.top]
"""


class Opened:
    """The page as a user sees it."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def find(self, name, part="*"):
        """The first `part` within what is called so."""
        (host, *_) = self.driver.execute_script(FIND, f".lab-{name}")
        return host.shadow_root.find_element(By.CSS_SELECTOR, part)

    def text(self, name):
        return self.driver.execute_script("return document.getElementById(arguments[0]).textContent", name)

    @property
    def update(self):
        """The number and the state of the last update."""
        found = self.driver.execute_script(FIND, "[data-update]", ["update", "state"])
        return (int(found[0][0]), found[0][1]) if found else (0, "")

    def wait(self, after, state="done"):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            number, now = self.update
            if number > after and now == state:
                return
            time.sleep(0.02)
        raise AssertionError(f"update {after} is the last: {self.update}, {self.text('status')}")

    def choose(self, name, value):
        number, _ = self.update
        Select(self.find(name, "select")).select_by_visible_text(value)
        self.wait(number)

    def write(self, text, state="done"):
        number, _ = self.update
        box = self.find("kernel", "input")
        box.send_keys(Keys.END, Keys.SHIFT, Keys.HOME, Keys.NULL, text, Keys.ENTER)
        self.wait(number if state == "done" else number - 1, state)

    def slide(self, name, key=Keys.ARROW_RIGHT, times=1):
        number, _ = self.update
        handle = self.find(name, ".noUi-handle")
        for _ in range(times):
            handle.send_keys(key)
        self.wait(number + times - 1)

    @property
    def variances(self):
        """The bars that are drawn."""
        return self.driver.execute_script(BARS)

    @property
    def score(self):
        return float(re.search(r"held out: (-?[\d.]+)", self.text("header"))[1])

    def copied(self, label):
        """What is on the clipboard after a click."""
        buttons = [one for one in self.driver.execute_script(FIND, "button") if one.text == label]
        buttons[0].click()
        return self.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")


@pytest.fixture
def page(browser, lab):
    parts = urlsplit(lab)
    permission = {"origin": f"http://{parts.netloc}", "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.execute_cdp_cmd("Browser.grantPermissions", permission)
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(lab)
    opened = Opened(browser, lab)
    opened.wait(0)
    yield opened
    trouble = [one for one in browser.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]
    assert not trouble, trouble
    asked = [json.loads(one["message"])["message"] for one in browser.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    assert urls
    assert all(url.startswith((lab, "data:", "blob:")) for url in urls)


def program(*command):
    """What a program prints."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def line(command):
    """What a command line prints."""
    return program(sys.executable, "-c", f"from mercer.cli.app import run; run({shlex.split(command)[1:]!r})")


def said_of(text):
    """The lines of a verdict: the proof, or the witness with its numbers."""
    lines = [one.strip() for one in text[text.index("verdict  ") :].splitlines()]
    return [one for one in lines if not one.startswith(("variances", "score", "searched"))]


def test_a_session_from_kernel_to_code(page):
    """Change the kernel and γ, then copy what gives the same numbers."""
    begin = page.score
    page.choose("first", "laplace")
    assert "exp(−0.1·‖x − z‖)" in page.text("header")
    page.slide("gamma", times=3)
    changed = page.score
    assert changed != begin
    assert "A Mercer kernel: proved" in page.text("verdict")
    gamma = re.search(r"exp\(−([\d.]+)·", page.text("header"))[1]
    assert float(gamma) == pytest.approx(0.1 * 10**0.15, rel=0.01)
    printed = program(sys.executable, "-c", page.copied("Copy the Python"))
    assert float(re.search(r"score (\S+)", printed)[1]) == pytest.approx(changed, abs=5e-5)
    shares = [float(one) for one in re.search(r"variances (.*)", printed)[1].split()]
    assert shares == pytest.approx(page.variances, rel=1e-9)
    assert said_of(printed) == said_of(page.text("verdict"))
    command = page.copied("Copy the command")
    assert command.startswith("mercer fit ")
    assert f"{changed:.4f}" in line(command)


def test_an_indefinite_formula_has_its_witness_drawn(page):
    assert not page.driver.execute_script(SHOWN_WITNESS)
    page.write("exp(-gamma*sqdist**1.5)")
    assert "Not a Mercer kernel" in page.text("verdict")
    assert "zᵀKz = -" in page.text("verdict")
    places, values = page.driver.execute_script(SHOWN_WITNESS)
    assert len(places) == len(values) >= 2
    said = said_of(page.text("verdict"))
    assert any("zᵀKz = -" in one for one in said)
    printed = program(sys.executable, "-c", page.copied("Copy the Python"))
    assert said_of(printed) == said
    shares = [float(one) for one in re.search(r"variances (.*)", printed)[1].split()]
    assert shares == pytest.approx(page.variances, rel=1e-9)
    page.choose("method", "kernel PCA")  # `mercer fit` of the ridge would have no solution
    value = next(re.search(r"zᵀKz = (\S+)", one)[1] for one in said if "zᵀKz = " in one)
    assert f"zᵀKz = {value}" in line(page.copied("Copy the command"))
    page.write("gaussian(gamma=gamma)")
    assert not page.driver.execute_script(SHOWN_WITNESS)


SHOWN_WITNESS = """
const [witness] = Bokeh.documents[0].roots().filter((one) => one.name == "witness")
if (!witness.visible) return null
const data = witness.renderers[0].data_source.data
return [[...data.x], [...data.size]]
"""


def test_a_mistake_in_a_formula_is_said_and_mended(page):
    page.write("gausian(gamma=1)", "error")
    assert "did you mean 'gaussian'" in page.text("status")
    page.write("gaussian(gamma=1)")
    assert "exp(−‖x − z‖²)" in page.text("header")


def test_methods_tables_and_columns(page):
    page.choose("method", "kernel PCA")
    assert "share of variance of two components" in page.text("header")
    page.choose("method", "k-means")
    page.slide("clusters")
    page.choose("table", "wine")
    page.choose("method", "discriminant analysis")
    page.choose("x", "flavanoids")
    assert page.score > 0.9


def test_names_of_columns_are_text_and_nothing_else(page):
    titles = [one.text for one in Select(page.find("x", "select")).options]
    assert titles == ["width", "<b>depth</b>", "$$age$$"]
    page.choose("x", "$$age$$")
    page.choose("y", "width")
    page.choose("y", "<b>depth</b>")
    assert page.driver.execute_script(TITLE) == "Surface: what is predicted"
    page.choose("y", "$$age$$")
    assert page.driver.execute_script(TITLE) == "Curve: what is predicted"


def test_a_slider_that_moves_on_cancels(page):
    number, _ = page.update
    handle = page.find("gamma", ".noUi-handle")
    handle.send_keys(Keys.ARROW_LEFT * 12)
    page.wait(number + 11)
    expected = 10 ** (-1 - 12 * 0.05)
    assert float(re.search(r"exp\(−([\d.]+)·", page.text("header"))[1]) == pytest.approx(expected, rel=0.01)


def test_the_type_of_a_lecture_is_large(page):
    def size():
        one = page.driver.find_element(By.ID, "formula")
        return float(page.driver.execute_script("return getComputedStyle(arguments[0]).fontSize", one)[:-2])

    before = size()
    (button,) = [one for one in page.driver.execute_script(FIND, "button") if one.text.startswith("Lecture")]
    button.click()
    assert size() > 1.5 * before


def test_the_page_is_open_to_all(page, barriers):
    assert barriers() == []
    page.write("exp(-gamma*sqdist**1.5)")
    assert barriers() == []
    page.driver.execute_script("document.body.append(document.createElement('textarea'))")
    assert "label" in [rule for rule, _ in barriers()]  # the rules can be broken
