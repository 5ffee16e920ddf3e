"""The Stop button beside an answer that runs: what the kernel's side of it knows and sends.

One widget for each kernel, made when the first answer has run a moment. It is never displayed: its page
(``static/stop.js``) puts a button beside the output that carries our mark, so no output, and nothing in the notebook's
file, belongs to it. An answer costs two messages, one that it runs and one that it has ended; a short one costs none.

A click comes back as a comm message, which the kernel serves while a cell awaits or none runs. Where it cannot (a
blocking cell or tool) the page asks the server to interrupt the kernel. So the button is only offered where a Jupyter
server has started this kernel; everywhere else nothing is sent at all.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["AFTER", "Stoppable", "page_of", "served_kernel"]

AFTER = 0.5
"""Seconds that an answer has run before it gets a button."""

PRELOAD = 0.25
"""Seconds after which what a button needs is imported, in a thread of its own."""

_CONNECTION = re.compile(r"kernel-([\w-]{8,64})\.json\Z")
_WRAPPED = '<div class="mmsp"'


def served_kernel(environ: Mapping[str, str], connection_file: str, modules: Mapping[str, Any]) -> str | None:
    """The id under which a Jupyter server knows this kernel; None where there is no such server, or no such page.

    VS Code and Colab draw no outputs into a page of the server. A kernel that something else has started (nbclient
    within a notebook) has inherited the variables of a server, but not its process.
    """
    session = environ.get("JPY_SESSION_NAME", "")
    if not session or "-jvsc-" in session or "google.colab" in modules or "COLAB_RELEASE_TAG" in environ:
        return None
    found = _CONNECTION.search(connection_file)
    if found is None:
        return None
    parent = environ.get("JPY_PARENT_PID", "")
    # on Windows it is a handle, not a number of a process
    if os.name != "nt" and not Path(connection_file).with_name(f"jpserver-{parent}.json").exists():
        return None
    return found[1]


@functools.cache
def _here(_: int) -> str | None:
    """`served_kernel` of this process; by its number, since a fork is no kernel of the server."""
    try:
        from ipykernel.connect import get_connection_file

        file = get_connection_file()
    except (ImportError, RuntimeError):
        return None
    return served_kernel(os.environ, file, sys.modules)


class Page:
    """All buttons of this kernel: what runs, and how it is stopped. Methods may be called from any thread."""

    def __init__(self, make: Callable[[Page], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._widget: Any = None
        self._stops: dict[str, Callable[[], None]] = {}

    def add(self, key: str, stop: Callable[[], None], *, way: str, wait: float) -> None:
        """Offer a button; ``wait`` seconds from now it may be seen."""
        with self._lock:
            if self._widget is None or self._widget.comm is None:  # closed with all other widgets
                self._widget = self._make(self)
            self._stops[key] = stop
            self._widget.running = {**self._widget.running, key: {"way": way, "wait": round(wait * 1000)}}

    def remove(self, key: str) -> None:
        """Take a button away."""
        with self._lock:
            if self._stops.pop(key, None) is not None:
                self._widget.running = {k: how for k, how in self._widget.running.items() if k != key}

    def received(self, widget: Any, message: Any, buffers: Any = None) -> None:
        """A click. It is confirmed first: the page would otherwise interrupt the kernel."""
        if not isinstance(message, dict) or message.get("op") != "stop":
            return
        stop = self._stops.get(str(message.get("id")))
        widget.send({"op": "heard", "id": message.get("id")})
        if stop is not None:
            stop()


_page: Page | None = None


def page_of(kernel: str) -> Page:
    """The buttons of this process."""
    global _page
    if _page is None:

        def make(page: Page) -> Any:
            from .stop_widget import StopButtons

            return StopButtons(kernel, page.received)

        _page = Page(make)
    return _page


class Stoppable:
    """One running answer, as a button sees it.

    Args:
        stop: Ends the answer, as an interrupt would. Called on any thread; must not block.
        began: When the answer began, on the clock of `tick`.
        way: How a click reaches ``stop``: "message" (and an interrupt if none is heard), "interrupt" for a cell that
            blocks, "only message" for what an interrupt of the kernel would not end.
        offered: False to have no button.
    """

    def __init__(self, stop: Callable[[], None], began: float, *, way: str = "message", offered: bool = True) -> None:
        self._stop = stop
        self._began = began
        self.way = way
        self._key = uuid.uuid4().hex
        kernel = _here(os.getpid()) if offered else None
        self._page = None if kernel is None else page_of(kernel)
        self._shown = self._over = False
        self._busy = 0

    def tick(self, now: float) -> None:
        """Offer the button when the time has come."""
        if self._page is None or self._shown or self._over:
            return
        if now - self._began >= AFTER and _loaded():
            self._offer(0.0)
        elif now - self._began >= PRELOAD:
            _load_aside()

    def busy(self, now: float, delta: int = 1) -> None:
        """A tool keeps the thread of the cell busy from now on, with -1 no longer: nothing can be sent meanwhile."""
        self._busy += delta
        if delta > 0 and self._page is not None and not (self._shown or self._over):
            self._offer(max(self._began + AFTER - now, 0.0))

    def now(self) -> None:
        """Offer the button, to be seen after the usual moment."""
        if self._page is not None and not (self._shown or self._over):
            self._offer(AFTER)

    def mark(self, data: dict[str, str]) -> dict[str, str]:
        """``data`` of a display that will be updated, with the mark by which the page knows where the button goes."""
        html = data.get("text/html", "")
        if self._page is None or self._over or not html.startswith(_WRAPPED):
            return data
        busy = ' data-mmsp-busy=""' if self._busy else ""
        marked = f'{_WRAPPED} data-mmsp-run="{self._key}"{busy}{html[len(_WRAPPED) :]}'
        return {**data, "text/html": marked}

    def end(self) -> None:
        """The answer is over, in whatever way."""
        self._over = True
        if self._shown and self._page is not None:
            self._page.remove(self._key)

    def _offer(self, wait: float) -> None:
        assert self._page is not None
        self._shown = True
        try:
            self._page.add(self._key, self._stop, way=self.way, wait=wait)
        except Exception:  # no widgets, or broken ones: then there is no button
            self._page = None


def _loaded() -> bool:
    return "mmsp_nb.notebook.stop_widget" in sys.modules and not _loading.locked()


_loading = threading.Lock()
_begun = False


def _load_aside() -> None:
    """Import the widgets while the answer goes on."""
    global _begun
    if _begun:
        return
    _begun = True

    def load() -> None:
        with _loading:
            try:
                from . import stop_widget  # noqa: F401
            except ImportError:
                pass

    threading.Thread(target=load, name="mmsp_nb widgets", daemon=True).start()
