"""The check of the built site finds each kind of dead link and each name without a place."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def check(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("check_site")


@pytest.fixture
def site(tmp_path):
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "one.html").write_text('<h1 id="mercer.SVC">SVC</h1><a href="../index.html#top">up</a>')
    (tmp_path / "api.html").write_text('<p id="mercer.SVR">SVR</p>')
    return tmp_path


@pytest.mark.parametrize(
    "link", ["#top", "api/one.html", "api/one.html#mercer.SVC", "data:,x", "https://docs.dask.org"]
)
def test_right_links_pass(check, site, link):
    (site / "index.html").write_text(f'<p id="top"><a href="{link}">to</a></p>')
    assert list(check.wrong_links(site)) == []


@pytest.mark.parametrize(
    ("markup", "why"),
    [
        ('<a href="api/two.html">', "not a file"),
        ('<img src="picture.png">', "not a file"),
        ('<a href="#bottom">', "not an anchor"),
        ('<a href="api/one.html#mercer.NuSVC">', "not an anchor"),
        ('<svg><a xlink:href="api/one.html#none">', "not an anchor"),
        ('<a href="http://docs.dask.org">', "known addresses"),
        ('<script src="https://cdn.example.org/x.js">', "known addresses"),
        ('<a href="https://docs.dask.org/stabel">', "known addresses"),
    ],
)
def test_wrong_links_are_found(check, site, markup, why):
    (site / "index.html").write_text(f'<p id="top">{markup}</p>')
    (line,) = check.wrong_links(site)
    assert line.startswith("index.html: ")
    assert why in line


def test_a_name_without_a_place_is_found(check, site):
    assert check.undocumented(site, {"mercer.SVC", "mercer.SVR", "mercer.NuSVC"}) == {"mercer.NuSVC"}


def test_public_names_are_those_of_the_package_and_of_the_reference(check):
    names = {*check.public_names()}
    assert {"mercer.estimators.KernelRidge", "mercer.gram.KernelOperator", "mercer.plots.film"} <= names
    alone = {name for name in names if name.count(".") != 2}
    assert alone == {"mercer.show_versions", "mercer.use"}, "other names are in a module of the reference"
