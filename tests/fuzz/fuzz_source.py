"""Bytes of a fuzzer made into choices, numbers, texts and JSON values; and streams with something wrong in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, float("inf"), "", "x", "\ud83c", "\u2028", "{", '{"a":1}',
    [], [None], [[]], {}, {"a": None}, {"type": "text"}, {"type": ["text"]},
    "text", "thinking", "tool_call", "0", "c1", "c2", "error", "stop",
)  # fmt: skip
"""Values that are not where they should be."""


class Source:
    """Reads ``data`` from its start; when it is used up everything is the first of its kind, so that loops end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def byte(self) -> int:
        value = self._data[self._at] if self else 0
        self._at += 1
        return value

    def one_of(self, values: Sequence[T]) -> T:
        return values[self.byte() % len(values)]

    def rest(self) -> bytes:
        rest, self._at = self._data[self._at :], len(self._data)
        return rest

    def some(self, limit: int = 40) -> bytes:
        size = self.byte() % limit
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece

    def text(self, limit: int = 40) -> str:
        return self.some(limit).decode("utf-8", "surrogateescape")

    def value(self, depth: int = 3) -> Any:
        """A JSON value."""
        kind = self.byte() % 8
        if kind == 0 and depth:
            return [self.value(depth - 1) for _ in range(self.byte() % 4)]
        if kind == 1 and depth:
            return {self.text(8): self.value(depth - 1) for _ in range(self.byte() % 4)}
        return self.text() if kind == 2 else copy.deepcopy(self.one_of(ODD))


def chunks_of(data: bytes, size: int) -> list[bytes]:
    """``data`` cut into pieces of ``size`` bytes; 0: it comes as one."""
    return [data[at : at + size] for at in range(0, len(data), size)] if size else [data]


def spoiled(source: Source, frames: Sequence[Any]) -> list[bytes]:
    """The chunks of a stream some of whose frames are changed, twice there, elsewhere or missing."""
    from mmsp_nb.testing import Frame, encode

    changed = [copy.deepcopy(frame) for frame in frames]
    while source and changed:
        at = source.byte() % len(changed)
        what = source.byte() % 6
        if what == 0:
            del changed[at]
        elif what == 1:
            changed.insert(at, copy.deepcopy(changed[source.byte() % len(changed)]))
        elif what == 2:
            changed.append(changed.pop(at))
        elif isinstance(changed[at], Frame) and isinstance(changed[at].data, dict | list):
            changed[at] = Frame(_changed(source, changed[at].data), changed[at].event)
    return encode([frame if isinstance(frame, bytes) else Frame(_text(frame.data), frame.event) for frame in changed])


def _text(data: Any) -> str:
    return data.encode("utf-8", "replace").decode() if isinstance(data, str) else json.dumps(data)


def _changed(source: Source, value: Any) -> Any:
    """``value`` with one place in it changed."""
    top = {"": value}
    where, key = top, ""
    for _ in range(source.byte() % 6):
        inner: Any = where[key]  # type: ignore[index]
        if isinstance(inner, dict) and inner:
            where, key = inner, source.one_of(list(inner))
        elif isinstance(inner, list) and inner:
            where, key = inner, source.byte() % len(inner)  # type: ignore[assignment]
    what = source.byte() % 4
    if what == 0 and where is not top:
        del where[key]
    elif what == 1 and isinstance(where[key], str):
        where[key] += source.text()
    else:
        where[key] = source.value()
    return top.get("", {})
