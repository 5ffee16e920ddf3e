"""Server-sent events: bytes in, ``(name, data)`` out. No I/O in `SSEParser`; `aiter_events` drives it.

Tolerant where servers differ and strict where it matters: lines end with LF, CR or CRLF and nothing
else (U+2028 and its kin are ordinary text); a byte order mark, comments, missing names, a missing
space after the colon and a missing blank line at the end are all fine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from mmsp_nb.protocol.errors import ResponseTooLargeError

__all__ = ["MAX_EVENT", "SSEParser", "ServerEvent", "aiter_events", "is_done"]

ServerEvent = tuple[str | None, bytes]
"""The event's name (None when the server gave none) and its data, undecoded."""

MAX_EVENT = 64 * 1024 * 1024
"""Default limit of one line and of one event, in bytes."""

_BOM = b"\xef\xbb\xbf"


class SSEParser:
    """Incremental parser of one stream: `feed` it chunks as they come, then `finish`.

    Data stays bytes, so that a character cut between two chunks needs no care. An event without
    data is dropped, as the format demands. ``limit`` bounds a line and an event, in bytes;
    ResponseTooLargeError beyond it.
    """

    __slots__ = ("_data", "_name", "_size", "_skip_lf", "_started", "_tail", "limit", "truncated")

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self.limit = limit
        self.truncated = False
        """After `finish`: the stream ended inside a line, so that the last event may be cut."""
        self._tail: list[bytes] = []  # pieces of the line that has not ended yet
        self._data: list[bytes] = []  # data lines of the running event
        self._name: str | None = None
        self._size = 0  # bytes held in _tail and _data
        self._skip_lf = False  # the last chunk ended with CR: an LF that follows belongs to it
        self._started = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that ``chunk`` completes, in order."""
        if not self._started:
            chunk = self._begin(chunk)
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == 10:
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_lf = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._tail:
            if b"\n" not in chunk:
                self._hold(chunk)
                return []
            self._tail.append(chunk)
            chunk = b"".join(self._tail)
            self._tail.clear()
        events: list[ServerEvent] = []
        if self._data or self._name is not None:
            return self._lines(chunk, events)
        # Nothing is pending: take whole frames, most of which are a single line of data.
        frames = chunk.split(b"\n\n")
        rest = frames.pop()
        for frame in frames:
            start, name = 6, None
            if frame.startswith(b"event: ") and (end := frame.find(b"\n")) > 0:
                start, name = end + 7, frame[7:end].decode("utf-8", "replace") or None
            if frame.startswith(b"data: ", start - 6) and frame.find(b"\n", start) < 0 and len(frame) <= self.limit:
                if len(frame) > start:
                    events.append((name, frame[start:]))
            else:
                self._lines(frame + b"\n\n", events)
        self._size = 0
        return self._lines(rest, events) if rest else events

    def finish(self) -> list[ServerEvent]:
        """The stream is over: the event that no blank line ended, if there is one."""
        self.truncated = bool(self._tail)
        text = b"".join(self._tail) + b"\n\n"
        self._tail.clear()
        return self._lines(text, [])

    def _begin(self, chunk: bytes) -> bytes:
        """Drop a byte order mark, which may itself come in pieces."""
        head = b"".join(self._tail) + chunk
        if len(head) < 3 and _BOM.startswith(head):
            self._tail = [head] if head else []
            return b""
        self._started = True
        self._tail.clear()
        return head.removeprefix(_BOM)

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._tail.append(piece)
            self._size += len(piece)
            self._check()

    def _check(self) -> None:
        if self._size > self.limit:
            raise ResponseTooLargeError(
                f"an event of the stream is larger than the limit of {self.limit} bytes. Allow more with "
                "Transport(max_event=...), if this is no fault of the server",
                limit=self.limit,
            )

    def _lines(self, text: bytes, events: list[ServerEvent]) -> list[ServerEvent]:
        """The general way: line by line, keeping what is unfinished."""
        lines = text.split(b"\n")
        rest = lines.pop()
        data = self._data
        self._size = sum(map(len, data)) + max(len(data) - 1, 0)  # what they will be joined by counts too
        for line in lines:
            if line.startswith(b"data:"):
                value = line[6:] if line[5:6] == b" " else line[5:]
                self._size += len(value) + bool(data)
                data.append(value)
                self._check()
            elif not line:
                if data and (joined := data[0] if len(data) == 1 else b"\n".join(data)):
                    events.append((self._name, joined))
                data.clear()
                self._name = None
                self._size = 0
            elif line.startswith(b"event:"):
                self._name = line[6:].removeprefix(b" ").decode("utf-8", "replace") or None
            elif line == b"data":
                self._size += bool(data)
                data.append(b"")
                self._check()
            elif line == b"event":
                self._name = None
        self._hold(rest)
        return events


def is_done(data: bytes | str) -> bool:
    """Whether ``data`` is the ``[DONE]`` that some protocols end a stream with."""
    return data[:6] == (b"[DONE]" if isinstance(data, bytes) else "[DONE]")


async def aiter_events(chunks: AsyncIterator[bytes], *, limit: int = MAX_EVENT) -> AsyncIterator[ServerEvent]:
    """The events of a byte stream up to its end; ``[DONE]`` is passed on like any other data."""
    parser = SSEParser(limit)
    async for chunk in chunks:
        for event in parser.feed(chunk):
            yield event
    for event in parser.finish():
        yield event
