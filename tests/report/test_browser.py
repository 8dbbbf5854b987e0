"""A report in a headless Chromium: without requests, without complaints, and open to all."""

from __future__ import annotations

import json

import pytest
from sklearn.datasets import load_iris

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from mercer import SVC
from mercer.report import write


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_opens_alone_and_is_open_to_all(browser, barriers, tmp_path, scheme):
    X, y = load_iris(return_X_y=True)
    path = write(SVC().fit(X[::2], y[::2]), tmp_path / "r.html", X[1::2], y[1::2], train=(X[::2], y[::2]))
    browser.get_log("browser"), browser.get_log("performance")
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    browser.get(path.as_uri())
    assert barriers() == []
    assert browser.get_log("browser") == []
    asked = [json.loads(one["message"])["message"] for one in browser.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith("data:")] == [path.as_uri()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
