"""What a model gets to see of a Python value: bounded text, and pictures as data URLs.

The value itself is never changed or used up: a generator is not read, a file not closed. Libraries are
looked for among the loaded modules only, since an object of theirs exists only when they are loaded.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import os
import sys
import types
import uuid
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sized
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mmsp_nb import media
from mmsp_nb.masking import mask_keys
from mmsp_nb.protocol.dataurls import picture_url_fault
from mmsp_nb.tools import tables

__all__ = ["MAX_IMAGES", "MAX_TEXT", "View", "cut", "error_text", "short", "view"]

MAX_TEXT = 20_000
"""Characters of one result that a model gets to read."""

MAX_IMAGES = 4
"""Pictures of one result that a model gets to see."""

MAX_ERROR = 2_000
"""Characters of an exception's message that a model gets to read."""

MAX_DEPTH = 12


@dataclass(frozen=True)
class View:
    """What a model sees: ``text``, and ``images`` as URLs. A tool may return one to decide for itself."""

    text: str
    images: tuple[str, ...] = ()


def view(value: Any) -> View:
    """The `View` of any value. Never raises, and never returns more than the limits of this module.

    Strings are as they are, None is ``(no result)``, what is like JSON becomes compact JSON, tables and
    arrays become their shape, types and first rows, pictures become images with a note in the text.
    What does not fit is cut, and the text says so.
    """
    if isinstance(value, View):
        faults = {url: picture_url_fault(url) for url in value.images[:MAX_IMAGES]}
        notes = "".join(f"\n(an image is left out: its URL {fault})" for fault in faults.values() if fault)
        return View(cut(value.text) + notes, tuple(url for url, fault in faults.items() if not fault))
    writer = _Writer()
    try:
        text = writer.text(value)
    except Exception as error:  # the value's own methods may do anything
        text = f"({_article(value)} that cannot be shown: {type(error).__name__})"
    if writer.left_out:
        text += f"\n(and {writer.left_out} more images, not shown)"
    return View(cut(text), tuple(writer.images))


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """``text`` with at most about ``limit`` characters: its beginning and its end, and a note between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[... {left_out:,} of {len(text):,} characters left out ...]\n{text[-tail:]}"


def short(value: Any, limit: int) -> str:
    """``repr(value)`` on one line, at most ``limit`` characters."""
    text = " ".join(repr(value[: 2 * limit] if isinstance(value, str) else value).split())
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def error_text(error: BaseException) -> str:
    """Type and message of an exception, bounded, with key-shaped text hidden."""
    try:
        message = str(error)
    except Exception:
        message = ""
    name = type(error).__name__
    return cut(mask_keys(f"{name}: {message}" if message else name), MAX_ERROR)


def _article(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


class _Writer:
    """Turns one value into JSON-like data, within a budget of characters."""

    def __init__(self) -> None:
        self.budget = MAX_TEXT
        self.images: list[str] = []
        self.left_out = 0
        self._inside: set[int] = set()

    def text(self, value: Any) -> str:
        if value is None:
            return "(no result)"
        if isinstance(value, str) and not isinstance(value, enum.Enum):
            return str(value)
        plain = self.plain(value)
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))

    def plain(self, value: Any) -> Any:
        """``value`` as JSON-like data; a string for what is not like JSON."""
        plain = self._scalar(value)
        if plain is not _NOT_PLAIN:
            self.budget -= len(plain) if isinstance(plain, str) else 4
            return plain
        if id(value) in self._inside:
            return "(contains itself)"
        if len(self._inside) >= MAX_DEPTH:
            return f"({_article(value)}, nested too deeply)"
        self._inside.add(id(value))
        try:
            return self._container(value)
        finally:
            self._inside.discard(id(value))

    def _scalar(self, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return self._scalar(value.value)
        if isinstance(value, str):
            return cut(str(value), max(self.budget, 200))
        if isinstance(value, int):
            return int(value) if abs(value) < 10**400 else f"(an integer of {value.bit_length():,} bits)"
        if isinstance(value, float):
            value = float(value)
            return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(bytes(value))
        if isinstance(value, datetime.date | datetime.time):
            return value.isoformat()
        if isinstance(value, os.PathLike | datetime.timedelta | decimal.Decimal | uuid.UUID | complex):
            return str(value)
        if isinstance(value, BaseException):
            return error_text(value)
        if isinstance(value, Iterator | AsyncIterator | types.CoroutineType):
            return f"({_article(value)}, not read)"
        if isinstance(
            value, type | types.ModuleType | types.FunctionType | types.MethodType | types.BuiltinFunctionType
        ):
            return f"({_article(value)}: {getattr(value, '__name__', '?')})"
        drawn = self._draw(value)
        if drawn is not None:
            return self._attach(drawn)
        item = tables.scalar(value, _NOT_PLAIN)
        return item if item is _NOT_PLAIN else self._scalar(item)

    def _container(self, value: Any) -> Any:
        table = tables.text(value)
        if table is not None:
            self.budget -= len(table)
            return table
        fields = _fields(value)
        if fields is not None:
            return self._mapping(fields)
        if isinstance(value, list | tuple | range | deque | AbstractSet):
            return self._sequence(value)
        return self._own_text(value)

    def _mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for key, each in list(islice(value.items(), MAX_TEXT)):
            if self.budget <= 0:
                written["..."] = f"{len(value) - len(written):,} more of {len(value):,} entries left out"
                break
            name = str(self._scalar(key) if not isinstance(key, tuple | frozenset) else key)
            self.budget -= len(name) + 4
            written[name] = self.plain(each)
        return written

    def _sequence(self, value: Any) -> list[Any]:
        written: list[Any] = []
        for each in islice(value, MAX_TEXT):
            if self.budget <= 0:
                written.append(f"... {len(value) - len(written):,} more of {len(value):,} items left out")
                break
            self.budget -= 1
            written.append(self.plain(each))
        return written

    def _own_text(self, value: Any) -> str:
        if type(value).__repr__ is object.__repr__ and type(value).__str__ is object.__str__:
            size = f" of length {len(value):,}" if isinstance(value, Sized) else ""
            return f"({_article(value)}{size})"  # the default repr says an address, which nobody can use
        text = str(value) if type(value).__repr__ is object.__repr__ else repr(value)
        text = cut(text, max(self.budget, 200))
        self.budget -= len(text)
        return text

    def _draw(self, value: Any) -> media.Picture | None:
        try:
            return media.draw(value)
        except Exception:  # what cannot be drawn is shown as text
            return None

    def _attach(self, picture: media.Picture) -> str:
        if len(self.images) >= MAX_IMAGES:
            self.left_out += 1
            return f"({picture}, not shown)"
        self.images.append(picture.url)
        return f"({picture}, attached)"

    def _bytes(self, data: bytes) -> str:
        if media.sniff(data) is not None:
            with suppress(ValueError):
                return self._attach(media.picture(data))
        with suppress(UnicodeDecodeError):
            text = data.decode("utf-8")
            if text.isprintable() or not any(c < " " and c not in "\t\r\n" for c in text):
                return cut(text, max(self.budget, 200))
        return f"({len(data):,} bytes, beginning {data[:32].hex(' ')})"


_NOT_PLAIN: Any = object()
_NAMED = (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType)


def _fields(value: Any) -> Mapping[Any, Any] | None:
    """A value with named parts as a mapping: mappings, dataclasses, named tuples, pydantic and attrs objects."""
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value):
        shown = (field.name for field in dataclasses.fields(value) if field.repr)
        return {name: getattr(value, name) for name in shown if hasattr(value, name)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=False))
    base = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    if base is not None and isinstance(value, base):
        try:
            dumped: dict[str, Any] = value.model_dump(mode="json")
        except Exception:  # a field that pydantic cannot write; its value may be one that we can
            dumped = value.model_dump()
        return dumped
    attributes = getattr(type(value), "__attrs_attrs__", None)
    if attributes is not None:
        return {each.name: getattr(value, each.name, None) for each in attributes if each.repr}
    return None
