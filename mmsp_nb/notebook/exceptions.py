"""The last exceptions of cells: ``{{Err[3]}}`` in a prompt, and what ``%mmsp why`` tells a model of one.

What goes out is text, bounded and without keys: the cell, the frames with their source, and of the values in the
user's own frames names, types and shapes, never their contents.
"""

from __future__ import annotations

import contextlib
import linecache
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from .failures import is_foreign
from .options import OptionError
from .sanitize import clean, shorten, single_line
from .secrets import mask

__all__ = ["Failure", "Failures", "explained"]

KEPT = 5
"""So many are kept: an exception holds the values of its frames."""

MAX_CELL = 6_000
MAX_MESSAGE = 2_000
MAX_FRAMES = 12
MAX_VALUES = 15
AROUND = 3
"""Lines of source above and below the one that failed."""


@dataclass(frozen=True)
class Failure:
    """One exception: ``count`` is the number of the execution, None where it was not counted."""

    count: int | None
    error: BaseException
    cell: str


class Failures(Mapping[int, BaseException]):
    """The last exceptions by the number of their execution, as in ``In[3]``; also ``Err[-1]`` for the last."""

    def __init__(self) -> None:
        self._kept: list[Failure] = []

    def note(self, result: Any) -> None:
        """A cell has ended, with this `ExecutionResult`. Our own refusals of what was typed are not kept."""
        from IPython.core.error import UsageError

        error = getattr(result, "error_in_exec", None) or getattr(result, "error_before_exec", None)
        if not isinstance(error, BaseException) or isinstance(error, UsageError):
            return
        info = getattr(result, "info", None)
        cell = getattr(info, "raw_cell", None)
        self._kept.append(
            Failure(getattr(result, "execution_count", None), error, cell if isinstance(cell, str) else "")
        )
        del self._kept[:-KEPT]

    @property
    def last(self) -> Failure | None:
        return self._kept[-1] if self._kept else None

    def __getitem__(self, count: int) -> BaseException:
        if isinstance(count, int) and count < 0 and -count <= len(self._kept):
            return self._kept[count].error
        for failure in reversed(self._kept):
            if failure.count == count:
                return failure.error
        known = ", ".join(map(str, self)) or "none"
        raise OptionError(f"no exception of execution {count!r} is kept (there are: {known})")

    def __iter__(self) -> Iterator[int]:
        return iter(dict.fromkeys(failure.count for failure in self._kept if failure.count is not None))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"Err({', '.join(f'{failure.count}: {type(failure.error).__name__}' for failure in self._kept)})"


def explained(failure: Failure | None, question: str = "") -> str:
    """The prompt for ``%mmsp why``: nothing in it is looked at for expressions. OptionError: there is no exception."""
    if failure is None:
        raise OptionError("no cell has failed since mmsp was loaded")
    parts = [question.strip() or "Why did this fail, and how do I fix it? Answer briefly."]
    if failure.cell.strip():
        number = "" if failure.count is None else f" [{failure.count}]"
        parts.append(f"The cell{number}:\n{_fenced(shorten(failure.cell.rstrip(), MAX_CELL), 'python')}")
    error: BaseException | None = failure.error
    seen: set[int] = set()
    link = "The exception"
    while error is not None and id(error) not in seen and len(seen) < 3:
        seen.add(id(error))
        parts.append(f"{link}:\n{_fenced(_one(error))}")
        if error.__cause__ is not None:
            error, link = error.__cause__, "Its cause"
        elif error.__context__ is not None and not error.__suppress_context__:
            error, link = error.__context__, "It was raised while this was handled"
        else:
            error = None
    return mask(clean("\n\n".join(parts)))


def _one(error: BaseException) -> str:
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [(frame, line) for frame, line in frames if not is_foreign(frame.f_code.co_filename)]
    lines: list[str] = []
    unread = isinstance(error, SyntaxError)  # its headline has file and line; the frames are those of the reader
    for frame, line in (own or ([] if unread else frames))[-MAX_FRAMES:]:
        lines += _frame(frame, line, values=bool(own))
    if own and frames[-1] is not own[-1] and frames[-1][0] is not own[-1][0]:
        lines.append(f"raised in {_place(frames[-1][0], frames[-1][1])}")
    return "\n".join([*lines, *_headline(error)])


def _headline(error: BaseException) -> list[str]:
    try:
        text = "".join(traceback.format_exception_only(type(error), error)).rstrip("\n")
    except Exception:  # a __str__ of the user's may fail
        text = type(error).__name__
    lines = [shorten(text, MAX_MESSAGE)]
    if isinstance(error, BaseExceptionGroup):
        lines += [f"  - {type(each).__name__}: {single_line(_said(each), 200)}" for each in error.exceptions[:10]]
    return lines


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _frame(frame: FrameType, number: int, *, values: bool) -> list[str]:
    lines = [_place(frame, number)]
    source = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    for n in range(max(number - AROUND, 1), min(number + AROUND, len(source)) + 1):
        lines.append(f"{'->' if n == number else '  '} {n:>4} {source[n - 1].rstrip()[:300]}")
    if values:
        known = _values(frame)
        if known:
            lines.append("      where " + "; ".join(known))
    return lines


def _place(frame: FrameType, number: int) -> str:
    name = frame.f_code.co_filename
    source = (
        "the cell"
        if name.startswith("<ipython-input") or "ipykernel_" in name
        else name.replace("\\", "/").split("/")[-1]
    )
    return f"{source}, line {number}, in {frame.f_code.co_name}"


def _values(frame: FrameType) -> list[str]:
    """Names, types and shapes of the values that the failing frame's code speaks of."""
    names = [*frame.f_code.co_varnames, *frame.f_code.co_names, *frame.f_code.co_freevars]
    found = []
    for name in dict.fromkeys(names):
        if name in frame.f_locals and not name.startswith("__"):
            value = frame.f_locals[name]
            if not (callable(value) or type(value).__name__ == "module"):
                found.append(f"{name}: {_shape(value)}")
    return found[:MAX_VALUES]


def _shape(value: Any) -> str:
    """``DataFrame (3, 2) [a: int64, b: object]``, ``list of 4``, ``int``: never what is in it."""
    kind = type(value).__name__
    with contextlib.suppress(Exception):
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple):
            text = f"{kind} {shape}"
            columns = getattr(value, "dtypes", None)
            if columns is not None and hasattr(columns, "items") and len(shape) == 2:
                named = [f"{single_line(str(name), 30)}: {dtype}" for name, dtype in list(columns.items())[:12]]
                more = ", ..." if len(columns) > 12 else ""
                return f"{text} [{', '.join(named)}{more}]"
            dtype = getattr(value, "dtype", None)
            return f"{text} {dtype}" if dtype is not None else text
        if isinstance(value, Mapping):
            return f"{kind} with {len(value)} keys"
        if isinstance(value, str | bytes):
            return f"{kind} of length {len(value)}"
        if hasattr(value, "__len__"):
            return f"{kind} of {len(value)}"
    return kind


def _fenced(text: str, language: str = "") -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
