"""A small HTTP server for loopback: it hands each request to a function and writes what comes back.

It knows nothing of models. It takes care of the bytes: chunks that are on the wire the moment they are made,
characters cut in the middle on purpose, connections that end early, and of noticing that a client has left.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .wire.neutral import BadRequest
from .wire.pieces import awkward

MAX_BODY = 64 * 1024 * 1024
"""The longest request body that is read, in bytes."""


class Gone(Exception):
    """The client has closed its connection: nobody is left to answer."""


class Cut(Exception):
    """Raised by a body to break the connection in the middle of an answer."""


@dataclass(slots=True)
class Exchange:
    """One request. ``headers`` has lower-case names. ``key`` is the API key it carries, if any."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    connection: socket.socket

    @property
    def key(self) -> str:
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        bearer = token.strip() if scheme.lower() == "bearer" else ""
        names = ("x-api-key", "x-goog-api-key")
        return next(
            (self.headers[name] for name in names if self.headers.get(name)), bearer or self.query.get("key", "")
        )

    def wait(self, seconds: float) -> None:
        """Wait ``seconds``, or until the client leaves: then raises Gone."""
        if seconds > 0 and left(self.connection, seconds):
            raise Gone


def left(connection: socket.socket, timeout: float = 0.0) -> bool:
    """Whether the other side has closed; waits up to ``timeout`` seconds for it.

    A client that sends more while it waits (a pipelined request) counts as still there.
    """
    try:
        ready = readable([connection], timeout)
        return bool(ready) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True


def readable(sockets: list[socket.socket], timeout: float | None) -> list[socket.socket]:
    """The sockets that can be read (or are at their end), waiting up to ``timeout`` seconds for the first."""
    if not hasattr(select, "poll"):  # Windows
        return select.select(sockets, [], [], timeout)[0]
    poller = select.poll()
    for connection in sockets:
        poller.register(connection, select.POLLIN)
    ready = {number for number, _ in poller.poll(None if timeout is None else max(timeout, 0) * 1000)}
    return [connection for connection in sockets if connection.fileno() in ready]


@dataclass(slots=True)
class Answer:
    """What to send: bytes at once, or an iterable of them as a chunked stream.

    With ``raw`` the body holds the status line and the headers too, and the connection closes at its end.
    """

    body: bytes | Iterable[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bool = False

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
        """A JSON document."""
        body = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return cls(body, status, {"Content-Type": "application/json", **(headers or {})})

    @classmethod
    def events(cls, frames: Iterable[bytes], headers: Mapping[str, str] | None = None) -> Answer:
        """A stream of server-sent events."""
        kept = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
        return cls(frames, 200, {**kept, **(headers or {})})


App = Callable[[Exchange], Answer]


class Front:
    """Serves ``app`` on 127.0.0.1.

    ``port=0`` takes a free one. `start` returns when connections are accepted; `close` ends the server and every
    open connection. `abandon` is for a forked child: it lets go of the sockets without touching the parent's server.
    """

    def __init__(self, app: App, *, port: int = 0, name: str = "mmsp-front") -> None:
        self.app, self.name = app, name
        self._port = port
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Front:
        """Bind and serve in a daemon thread. Raises OSError when the port is taken."""
        if self._server is None:
            self._server = _Server(("127.0.0.1", self._port), self.app)
            self._thread = threading.Thread(
                target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name=self.name, daemon=True
            )
            self._thread.start()
        return self

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT``, without a path. Raises RuntimeError before `start` and after `close`."""
        if self._server is None:
            raise RuntimeError("the server is not running: call start() first")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """End the server. Calling it again does nothing."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.end_connections()
        server.server_close()
        if self._thread:
            self._thread.join(5)

    def abandon(self) -> None:
        """Close this process's copy of the sockets, after a fork."""
        server, self._server = self._server, None
        if server is not None:
            for connection in [server.socket, *server.connections]:
                with contextlib.suppress(OSError):
                    connection.close()

    def __enter__(self) -> Front:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], app: App) -> None:
        self.app = app
        self.connections: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # the base class would look up the host's name, which can take seconds on a machine without DNS
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is no error; anything else is left to the base class."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""

    def version_string(self) -> str:
        return "mmsp-nb"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_POST

    def _serve(self) -> None:
        try:
            self._send(self._answer(self._body()))
        except BadRequest as refusal:
            # what follows on this connection cannot be told from the rest of a body that was not read
            self.close_connection = True
            error = {"message": refusal.message, "type": "invalid_request_error", "param": None, "code": None}
            self._send(Answer.json({"error": error}, refusal.status))
        except (Gone, Cut, OSError):
            self.close_connection = True

    def _answer(self, body: bytes) -> Answer:
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        exchange = Exchange(self.command, url.path, dict(parse_qsl(url.query)), headers, body, self.connection)
        try:
            return self.server.app(exchange)
        except (Gone, Cut, OSError):
            raise
        except Exception as error:
            # a fault of ours must reach the caller as an answer, or it would wait for nothing
            message = f"internal error of the local server: {type(error).__name__}: {error}"
            return Answer.json({"error": {"message": message, "type": "server_error", "code": None}}, 500)

    def _body(self) -> bytes:
        """The request's body. Raises BadRequest when it cannot be read."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunked()
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit():
            raise BadRequest("Content-Length is no number", 400)
        if int(length) > MAX_BODY:
            raise BadRequest(f"the request is longer than {MAX_BODY} bytes", 413)
        return self.rfile.read(int(length))

    def _chunked(self) -> bytes:
        parts: list[bytes] = []
        total = 0
        while True:
            size_text = self.rfile.readline(1024).split(b";")[0].strip()
            try:
                size = int(size_text, 16)
            except ValueError:
                raise BadRequest("broken chunked encoding", 400) from None
            total += size
            if total > MAX_BODY:
                raise BadRequest(f"the request is longer than {MAX_BODY} bytes", 413)
            if size == 0:
                while self.rfile.readline(1024).strip():
                    pass
                return b"".join(parts)
            parts.append(self.rfile.read(size))
            self.rfile.readline(16)

    def _send(self, answer: Answer) -> None:
        if isinstance(answer.body, bytes):
            self._head(answer, {"Content-Length": str(len(answer.body))})
            if self.command != "HEAD":
                self.wfile.write(answer.body)
            return
        body = iter(answer.body)
        try:
            if answer.raw:
                self.close_connection = True
                for block in body:
                    self.wfile.write(block)
                return
            # the first frame may refuse to come; an answer that has begun cannot be taken back
            first = next(body, b"")
            self._head(answer, {"Transfer-Encoding": "chunked"})
            for block in _chain(first, body):
                for piece in awkward(block):
                    if piece:
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            close = getattr(body, "close", None)
            if close is not None:
                close()

    def _head(self, answer: Answer, more: Mapping[str, str]) -> None:
        self.send_response(answer.status)
        for name, value in {**answer.headers, **more}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
