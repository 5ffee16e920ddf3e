"""Canonical answers in every dialect, for tests that want an answer and don't care which.

==============  =========================================================================
``text``        two stretches of plain text, with characters of one to four UTF-8 bytes
``thinking``    signed thinking, then text
``tools``       signed thinking, then two parallel tool calls
``images``      text and an image (dialects whose answers carry images)
``audio``       two chunks of speech (dialects whose answers carry sound)
==============  =========================================================================

Every one of them reports the same usage, ``USAGE``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from mmsp_nb.testing.parts import USAGE, Part, audio, call, image, text, thinking
from mmsp_nb.testing.reply import Reply
from mmsp_nb.testing.sse import Frame, Style
from mmsp_nb.testing.wire import chat, generate_content, interactions, messages, mmsp, responses

__all__ = ["DIALECTS", "NAMES", "PNG", "USAGE", "frames", "parts", "reply"]

DIALECTS: dict[str, Any] = {
    "chat": chat,
    "messages": messages,
    "responses": responses,
    "interactions": interactions,
    "generate_content": generate_content,
    "mmsp": mmsp,
}
"""The streaming dialects, by the names of the modules in `mmsp_nb.testing.wire`."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""

_MEDIA = ("interactions", "generate_content", "mmsp")
_ONLY = {"images": _MEDIA, "audio": _MEDIA}
_SIGNATURE = "ZmFrZS1zaWduYXR1cmU="


def _text() -> list[Part]:
    return [text("High ", "tide in Brest", " — 6,4 m", " 🌊.")]


def _thinking() -> list[Part]:
    return [thinking("Spring tide, ", "so it is high.", signature=_SIGNATURE), text("About 6.4 m", " at noon.")]


def _tools() -> list[Part]:
    return [
        thinking("Two ports, ", "two calls.", signature=_SIGNATURE),
        call("tide_table", '{"port": ', '"Brest", "days"', ": 1}", id="call_1"),
        call("tide_table", '{"port": "Saint-Malo"', ', "days": 2}', id="call_2"),
    ]


def _images() -> list[Part]:
    return [text("Here is the chart."), image(PNG)]


def _audio() -> list[Part]:
    return [audio(b"\x00\x01\x02\x03"), audio(b"\x04\x05")]


_PARTS: dict[str, Callable[[], list[Part]]] = {
    "text": _text,
    "thinking": _thinking,
    "tools": _tools,
    "images": _images,
    "audio": _audio,
}

NAMES = tuple(_PARTS)


def parts(name: str) -> list[Part]:
    """What the answer ``name`` consists of, before any dialect."""
    return _PARTS[_known(name, _PARTS, "answer")]()


def frames(name: str, dialect: str, **options: Any) -> list[Frame | bytes]:
    """The answer ``name`` as frames of ``dialect``. ``options`` go to the dialect's own ``frames``."""
    module = DIALECTS[_known(dialect, DIALECTS, "dialect")]
    if dialect not in _ONLY.get(name, DIALECTS):
        raise ValueError(f"answers in the dialect {dialect!r} carry no {name}")
    return list(module.frames(parts(name), **options))


def reply(name: str, dialect: str, *, style: Style | None = None, **options: Any) -> Reply:
    """The answer ``name`` as a `Reply`. ``options`` go to the dialect's own ``frames``."""
    return Reply.stream(frames(name, dialect, **options), style)


def _known(name: str, table: dict[str, Any], what: str) -> str:
    if name not in table:
        raise ValueError(f"no {what} {name!r}; there are {', '.join(table)}")
    return name
