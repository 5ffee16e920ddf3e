"""How a failed or interrupted call ends a cell: with the right exception, and one calm line instead of our stack."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from .sanitize import clean, shorten
from .secrets import mask, mask_exception

__all__ = ["calm", "stopped", "summary"]

MAX_MESSAGE = 600
FRAMES = 5

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


def stopped(after: float, error: BaseException | None = None) -> BaseException:
    """The exception for a cell that was interrupted after that many seconds: a KeyboardInterrupt, or ``error``."""
    error = error or KeyboardInterrupt("stopped")
    line = f"{type(error).__name__}: stopped after {after:.1f} s; what had come so far is kept"
    _render_with(error, lambda: [line])
    return error


def _render_with(error: BaseException, render: Callable[[], list[str]]) -> None:
    error._render_traceback_ = render  # type: ignore[attr-defined]


def _users_lines(tb: TracebackType | None) -> list[str]:
    """The lines outside this package that were running, innermost last; nothing when there is only one place to be."""
    lines = []
    for frame, number in traceback.walk_tb(tb):
        name = frame.f_code.co_filename
        if name.startswith(_PACKAGE) or _is_library(name):
            continue
        source = linecache.getlines(name)
        if len(source) > 1 and number <= len(source):
            function = frame.f_code.co_name
            inside = "" if function.startswith("<") else f" in {function}"
            lines.append(f"line {number}{inside}: {clean(mask(source[number - 1].strip()))}")
    return lines[-FRAMES:]


def _is_library(name: str) -> bool:
    return any(part in name for part in ("site-packages", "dist-packages", "/lib/python", "\\Lib\\", "<frozen"))
