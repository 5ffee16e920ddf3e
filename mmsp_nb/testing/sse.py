"""Frames of a server-sent event stream, and the ways in which servers differ when they write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Frame", "Style", "encode"]


class Frame(NamedTuple):
    """One event: ``data`` (text as it is, anything else as JSON) and, for dialects that use them, its name."""

    data: Any
    event: str | None = None


@dataclass(frozen=True, slots=True)
class Style:
    """How frames are written. The defaults are what most providers send.

    newline: line end, ``"\\n"``, ``"\\r\\n"`` or ``"\\r"``.
    space: whether a space follows the colon of a field.
    names: whether frames keep their ``event:`` line.
    bom: a byte order mark first.
    comments: a ``: keep-alive`` comment before every n-th frame; 0 = none.
    final_blank_line: without it the last frame is not terminated.
    ascii: whether JSON escapes everything beyond ASCII.
    multiline: JSON is indented, so that one event has several ``data:`` lines.
    ids: an ``id:`` and a ``retry:`` line in every frame.
    """

    newline: str = "\n"
    space: bool = True
    names: bool = True
    bom: bool = False
    comments: int = 0
    final_blank_line: bool = True
    ascii: bool = False
    multiline: bool = False
    ids: bool = False


def encode(frames: Iterable[Frame | bytes], style: Style | None = None) -> list[bytes]:
    """The bytes of each frame, one entry a frame. ``bytes`` among the frames pass as they are."""
    style = style or Style()
    chunks = [b"\xef\xbb\xbf"] if style.bom else []
    written = list(frames)
    for number, frame in enumerate(written):
        if style.comments and number % style.comments == 0:
            chunks.append(f": keep-alive{style.newline * 2}".encode())
        if isinstance(frame, bytes):
            chunks.append(frame)
            continue
        lines = list(_lines(frame, number, style))
        ends = 2 if style.final_blank_line or number < len(written) - 1 else 0
        chunks.append((style.newline.join(lines) + style.newline * ends).encode())
    return chunks


def _lines(frame: Frame, number: int, style: Style) -> Iterator[str]:
    colon = ": " if style.space else ":"
    if style.ids:
        yield f"id{colon}{number}"
        yield f"retry{colon}3000"
    if frame.event is not None and style.names:
        yield f"event{colon}{frame.event}"
    for line in _text(frame.data, style).split("\n"):
        yield f"data{colon}{line}"


def _text(data: Any, style: Style) -> str:
    if isinstance(data, str):
        return data
    if style.multiline:
        return json.dumps(data, ensure_ascii=style.ascii, indent=1)
    return json.dumps(data, ensure_ascii=style.ascii, separators=(",", ":"))
