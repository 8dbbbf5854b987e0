"""The server of the lab: on this machine only, and for those who have the token."""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import signal
import warnings
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from bokeh.document import Document
from bokeh.models import Div
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.server.util import bind_sockets
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.ioloop import IOLoop
from tornado.platform.asyncio import BaseAsyncIOLoop
from tornado.web import RequestHandler

from mercer.errors import InvalidInput, message
from mercer.lab.page import Page
from mercer.lab.settings import Settings

__all__ = ["Lab", "serve"]

ADDRESS = "127.0.0.1"
MOST_PAGES, MOST_KEPT = 8, 32
"""Pages that are open, and these with those that were closed a moment ago."""
EXPIRY = {"check_unused_sessions_milliseconds": 1000, "unused_session_lifetime_milliseconds": 5000}
"""Intervals after which the server drops a closed or reloaded page and stops its computation."""
MOST_BYTES = 1 << 20
"""Of one message from the page."""
PATIENCE = 5.0
"""Seconds in which a computation has to stop at the end."""


class _Refusal(RequestHandler):
    """403, without a word on what would be right."""

    def prepare(self) -> None:
        self.set_status(403)
        self.finish("mercer lab: refused; open the address that mercer lab printed.\n")


class _Guarded(BokehTornado):
    """Every path begins with the token; the host is this machine, and so is the origin if there is one."""

    def __init__(self, make: Any, token: str, port: int) -> None:
        self._token = token.encode()
        self._hosts = {f"{ADDRESS}:{port}", f"localhost:{port}"}
        options: dict[str, Any] = {"websocket_max_message_size_bytes": MOST_BYTES, "include_headers": [], **EXPIRY}
        super().__init__({"/": make}, prefix=token, extra_websocket_origins=sorted(self._hosts), **options)

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        if not self.allows(request):
            return self.get_handler_delegate(request, _Refusal)
        return super().find_handler(request, **kwargs)

    def allows(self, request: HTTPServerRequest) -> bool:
        """Whether a request has the token, and comes from this page."""
        given = (request.path or "").split("/")[1:2]
        origins = {f"http://{host}" for host in self._hosts}
        return (
            hmac.compare_digest("".join(given).encode(), self._token)
            and request.host in self._hosts
            and all(origin in origins for origin in request.headers.get_list("Origin"))
        )


@contextlib.contextmanager
def _logs_without(token: str) -> Iterator[None]:
    """Lines of the server without the token; refused requests and closed pages have none."""

    def hide(record: logging.LogRecord) -> bool:
        record.msg, record.args = record.getMessage().replace(token, "..."), ()
        return True

    for name in ("tornado.access", "bokeh.server.views.ws"):
        logging.getLogger(name).setLevel(logging.ERROR)
    loggers = [logging.getLogger(f"tornado.{name}") for name in ("access", "general", "application")]
    for one in loggers:
        one.addFilter(hide)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(hide)


class Lab:
    """A lab that listens; `address` opens it.

    Parameters
    ----------
    tables : mapping of name to callable
        Each makes a `Dataset`.
    first : str
        The table that is shown at first.
    settings : Settings
        As which the controls begin.
    port : int, default 0
        0 takes a free one.
    """

    def __init__(self, tables: Mapping[str, Any], first: str, settings: Settings, port: int = 0) -> None:
        self._made = tables, first, settings
        self._pages: weakref.WeakSet[Page] = weakref.WeakSet()
        try:
            sockets, self.port = bind_sockets(ADDRESS, port)
        except OSError as error:
            raise InvalidInput(message("lab", f"port {port}: {error.strerror}", "choose another one")) from None
        self.token = secrets.token_urlsafe(24)
        self._app = _Guarded(self._open, self.token, self.port)
        http = HTTPServer(self._app, max_body_size=MOST_BYTES, max_buffer_size=MOST_BYTES)
        http.add_sockets(sockets)
        self._server = BaseServer(IOLoop.current(), self._app, http)
        self._server.start()

    @property
    def address(self) -> str:
        """Of the page, with the token."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    def _open(self, document: Document) -> None:
        sessions, drawn = self._server.get_sessions(), [page.document for page in self._pages]
        shown = sum(one.connection_count > 0 and one.document in drawn for one in sessions)
        if len(sessions) >= MOST_KEPT or shown >= MOST_PAGES:
            document.add_root(Div(text=f"mercer lab: {MOST_PAGES} pages are open; close one of them and reload."))
            return
        page = Page(*self._made)
        page.fill(document)
        self._pages.add(page)

    def run(self) -> None:
        """Serve until Ctrl-C."""
        with _logs_without(self.token), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the page shows them as notes
            try:
                self._loop()
            finally:
                self._server.stop()
                for page in self._pages:  # a thread that computes while Python ends would keep what it holds
                    page.worker.close(wait=PATIENCE)

    def _loop(self) -> None:
        """The server's loop until Ctrl-C, which would be lost if it came in code that drops what is raised."""
        loop, ended = self._server.io_loop, list[bool]()
        assert isinstance(loop, BaseAsyncIOLoop)

        def end() -> None:
            ended.append(True)
            loop.stop()

        with contextlib.suppress(NotImplementedError, RuntimeError):  # on Windows, and beside the main thread
            loop.asyncio_loop.add_signal_handler(signal.SIGINT, end)
        loop.start()
        if ended:
            raise KeyboardInterrupt


def serve(tables: Mapping[str, Any], first: str, settings: Settings, port: int = 0, told: Any = print) -> None:
    """Serve a lab, and say its address first."""
    lab = Lab(tables, first, settings, port)
    told(lab.address)
    lab.run()
