"""`TraceBrowser`: a list of trace files beside the inspector of the chosen one, in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from mmsp_nb.files import load
from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.traces import find, trace_files

from .assets import bundle, static_text
from .desk import Desk
from .rows import safe
from .sanitize import single_line

__all__ = ["TraceBrowser"]


class TraceBrowser(anywidget.AnyWidget):
    """See `mmsp_nb.traces`. ``show(name)`` shows a trace by its id."""

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, directory: str | Path | None = None) -> None:
        from mmsp_nb.tracing import trace_directory

        self.directory = Path(directory).expanduser() if directory is not None else trace_directory()
        self._desk: Desk | None = None
        super().__init__(_esm=bundle("traces.js"), _css=static_text("inspector.css") + static_text("traces.css"))
        self.on_msg(_received)

    def show(self, name: str) -> None:
        """Show the trace of that id. FileNotFoundError says which there are."""
        if self._desk is not None:
            self._desk.close()
        conversation = load(find(name, self.directory))
        self._desk = Desk(conversation, self.send, writable=False, folder=Path)

    def _list(self) -> list[dict[str, Any]]:
        return [
            {"id": safe(path.relative_to(self.directory).as_posix()), "size": path.stat().st_size}
            for path in trace_files(self.directory)
        ]

    def _handle(self, message: Mapping[str, Any]) -> None:
        if message.get("op") == "list":
            self.send({"op": "list", "files": self._list()})
        elif message.get("op") == "open":
            try:
                self.show(str(message.get("file")))
                self.send({"op": "opened", "file": message.get("file")})
            except (OSError, MMSPError) as error:
                self.send({"op": "note", "error": True, "text": single_line(safe(str(error)), 300)})
        elif self._desk is not None:
            self._desk.handle(message)

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
