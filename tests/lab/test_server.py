"""The server of the lab answers those who have the token, from its own page, on this machine."""

from __future__ import annotations

import http.client
import logging
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "bokeh, nothing",
}


def answer(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    """Status and body of a request to the server of an address."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        found = connection.getresponse()
        return found.status, found.read(2_000_000)
    finally:
        connection.close()


def test_the_page_is_there_with_the_token(lab):
    status, body = answer(lab, urlsplit(lab).path)
    assert status == 200
    assert b"mercer lab" in body
    assert b"http://" not in body.replace(b"http://www.w3.org", b"")
    assert b"https://" not in body


@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/bokeh.min.js", "/token/", "/autoload.js", "/%s/", "//%s/"])
def test_without_the_token_everything_is_refused(lab, path):
    token = urlsplit(lab).path.strip("/")
    wrong = token[:-1] + ("A" if token[-1] != "A" else "B")
    given = path.replace("%s", wrong if path == "/%s/" else token)
    status, body = answer(lab, given)
    assert status == 403
    assert token.encode() not in body


def test_the_token_is_long_and_new_each_time(lab):
    assert len(urlsplit(lab).path.strip("/")) == 32


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "127.0.0.1", "127.0.0.1.example.org:%d", ""])
def test_other_hosts_are_refused(lab, host):
    parts = urlsplit(lab)
    assert answer(lab, parts.path, Host=host.replace("%d", str(parts.port)))[0] in (400, 403)


@pytest.mark.parametrize("origin", ["http://example.org", "null", "https://127.0.0.1:%d", "http://127.0.0.1:1"])
def test_other_origins_are_refused(lab, origin):
    parts = urlsplit(lab)
    origin = origin.replace("%d", str(parts.port))
    assert answer(lab, parts.path, Origin=origin)[0] == 403
    assert answer(lab, f"{parts.path}ws", Origin=origin, **UPGRADE)[0] == 403


def test_its_own_origin_is_not_refused(lab):
    parts = urlsplit(lab)
    assert answer(lab, parts.path, Origin=f"http://127.0.0.1:{parts.port}")[0] == 200


def test_it_listens_on_this_machine_alone(lab):
    port = urlsplit(lab).port
    with socket.socket() as probe:  # another address of this machine is free, so nothing listens on all of them
        probe.bind(("127.0.0.2", port))


def test_large_requests_are_refused(lab):
    parts = urlsplit(lab)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as line:
        head = f"POST {parts.path} HTTP/1.1\r\nHost: 127.0.0.1:{parts.port}\r\nContent-Length: {1 << 30}\r\n\r\n"
        line.sendall(head.encode())
        assert line.recv(100)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 413", b"")


def test_a_page_that_is_loaded_again_and_again_stays_open(lab):
    assert all(b'id="formula"' in answer(lab, urlsplit(lab).path)[1] for _ in range(9))


@pytest.mark.parametrize(("shown", "closed", "refused", "room"), [(7, 20, 0, True), (8, 0, 0, False), (7, 0, 9, True)])
def test_eight_pages_can_be_open_besides_those_that_were_closed_or_refused(monkeypatch, shown, closed, refused, room):
    pytest.importorskip("bokeh")
    from bokeh.document import Document

    from mercer.lab import server

    class Page:
        def __init__(self, *made):
            pass

        def fill(self, document):
            self.document = document

    monkeypatch.setattr(server, "Page", Page)
    lab, sessions = object.__new__(server.Lab), []
    lab._made, lab._server, lab._pages = (), SimpleNamespace(get_sessions=lambda: sessions), set()
    for place in range(shown + closed + refused):
        document = Document()
        if place < shown + closed:
            page = Page()
            page.fill(document)
            lab._pages.add(page)
        connections = 0 if shown <= place < shown + closed else 1
        sessions.append(SimpleNamespace(connection_count=connections, document=document))
    asked, before = Document(), len(lab._pages)
    lab._open(asked)
    assert (len(lab._pages) > before) is room
    assert [one.text for one in asked.roots] == (
        [] if room else [f"mercer lab: {server.MOST_PAGES} pages are open; close one of them and reload."]
    )


DEAF = """
import time
from mercer.lab.server import Lab
from mercer.lab.settings import Settings

def deaf():
    print("deaf", flush=True)
    try:
        time.sleep(1)
    except BaseException:
        pass

lab = Lab({}, "", Settings())
lab._server.io_loop.add_callback(deaf)
try:
    lab.run()
except KeyboardInterrupt:
    print("ended")
"""


def test_ctrl_c_ends_it_also_in_code_that_drops_what_is_raised():
    pytest.importorskip("bokeh")
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "deaf\n"
        process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=20)[0] == "ended\n"
        finally:
            process.kill()


def test_what_it_logs_has_no_token():
    server = pytest.importorskip("mercer.lab.server", exc_type=ImportError)
    logger = logging.getLogger("tornado.general")
    given = logging.WARNING, "web.py", 1, "%d %s: no such file", (403, "GET /secret/static/x"), None
    record = logging.LogRecord("tornado.general", *given)
    with server._logs_without("secret"):
        assert logger.filter(record)
    assert record.getMessage() == "403 GET /.../static/x: no such file"
    assert not logger.filters


def test_a_taken_port_is_said_before_an_address(table):
    pytest.importorskip("bokeh")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "mercer", "lab", str(table), "--target", "price", "--port"]
        done = subprocess.run([*command, str(taken.getsockname()[1])], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "choose another one" in done.stderr
