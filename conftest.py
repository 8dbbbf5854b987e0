"""Tests and examples plan by documented rates, so that they take the same ways on all machines."""

import importlib.util
import os
import shutil
import zlib
from importlib import resources

import numpy as np
import pytest

os.environ["MERCER_MACHINE"] = "off"
os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are drawn, not shown

collect_ignore = []
if not importlib.util.find_spec("matplotlib"):
    collect_ignore += ["src/mercer/plots", "docs/plots.md", "src/mercer/report"]
    collect_ignore += [f"docs/how-to/{name}.md" for name in ("gaussian-processes", "large-data", "process-monitoring")]
if not importlib.util.find_spec("jinja2"):
    collect_ignore += ["src/mercer/report", "docs/how-to/reading-a-report.md"]


@pytest.fixture
def rng(request):
    """Random numbers of the test's own, by its name, so that its data do not depend on what ran before it."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """A folder for what all processes of this run may take from each other."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium, whose logs tell what a page requests and what it complains of."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: no page is tried")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed: no page is tried")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for one in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1600,1200"):
        options.add_argument(one)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    started.set_script_timeout(30)
    yield started
    started.quit()


@pytest.fixture(scope="session")
def barriers(browser):
    """What axe-core finds on the page that the browser shows: rules for access that it breaks, and where."""
    axe = resources.files(pytest.importorskip("axe_core_python")).joinpath("axe.min.js").read_text(encoding="utf-8")

    def found():
        browser.execute_script(axe)
        said = browser.execute_async_script("axe.run().then(arguments[0])")
        assert said["passes"]
        return [(one["id"], one["nodes"][0]["html"]) for one in said["violations"]]

    return found
