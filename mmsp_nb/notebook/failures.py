"""How a failed or interrupted call ends a cell: with the right exception, and one calm line instead of our stack."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from mmsp_nb.protocol.errors import MMSPError

from .sanitize import clean, shorten
from .secrets import mask, mask_exception

__all__ = [
    "calm", "is_foreign", "register", "remember_for_debugger", "stopped", "summary", "unregister", "unsent",
    "users_traceback",
]  # fmt: skip

MAX_MESSAGE = 600
FRAMES = 5

_CELL = re.compile(r'"[^"\n]*ipykernel_\d+[^"\n]*"|"<ipython-input-[^"\n]*>"')
"""How a traceback names a cell: with the number of a process, which no output should have."""
_PACKAGE = str(Path(__file__).resolve().parent.parent)


def summary(error: BaseException) -> str:
    """``AuthenticationError: the key was refused (401) ...``, in one line, without keys."""
    message = shorten(" ".join(clean(mask(str(error))).split()), MAX_MESSAGE)
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def calm(error: BaseException, *, where: bool = False) -> BaseException:
    """Make IPython show ``error`` as one line; with ``where``, below the lines of the user's own code that led to it.

    The exception stays what it is, so it can be caught as such. Keys are taken out of its arguments.
    """
    mask_exception(error)

    def render() -> list[str]:
        places = _users_lines(error.__traceback__) if where else []
        return [*places, summary(error)]

    _render_with(error, render)
    return error


def register() -> None:
    """Let IPython show all of our errors so: also those outside a question, as of ``Conversation("gpt-5.5")``."""
    MMSPError._render_traceback_ = lambda self: [*_users_lines(self.__traceback__), summary(self)]  # type: ignore[attr-defined]


def unregister() -> None:
    """Leave it to IPython again."""
    if "_render_traceback_" in vars(MMSPError):
        del MMSPError._render_traceback_  # type: ignore[attr-defined]


def stopped(after: float, error: BaseException | None = None) -> BaseException:
    """The exception for a cell that was interrupted after that many seconds: a KeyboardInterrupt, or ``error``."""
    error = error or KeyboardInterrupt("stopped")
    line = f"{type(error).__name__}: stopped after {after:.1f} s; what had come so far is kept"
    _render_with(error, lambda: [line])
    return error


def unsent() -> BaseException:
    """The exception for a cell that was interrupted while its expressions were evaluated or its command ran."""
    error = KeyboardInterrupt("stopped")
    _render_with(error, lambda: ["KeyboardInterrupt: stopped before anything was sent"])
    return error


def users_traceback(error: BaseException | None) -> str:
    """The traceback of a tool's error, from the tool's own frame on; empty when no frame is the user's."""
    tb = None if error is None else _past_ours(error.__traceback__)
    if error is None or tb is None:
        return ""
    return _CELL.sub("the cell", "".join(traceback.format_exception(type(error), error, tb)))


def remember_for_debugger(shell: object, error: BaseException) -> None:
    """Let ``%debug`` look at the error of a tool, as if the cell had called the function and failed."""
    tb = _past_ours(error.__traceback__)
    if tb is None:
        return
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, tb
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    handler = getattr(shell, "InteractiveTB", None)
    if handler is not None:
        handler.tb = tb


def _past_ours(tb: TracebackType | None) -> TracebackType | None:
    """``tb`` without the frames of this package that called the tool."""
    while tb is not None and tb.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        tb = tb.tb_next
    return tb


def _render_with(error: BaseException, render: Callable[[], list[str]]) -> None:
    error._render_traceback_ = render  # type: ignore[attr-defined]


def _users_lines(tb: TracebackType | None) -> list[str]:
    """The lines outside this package that were running, innermost last; nothing when there is only one place to be."""
    lines = []
    for frame, number in traceback.walk_tb(tb):
        name = frame.f_code.co_filename
        if is_foreign(name):
            continue
        source = linecache.getlines(name)
        if len(source) > 1 and number <= len(source):
            function = frame.f_code.co_name
            inside = "" if function.startswith("<") else f" in {function}"
            lines.append(f"line {number}{inside}: {clean(mask(source[number - 1].strip()))}")
    return lines[-FRAMES:]


def is_foreign(name: str) -> bool:
    """Whether a file of that name is none of the user's: ours, a library's or Python's own."""
    return name.startswith(_PACKAGE) or any(
        part in name for part in ("site-packages", "dist-packages", "/lib/python", "\\Lib\\", "<frozen")
    )
