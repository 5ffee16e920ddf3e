"""`TraceBrowser`: a list of trace files beside the inspector of the chosen one, in a notebook."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.traces import directory_of, find, trace_files

from .assets import bundle, static_text
from .file_view import FileView, every
from .rows import safe
from .sanitize import single_line

__all__ = ["TraceBrowser"]


class TraceBrowser(anywidget.AnyWidget):
    """See `mmsp_nb.traces`. ``show(name)`` shows a trace by its id, and follows it while it is written."""

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, directory: str | Path | None = None) -> None:
        from mmsp_nb.tracing import trace_directory

        self._stop: Callable[[], None] = lambda: None  # first: a widget that is not made is closed, too
        self.directory = trace_directory() if directory is None else directory_of(directory)
        self._view: FileView | None = None
        self._listed: list[dict[str, Any]] | None = None
        self._lock = threading.Lock()
        super().__init__(_esm=bundle("traces.js"), _css=static_text("inspector.css") + static_text("traces.css"))
        self.on_msg(_received)

    def show(self, name: str) -> None:
        """Show the trace of that id. FileNotFoundError says which there are."""
        view = FileView(find(name, self.directory), self.send, folder=Path)
        with self._lock:
            if self._view is not None:
                self._view.close()
            self._view = view
        self._follow()

    def close(self) -> None:
        """Look at the files no longer, and take the view away."""
        self._stop()
        super().close()

    def _follow(self) -> None:
        self._stop()
        self._stop = every(self, TraceBrowser._look)

    def _look(self) -> None:
        """What is new in the trace that is shown, and in the list."""
        if self.comm is None:
            return
        with self._lock:
            if self._view is not None:
                self._view.refresh()
        if self._listed is not None and self._list() != self._listed:
            self._send_list()

    def _send_list(self) -> None:
        self._listed = self._list()
        self.send({"op": "list", "files": self._listed})

    def _list(self) -> list[dict[str, Any]]:
        return [
            {"id": safe(path.relative_to(self.directory).as_posix()), "size": path.stat().st_size}
            for path in trace_files(self.directory)
        ]

    def _handle(self, message: Mapping[str, Any]) -> None:
        if message.get("op") == "list":
            self._send_list()
            self._follow()
        elif message.get("op") == "open":
            try:
                self.show(str(message.get("file")))
                self.send({"op": "opened", "file": message.get("file")})
            except (OSError, MMSPError) as error:
                self.send({"op": "note", "error": True, "text": single_line(safe(str(error)), 300)})
        elif self._view is not None:
            self._view.desk.handle(message)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        made = super()._repr_mimebundle_(**options)
        data, metadata = made if isinstance(made, tuple) else (made or {}, {})
        names = [single_line(row["id"], 200) for row in self._list()[:20]]
        items = "".join(f"<li>{escape(name)}</li>" for name in names)
        plain = "\n".join([repr(self), *(f"  {name}" for name in names)])
        return {**data, "text/plain": plain, "text/html": f"<div>{escape(repr(self))}<ul>{items}</ul></div>"}, metadata

    def __repr__(self) -> str:
        count = len(trace_files(self.directory))
        return f"{count} trace{'' if count == 1 else 's'} in {self.directory.name}"


def _received(widget: TraceBrowser, message: Any, buffers: Any) -> None:
    if isinstance(message, dict):
        widget._handle(message)
