"""What a scripted model says, before any dialect: thinking, text, tool calls, media, usage.

Every piece given becomes one delta on the wire, so ``text("Hel", "lo")`` arrives in two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "USAGE",
    "Call",
    "Media",
    "Part",
    "Step",
    "Text",
    "Thinking",
    "Usage",
    "audio",
    "call",
    "image",
    "steps",
    "text",
    "thinking",
]


@dataclass(frozen=True, slots=True)
class Text:
    pieces: tuple[str, ...]
    signature: str | None = None
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """``redacted`` has no readable text; ``encrypted`` is opaque data beside it; ``channel`` is for Responses."""

    pieces: tuple[str, ...]
    signature: str | None = None
    encrypted: str | None = None
    redacted: bool = False
    channel: Literal["content", "summary"] = "content"


@dataclass(frozen=True, slots=True)
class Call:
    """``pieces`` are fragments of the arguments' JSON text, which need not be valid."""

    name: str
    pieces: tuple[str, ...]
    id: str
    signature: str | None = None

    @property
    def arguments(self) -> Any:
        """The parsed arguments; ValueError when the pieces are no JSON."""
        return json.loads("".join(self.pieces) or "{}")


@dataclass(frozen=True, slots=True)
class Media:
    """An image or audio chunk, whole. ``thought`` marks an interim image of a thinking model."""

    data: bytes
    mime_type: str
    signature: str | None = None
    thought: bool = False


Part = Text | Thinking | Call | Media


def text(*pieces: str, signature: str | None = None, phase: str | None = None) -> Text:
    return Text(pieces, signature, phase)


def thinking(
    *pieces: str,
    signature: str | None = None,
    encrypted: str | None = None,
    redacted: bool = False,
    channel: Literal["content", "summary"] = "content",
) -> Thinking:
    return Thinking(pieces, signature, encrypted, redacted, channel)


def call(name: str, *arguments: dict[str, Any] | str, id: str = "call_1", signature: str | None = None) -> Call:
    """A tool call. Text arguments are fragments as they are; a dict is written as JSON and sent in one piece."""
    pieces = tuple(a if isinstance(a, str) else json.dumps(a, ensure_ascii=False) for a in arguments)
    return Call(name, pieces, id, signature)


def image(data: bytes, mime_type: str = "image/png", *, signature: str | None = None, thought: bool = False) -> Media:
    return Media(data, mime_type, signature, thought)


def audio(data: bytes, mime_type: str = "audio/l16") -> Media:
    return Media(data, mime_type)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts in the protocol's terms (a partition); each dialect writes its vendor's inclusive totals."""

    cached: int = 40
    prompt: int = 12
    thoughts: int = 6
    response: int = 9

    @property
    def input(self) -> int:
        return self.cached + self.prompt

    @property
    def output(self) -> int:
        return self.thoughts + self.response


USAGE = Usage()
"""What a scripted answer reports unless the test says otherwise."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of writing a part: it starts, a piece comes, it ends. ``index`` counts parts from 0."""

    kind: Literal["start", "piece", "end"]
    index: int
    part: Part
    piece: str = ""


def steps(parts: Sequence[Part], interleave: bool = False) -> Iterator[Step]:
    """The parts one after the other; with ``interleave`` neighbouring calls run side by side, piece by piece."""
    run: list[tuple[int, Call]] = []
    for index, part in enumerate(parts):
        if interleave and isinstance(part, Call):
            run.append((index, part))
            continue
        yield from _side_by_side(run)
        run = []
        yield Step("start", index, part)
        for piece in () if isinstance(part, Media) else part.pieces:
            yield Step("piece", index, part, piece)
        yield Step("end", index, part)
    yield from _side_by_side(run)


def _side_by_side(calls: list[tuple[int, Call]]) -> Iterator[Step]:
    yield from (Step("start", index, part) for index, part in calls)
    for n in range(max((len(part.pieces) for _, part in calls), default=0)):
        yield from (Step("piece", index, part, part.pieces[n]) for index, part in calls if n < len(part.pieces))
    yield from (Step("end", index, part) for index, part in calls)
