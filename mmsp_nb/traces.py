"""Trace files to look at: ``mmsp_nb.traces()`` in a notebook, ``python -m mmsp_nb.traces DIR`` in a browser.

Both show the same inspector. The page is served on loopback, read-only, and only files below DIR; its address
carries a token, and what it may load is itself.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mmsp_nb.protocol.errors import MMSPError

__all__ = ["TracePage", "find", "main", "trace_files"]

LISTED = 2_000
"""Files that are listed at most."""

KEPT = 8
"""Traces that stay in memory."""

BODY = 100_000
"""Bytes of a request at most."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; media-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def trace_files(directory: str | Path | None = None) -> list[Path]:
    """The trace and conversation files below ``directory`` (default: where traces are written), newest first."""
    from mmsp_nb.tracing import trace_directory

    root = Path(directory).expanduser() if directory is not None else trace_directory()
    if not root.is_dir():
        return []
    inside = root.resolve()
    found = [path for pattern in ("*.json", "*.jsonl") for path in root.rglob(pattern)]
    found = [path for path in found if path.is_file() and path.resolve().is_relative_to(inside)]
    return sorted(found, key=lambda path: (-path.stat().st_mtime, str(path)))[:LISTED]


def directory_of(given: str | Path) -> Path:
    """A folder that somebody has named, as a path. Raises TypeError or OSError, in one line, for what is none."""
    if not isinstance(given, str | Path):
        raise TypeError(f"directory is the path of a folder with traces, not {type(given).__name__}")
    directory = Path(given).expanduser()
    if directory.is_file():
        raise NotADirectoryError(
            f"{given} is a file: mmsp_nb.inspect({str(given)!r}) shows one, traces() a folder of them"
        )
    if not directory.is_dir():
        raise FileNotFoundError(f"there is no folder {given}")
    return directory


def find(name: str, directory: str | Path | None = None) -> Path:
    """The file of the trace id ``name``. FileNotFoundError says which there are."""
    from mmsp_nb.protocol.suggestions import did_you_mean
    from mmsp_nb.tracing import trace_directory

    root = Path(directory).expanduser() if directory is not None else trace_directory()
    ids = {_id(path, root): path for path in trace_files(root)}
    ids |= {path.relative_to(root).as_posix(): path for path in ids.values()}
    if name not in ids:
        raise FileNotFoundError(f"there is no trace {name!r} in {root}{did_you_mean(name, list(ids))}")
    return ids[name]


def _id(path: Path, root: Path) -> str:
    return path.relative_to(root).with_suffix("").as_posix()


def traces(directory: str | Path | None = None) -> Any:
    """Browse trace files in a notebook: a list to choose from, and the inspector.

    Args:
        directory: Default is where traces are written: ``MMSP_CACHE_DIR``, else ``cache``.

    Raises:
        OSError: There is no such folder.
    """
    from importlib import import_module

    return import_module("mmsp_nb.notebook.trace_browser").TraceBrowser(directory)


class TracePage:
    """The page on loopback. Use it as a context manager, or `start` and `close`; ``url`` opens it.

    Args:
        directory: Where the traces are.
        port: 0 takes a free one.
    """

    def __init__(self, directory: str | Path | None = None, port: int = 0) -> None:
        from mmsp_nb.tracing import trace_directory

        self.directory = (Path(directory).expanduser() if directory is not None else trace_directory()).absolute()
        self.token = secrets.token_urlsafe(18)
        page = self

        class Handler(_Handler):
            owner = page

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._desks: dict[str, tuple[Any, list[dict[str, Any]]]] = {}

    @property
    def url(self) -> str:
        """The address with its token."""
        return f"http://127.0.0.1:{self._server.server_port}/?token={self.token}"

    def start(self) -> TracePage:
        """Serve in a thread. Returns the page itself."""
        self._thread = threading.Thread(target=self._server.serve_forever, name="mmsp_nb traces", daemon=True)
        self._thread.start()
        return self

    def serve(self) -> None:
        """Serve on this thread until it is interrupted."""
        self._server.serve_forever()

    def close(self) -> None:
        """End the server."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> TracePage:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # what the handler asks

    def listing(self) -> list[dict[str, Any]]:
        """The files, as the page lists them."""
        return [
            {"id": path.relative_to(self.directory).as_posix(), "size": path.stat().st_size}
            for path in trace_files(self.directory)
        ]

    def answer(self, name: str, view: str, message: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages with which the desk of one view of a file answers; to ``poll`` with what is new in the file."""
        from mmsp_nb.notebook.file_view import FileView

        key = f"{name}\0{view}"
        with self._lock:
            if key not in self._desks or message.get("op") == "hello":
                out: list[dict[str, Any]] = []
                view_of = FileView(find(name, self.directory), out.append)
                self._desks.pop(key, None)
                self._desks[key] = view_of, out
                while len(self._desks) > KEPT:
                    self._desks.pop(next(iter(self._desks)))
            view_of, out = self._desks[key]
            if message.get("op") == "poll":
                view_of.refresh()
            else:
                view_of.desk.handle(message)
            answers = list(out)
            out.clear()
        return answers


class _Handler(BaseHTTPRequestHandler):
    owner: TracePage
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        from mmsp_nb.notebook.assets import ASSETS, asset

        where = urlsplit(self.path)
        if not self._local():
            return self._send(403, b"this page is for 127.0.0.1", "text/plain")
        if where.path in ASSETS:
            body, kind = asset(where.path)
            return self._send(200, body, kind)
        if not self._allowed(parse_qs(where.query).get("token", [""])[0]):
            return self._send(403, b"open the address with its token", "text/plain")
        if where.path == "/":
            return self._send(200, *asset("/traces.html"))
        if where.path == "/list":
            return self._json(self.owner.listing())
        return self._send(404, b"not found", "text/plain")

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        if not self._local() or not self._allowed(self.headers.get("x-mmsp-token", "")):
            self.close_connection = True
            return self._send(403, b"not allowed", "text/plain")
        if size > BODY or self.path != "/desk":
            self.close_connection = True
            return self._send(413 if size > BODY else 404, b"not taken", "text/plain")
        try:
            asked = json.loads(self.rfile.read(size))
            return self._json(self.owner.answer(str(asked["file"]), str(asked["view"])[:40], dict(asked["message"])))
        except (MMSPError, OSError, ValueError, KeyError, TypeError) as error:
            return self._json([{"op": "note", "error": True, "text": f"{error}"[:300]}])

    def _local(self) -> bool:
        """No other name may lead here: a page elsewhere could point its own to this address."""
        host = (self.headers.get("host") or "").rpartition(":")[0]
        return host in ("127.0.0.1", "localhost")

    def _allowed(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.owner.token.encode())

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind if "/json" in kind else f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the address has the token in it."""


def main(arguments: list[str] | None = None) -> int:
    """``python -m mmsp_nb.traces [DIR] [--port N]``."""
    parser = argparse.ArgumentParser(prog="python -m mmsp_nb.traces", description="Browse trace files in a browser.")
    parser.add_argument("directory", nargs="?", help="default: MMSP_CACHE_DIR, else cache")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    given = parser.parse_args(arguments)
    page = TracePage(given.directory, given.port)
    if not page.directory.is_dir():
        parser.error(f"there is no directory {page.directory}")
    print(f"{len(trace_files(page.directory))} files in {page.directory}\n{page.url}", flush=True)
    try:
        page.serve()
    except KeyboardInterrupt:
        pass
    finally:
        page.close()
    return 0


class _Callable(ModuleType):
    """Lets ``mmsp_nb.traces`` be this module and ``mmsp_nb.traces()`` browse."""

    def __call__(self, directory: str | Path | None = None) -> Any:
        return traces(directory)


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    raise SystemExit(main())
