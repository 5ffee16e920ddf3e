"""`Reply`: one scripted answer, and what can be done to it.

A reply is a value; every method returns a changed copy, so vices can be put together::

    Reply.stream(frames).cut(200).bytewise()
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

from mmsp_nb.testing.gate import Gate
from mmsp_nb.testing.sse import Frame, Style, encode

__all__ = ["Cut", "Part", "Reply"]

EVENT_STREAM = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends here. ``reset`` tears it (RST), ``fin`` closes it politely in the middle of the body."""

    how: Literal["reset", "fin"] = "reset"


Part = bytes | Gate | Cut


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a `FakeProvider`.

    body: byte chunks, each sent and flushed by itself; a `Gate` is waited at, a `Cut` ends the connection.
        Any iterable will do, an endless one too; one that can be read only once serves one request.
    framing: ``chunked``, ``length`` (a Content-Length header; the body must end) or ``close`` (the end of the
        connection is the end of the body) or ``raw`` (the body is everything that is sent, its own head included).
    hang_up: close the connection instead of answering: ``"reset"`` or ``"fin"``.
    drop_after: promise keep-alive, then close the connection after the answer all the same.
    before: a gate in front of the status line.
    """

    body: Iterable[Part] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    framing: Literal["chunked", "length", "close", "raw"] = "chunked"
    hang_up: Literal["", "reset", "fin"] = ""
    drop_after: bool = False
    before: Gate | None = None

    @classmethod
    def stream(
        cls,
        frames: Iterable[Frame | bytes],
        style: Style | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Reply:
        """A 200 with server-sent events, one chunk a frame. ``options`` are fields of `Reply`."""
        return cls(encode(frames, style), headers={"content-type": EVENT_STREAM, **(headers or {})}, **options)

    @classmethod
    def json(cls, payload: Any, status: int = 200, headers: Mapping[str, str] | None = None, **options: Any) -> Reply:
        """One JSON document."""
        body = json.dumps(payload, ensure_ascii=False).encode()
        headers = {"content-type": "application/json", **(headers or {})}
        return cls([body], status, headers, framing="length", **options)

    @classmethod
    def data(cls, body: bytes, content_type: str, status: int = 200, **options: Any) -> Reply:
        """Any bytes with a content type: an image, an HTML page, an empty body."""
        return cls([body], status, {"content-type": content_type}, framing="length", **options)

    @classmethod
    def raw(cls, *parts: Part) -> Reply:
        """These bytes as they are in place of an HTTP answer; then the connection is closed."""
        return cls(parts, framing="raw")

    @classmethod
    def no_answer(cls, how: Literal["reset", "fin"] = "fin") -> Reply:
        """The request is read, then the connection ends without a byte."""
        return cls(hang_up=how)

    @property
    def content(self) -> bytes:
        """All bytes of a body that ends, gates and cuts left out."""
        return b"".join(part for part in self.body if isinstance(part, bytes))

    def cut(self, at: int, how: Literal["reset", "fin"] = "reset") -> Reply:
        """End the connection after ``at`` bytes of the body."""
        return replace(self, body=_Lazy(_until, self.body, at, Cut(how)), framing=self._open_framing())

    def end(self, at: int) -> Reply:
        """Leave out everything after ``at`` bytes of the body; the answer then ends as if that were all."""
        return replace(self, body=_Lazy(_until, self.body, at), framing=self._open_framing())

    def hold(self, gate: Gate, at: int = 0) -> Reply:
        """Wait at ``gate`` after ``at`` bytes of the body; 0 = after the headers."""
        return replace(self, body=_Lazy(_held, self.body, at, gate), framing=self._open_framing())

    def split(self, size: int) -> Reply:
        """The same body in chunks of ``size`` bytes, whatever they tear apart."""
        content = self.content
        return replace(self, body=[content[i : i + size] for i in range(0, len(content), size)])

    def bytewise(self) -> Reply:
        """Every byte is a chunk of its own."""
        return self.split(1)

    def shuffled(self, seed: int, largest: int = 64) -> Reply:
        """The same body in chunks of random sizes from 1 to ``largest`` bytes; the same seed, the same chunks."""
        rng, content, chunks = random.Random(seed), self.content, []
        while content:
            size = rng.randint(1, largest)
            chunks.append(content[:size])
            content = content[size:]
        return replace(self, body=chunks)

    def joined(self) -> Reply:
        """The whole body in one chunk."""
        return replace(self, body=[self.content])

    def then(self, *parts: Part) -> Reply:
        """More at the end of the body: bytes, a gate, a cut."""
        return replace(self, body=_Lazy(chain, self.body, parts), framing=self._open_framing())

    def endless(self, chunk: bytes) -> Reply:
        """After the body, ``chunk`` again and again until the client leaves."""
        return replace(self, body=_Lazy(_endless, self.body, chunk), framing="chunked")

    def with_status(self, status: int, **headers: str) -> Reply:
        """Another status; ``retry_after="3"`` adds the header ``retry-after: 3``."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, status=status, headers={**self.headers, **more})

    def _open_framing(self) -> Literal["chunked", "close", "raw"]:
        return "chunked" if self.framing == "length" else self.framing


class _Lazy:
    """A body made anew by a generator function each time it is read: it may be endless."""

    def __init__(self, make: Callable[..., Iterator[Part]], *arguments: Any) -> None:
        self._make, self._arguments = make, arguments

    def __iter__(self) -> Iterator[Part]:
        return self._make(*self._arguments)


def _until(body: Iterable[Part], at: int, *last: Part) -> Iterator[Part]:
    left = at
    for part in body if left else ():
        if not isinstance(part, bytes):
            yield part
            continue
        if part[:left]:
            yield part[:left]
        left -= len(part)
        if left <= 0:
            break
    yield from last


def _held(body: Iterable[Part], at: int, gate: Gate) -> Iterator[Part]:
    yield from _until(body, at, gate)
    left = at
    for part in body:
        if not isinstance(part, bytes):
            if left <= 0:
                yield part
            continue
        if part[max(left, 0) :]:
            yield part[max(left, 0) :]
        left -= len(part)


def _endless(body: Iterable[Part], chunk: bytes) -> Iterator[Part]:
    yield from body
    while True:
        yield chunk
