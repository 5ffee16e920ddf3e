"""The host that draws: every `ask` in a cell of a notebook, or of a terminal IPython, streams its answer there."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mmsp_nb import hosts, loop
from mmsp_nb.interrupts import blocking, once

from .exceptions import Failures
from .recordings import replaying
from .sources import Sources

if TYPE_CHECKING:
    from .behind import Place

__all__ = ["Cells", "NotebookHost", "connect_tools", "elsewhere", "form", "in_kernel", "is_live", "quiet"]

quiet: ContextVar[bool] = ContextVar("mmsp_nb_quiet", default=False)
"""True while nothing is to be drawn (``--quiet``)."""

form: ContextVar[str] = ContextVar("mmsp_nb_form", default="markdown")
"""How answers are shown (``--format``)."""

elsewhere: ContextVar[Place | None] = ContextVar("mmsp_nb_elsewhere", default=None)
"""Where an answer that belongs to no running cell is drawn (``--background``), in the thread where it is asked."""

_OFF = {"0", "false", "no", "off"}


def in_kernel(shell: Any) -> bool:
    """Whether the shell's displays go to a front end, rather than to a terminal."""
    return getattr(shell, "kernel", None) is not None or sys.platform == "emscripten"


def is_live(setting: bool | None, environ: Mapping[str, str] | None = None) -> bool:
    """Whether somebody watches: ``setting``, else ``MMSP_NB_LIVE``, else not under pytest (nbval) nor in a replay."""
    environ = os.environ if environ is None else environ
    if setting is not None:
        return setting
    wanted = environ.get("MMSP_NB_LIVE", "").strip().lower()
    return wanted not in _OFF if wanted else "PYTEST_CURRENT_TEST" not in environ and not replaying()


def connect_tools(shell: Any) -> None:
    """Let tools be found by name in the user's namespace, in their latest definition, as soon as there are tools."""
    registry = getattr(sys.modules.get("mmsp_nb.tools"), "registry", None)
    if registry is not None:
        registry.lookup = shell.user_ns.get


class Cells:
    """Counts the cells that are running, nested ones included. ``register`` once, ``unregister`` when unloaded."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.depth = 0
        self.serial = 0
        """Counts the runs of cells: what happens in one run has the same number, nested cells included."""
        self.failures = Failures()
        self.sources = Sources(shell)

    def register(self) -> None:
        # An extension is usually loaded by a cell, whose end we will be told of.
        self.depth = int(_inside_a_cell())
        self._shell.events.register("pre_run_cell", self._begin)
        self._shell.events.register("post_run_cell", self._end)

    def unregister(self) -> None:
        for event, callback in (("pre_run_cell", self._begin), ("post_run_cell", self._end)):
            try:
                self._shell.events.unregister(event, callback)
            except ValueError:
                pass

    def _begin(self, info: Any = None) -> None:
        text = getattr(info, "raw_cell", None)
        if self.depth == 0 and isinstance(text, str) and not getattr(info, "silent", False):
            counted = bool(getattr(info, "store_history", False))
            self.sources.note(getattr(info, "cell_id", None) or _cell_of(self._shell), text, counted=counted)
        self.serial += self.depth == 0
        self.depth += 1
        connect_tools(self._shell)

    def _end(self, result: Any = None) -> None:
        self.failures.note(result)
        self.depth = max(self.depth - 1, 0)
        if self.depth == 0 and in_kernel(self._shell):
            once()
        answers = sys.modules.get("mmsp_nb.answer")
        if self.depth == 0 and answers is not None:
            answers.Answer.forget_shown()


def _cell_of(shell: Any) -> str | None:
    """The id of the cell whose request is served."""
    parent = getattr(shell, "parent_header", None) or {}
    if hasattr(shell, "get_parent") and not parent:
        parent = shell.get_parent()
    metadata = parent.get("metadata") or {} if isinstance(parent, dict) else {}
    found = metadata.get("cellId")
    return str(found) if found else None


def _inside_a_cell() -> bool:
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "run_code" and "IPython" in frame.f_code.co_filename:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class NotebookHost:
    """Draws answers into the running cell. Outside of cells and off the main thread it leaves it to the plain host.

    Args:
        shell: The InteractiveShell.
        cells: Says whether a cell is running.
        live: See `is_live`; a function, because it can be configured at any time.
    """

    def __init__(self, shell: Any, cells: Cells, live: Any = None) -> None:
        self._shell = shell
        self._cells = cells
        self._live = live or (lambda: None)
        self._plain = hosts.PlainHost(None if in_kernel(shell) else "terminal")
        self._waiting = hosts.PlainHost("wait")

    def cell_id(self) -> str | None:
        """The id of the cell that is running, where the front end tells it."""
        if (place := elsewhere.get()) is not None:
            return place.cell
        return _cell_of(self._shell) if self._cells.depth > 0 else None

    def run(self, conversation: Any, stream: hosts.Stream) -> bool:
        """Draw and wait by blocking."""
        if (place := elsewhere.get()) is not None:
            return place.run(conversation, stream)
        if not self._draws():
            return self._undrawn().run(conversation, stream)
        with blocking():  # beside an await of the cell's own, a kernel would only cancel its task
            if quiet.get():
                self._silent(stream).run()
                return False
            from .drawing import Drawing

            drawing = Drawing(self._shell, conversation, stream, live=is_live(self._live()))
            with drawing:
                drawing.session.run()
            return True

    async def arun(self, conversation: Any, stream: hosts.Stream) -> bool:
        """Draw and wait by awaiting. The stream runs on the background loop all the same, where there are threads."""
        if not self._draws():
            return await self._undrawn().arun(conversation, stream)
        if quiet.get():
            await self._silent(stream).arun()
            return False
        from .drawing import Drawing

        drawing = Drawing(self._shell, conversation, stream, live=is_live(self._live()))
        with drawing:
            await drawing.session.arun()
        return True

    def _silent(self, stream: hosts.Stream) -> Any:
        from .bridge import Session
        from .drawing import approval
        from .plain import NoOutput

        connect_tools(self._shell)
        return Session(stream, NoOutput(), self._shell, approve=approval(self._shell, is_live(self._live())))

    def _undrawn(self) -> hosts.PlainHost:
        """Who serves what no cell asks: in a kernel somebody may still decide in a later cell."""
        here = in_kernel(self._shell) and threading.current_thread() is threading.main_thread()
        return self._waiting if here and is_live(self._live()) else self._plain

    def _draws(self) -> bool:
        return self._cells.depth > 0 and threading.current_thread() is threading.main_thread() and not loop.is_current()
