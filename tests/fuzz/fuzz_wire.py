"""Targets: what comes from a network. Streams of every dialect go through the real client, byte for byte."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import zlib
from collections.abc import Iterable
from typing import Any

from fuzz_grammar import check
from fuzz_source import ODD, Source, chunks_of, spoiled

from mmsp_nb.client import AutoLLMClient
from mmsp_nb.protocol.assembly import EventStream
from mmsp_nb.protocol.errors import MMSPError, ResponseFormatError, ResponseTooLargeError
from mmsp_nb.protocol.validation import check_messages
from mmsp_nb.testing import encode, faults, streams
from mmsp_nb.transport.aws import EventStreamParser
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.retry import RetryPolicy
from mmsp_nb.transport.sse import SSEParser

CLIENTS = {
    "chat": ("openai-chat", "/v1"),
    "responses": ("openai-responses", "/v1"),
    "messages": ("ant-messages", ""),
    "interactions": ("google-official", ""),
    "generate_content": ("google-genai", ""),
    "mmsp": ("mmsp", "/v1"),
}

# Readers --------------------------------------------------------------------------------------------


def sse(data: bytes) -> None:
    """However the bytes are cut, the events are those of the format; nothing but the limit is an error."""
    size, stream = data[:1], data[1:]
    expected = _events_of(stream)
    for pieces in (chunks_of(stream, 0), chunks_of(stream, 1), chunks_of(stream, size[0] if size else 0)):
        parser = SSEParser()
        found = [event for piece in pieces for event in parser.feed(piece)] + parser.finish()
        assert found == expected, (found, expected)
    small = SSEParser(limit=32)
    with contextlib.suppress(ResponseTooLargeError):
        for piece in chunks_of(stream, 7):
            assert all(len(event) <= 32 for _, event in small.feed(piece))
            assert len(small._data) <= 33 and sum(map(len, [*small._tail, *small._data])) <= 32


def _events_of(data: bytes) -> list[tuple[str | None, bytes]]:
    """What the format says, in the plainest way."""
    text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n") + b"\n\n"
    events, name, lines = [], None, []
    for line in text.split(b"\n")[:-1]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if joined := b"\n".join(lines):
                events.append((name, joined))
            name, lines = None, []
        elif field == b"data":
            lines.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace") or None
    return events


def sse_seeds() -> Iterable[bytes]:
    for dialect in CLIENTS:
        yield b"\x05" + b"".join(encode(streams.frames("text", dialect)))
    yield b"\x02\xef\xbb\xbfevent: a\r\ndata: 1\r\ndata:2\rdata\n: comment\nid: 3\nretry: 4\n\nevent\ndata: \xff\n\n"


def aws(data: bytes) -> None:
    """Frames with proper checksums around any headers and payloads, cut anywhere; and then damaged."""
    source = Source(data)
    size, damaged = source.byte(), source.byte() % 4 == 0
    stream = b""
    while source:
        headers, payload = source.some(60), source.some(60)
        head = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
        message = head + struct.pack(">I", zlib.crc32(head)) + headers + payload
        stream += message + struct.pack(">I", zlib.crc32(message))
    if damaged:
        stream = stream[: len(stream) // 2] + b"\x00" + stream[len(stream) // 2 + 1 :]
    outcomes = [_read_aws(pieces) for pieces in (chunks_of(stream, 0), chunks_of(stream, 1), chunks_of(stream, size))]
    assert outcomes[0] == outcomes[1] == outcomes[2], outcomes


def _read_aws(pieces: list[bytes]) -> tuple[list[Any], type | None]:
    parser, found = EventStreamParser(limit=10_000), []
    try:
        for piece in pieces:
            found += parser.feed(piece)
        return found + parser.finish(), None
    except MMSPError as error:
        return [], type(error)  # what came before it is the caller's, piece by piece


def aws_seeds() -> Iterable[bytes]:
    header = b"\x0b:event-type\x07\x00\x05chunk\x0d:message-type\x07\x00\x05event"
    yield b"\x05\x01" + bytes([len(header)]) + header + b"\x0d" + b'{"bytes":"e30="}'[:13]
    yield b"\x05\x00\x03\x01a\x00\x02{}"


# Streams through the client ----------------------------------------------------------------------------

_loop: asyncio.AbstractEventLoop | None = None


def talk(dialect: str, pieces: list[bytes]) -> None:
    """An answer of these bytes: events as the protocol promises and a valid history, or one typed error."""
    global _loop
    _loop = _loop or asyncio.new_event_loop()
    _loop.run_until_complete(_talk(dialect, pieces))


async def _talk(dialect: str, pieces: list[bytes]) -> None:
    @contextlib.asynccontextmanager
    async def handler(request: Any) -> Any:
        async def body() -> Any:
            for piece in pieces:
                yield piece

        yield 200, {"content-type": "text/event-stream"}, body()

    client_type, path = CLIENTS[dialect]
    transport = Transport(handler=handler, retries=RetryPolicy(0), max_event=100_000)
    client = AutoLLMClient("some-model", "k-fuzz", f"http://127.0.0.1:9{path}", client_type, transport=transport)
    question: Any = {"role": "user", "content_items": [{"type": "text.done", "text": "?"}]}
    events: list[Any] = []
    error: MMSPError | None = None
    try:
        async for event in client.streaming_response_stateful(question):
            events.append(event)
    except MMSPError as caught:
        error = caught
        assert len(str(error)) < 5_000, str(error)
        assert "\n" not in str(error) or not isinstance(error, ResponseFormatError), str(error)
    history = client.get_history()
    assert len(history) == (0 if error else 2)
    if dialect != "mmsp":  # what an MMSP server sends is handed through
        check(events, None if error else history[1])
        check_messages(history)
    await client.aclose()


def stream_target(dialect: str) -> Any:
    canned = [name for name in streams.NAMES if dialect in streams._ONLY.get(name, streams.DIALECTS)]

    def run(data: bytes) -> None:
        """An even first byte: the bytes of a stream. An odd one: a canned stream, and what is wrong with it."""
        source = Source(data)
        mode, size = source.byte(), source.byte()
        if mode % 2 == 0:
            talk(dialect, chunks_of(source.rest(), size))
        else:
            talk(dialect, spoiled(source, streams.frames(canned[size % len(canned)], dialect)))

    return run


def stream_seeds(dialect: str) -> Any:
    def seeds() -> Iterable[bytes]:
        for number, name in enumerate(streams.NAMES):
            if dialect in streams._ONLY.get(name, streams.DIALECTS):
                yield b"\x00\x40" + b"".join(encode(streams.frames(name, dialect)))
            yield bytes([1, number])
            yield bytes([1, number, 3, 5, 2, 1, 0, 3, 4, 4, 1, 2])
        for name in ("error-in-stream", "cut-after", "bad-arguments"):
            with contextlib.suppress(Exception):
                yield b"\x00\x00" + faults.reply(name, dialect).content

    return seeds


# The assembler -------------------------------------------------------------------------------------------

_KINDS = ("text", "thinking", "tool_call", "inline_data", "inline_thinking", "embedding", "nonsense")
_PIECES = ("", "a", "{", "}", '{"a": 1}', '{"a":', "1}", '"', "\\", "[", "]", " ", "null", '{"a": "', '"}', "\ud83c")
_SIGNED: tuple[Any, ...] = ({}, {}, {}, {"signature": "s"}, {"signature": "t"}, {"phase": "x", "signature": None})
_IDS = (None, "0", "1", "2", "c1")


def assembler(data: bytes) -> None:
    """Any raw values in any order: S1-S10 hold for what comes out, or there is one typed error after it."""
    source, stream, out = Source(data), EventStream("Client", now=lambda: 7), []
    try:
        while source:
            stream.push([_raw(source) for _ in range(1 + source.byte() % 3)], out)
        stream.close(out)
    except MMSPError:
        check(out, None)
    else:
        check(out, stream.message)
        assert all(item is not other for item in stream.items for event in out for other in event["content_items"])


def _raw(source: Source) -> dict[str, Any]:
    what = source.byte() % 16
    if what == 0:
        return {"type": "usage", "prompt_tokens": source.one_of((None, 1, 5)), "response_tokens": source.byte()}
    if what == 1:
        return {"type": "finish", "finish_reason": source.one_of(("stop", "length", "tool_call", "", None))}
    kind = source.one_of(_KINDS)
    raw: dict[str, Any] = {"type": f"{kind}.delta"}
    if what != 2:
        raw["fidelity"] = {"item_id": source.one_of(_IDS), **source.one_of(_SIGNED)}
    piece: Any = source.one_of(_PIECES) if what != 3 else source.one_of(ODD)
    if kind in ("text", "thinking"):
        raw[kind] = piece
    elif kind == "tool_call":
        raw |= {
            "name": source.one_of(("", "f", "g")),
            "arguments": piece,
            "tool_call_id": source.one_of(("", "a", "b")),
        }
    elif kind == "embedding":
        raw["embedding"] = [1.0] * (source.byte() % 3)
    else:
        raw |= {"data": source.some(4), "mime_type": source.one_of(("image/png", "audio/wav"))}
    return raw


def assembler_seeds() -> Iterable[bytes]:
    yield bytes([0, 5, 0, 1, 0, 1, 0, 0, 1, 2, 0, 1, 0])
    yield bytes([2, 5, 2, 1, 0, 2, 1, 1, 4, 2, 2, 0, 6, 2, 2, 4, 0, 1, 1, 1, 2])
    yield bytes(range(200))
