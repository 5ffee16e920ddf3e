"""Faults below any dialect: answers that are no proper HTTP, no proper encoding, or nothing that a model says.

`faults` has them by name, beside the faults of the dialects.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable

from mmsp_nb.testing import streams
from mmsp_nb.testing.gate import Gate
from mmsp_nb.testing.parts import text
from mmsp_nb.testing.reply import EVENT_STREAM, Reply
from mmsp_nb.testing.sse import Frame, encode

__all__ = ["MALFORMED"]

_HEAD = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n"
_NOISE = bytes(range(128, 256)) * 8


def _begun(dialect: str) -> list[bytes]:
    """The frames of an answer that has said something and goes on."""
    chunks = encode(streams.DIALECTS[dialect].frames([text("Ebb ", "and flow, ")]))
    return chunks[: next(n for n, chunk in enumerate(chunks) if b"and flow" in chunk) + 1]


def _whole(dialect: str) -> bytes:
    return streams.reply("text", dialect).content


def _stream(*chunks: bytes, **headers: str) -> Reply:
    given = {"content-type": EVENT_STREAM, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Reply(list(chunks), headers=given)


def _short_body(dialect: str) -> Reply:
    sent = b"".join(_begun(dialect))
    return Reply.raw(_HEAD + b"content-length: %d\r\n\r\n" % (len(sent) + 100), sent)


def _broken_chunks(dialect: str) -> Reply:
    sent = b"".join(_begun(dialect))
    return Reply.raw(_HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\nno size\r\n" % (len(sent), sent))


def _huge_headers(dialect: str) -> Reply:
    return Reply.raw(_HEAD + b"x-padding: " + b"x" * 300_000 + b"\r\n\r\n")


def _bad_utf8(dialect: str) -> Reply:
    return _stream(_whole(dialect).replace("—".encode(), b"\xff\xe2\x80"))


def _duplicates(dialect: str) -> Reply:
    chunks = encode(streams.frames("tools", dialect))
    return _stream(*[chunk for chunk in chunks for _ in range(2)])


def _odd_values(dialect: str) -> Reply:
    return _stream(*_begun(dialect), *encode([Frame("[[null]]", "message")]))


def _deep(dialect: str) -> Reply:
    return _stream(*_begun(dialect), b"data: " + b'{"a":' * 100_000 + b"\n\n")


def _only_comments(dialect: str) -> Reply:
    return _stream(*[b": keep-alive\n\n"] * 5)


def _redirect(dialect: str) -> Reply:
    return Reply([b""], 307, {"location": "http://127.0.0.1:9/elsewhere"}, "length")


MALFORMED: tuple[tuple[str, str, Callable[[str], Reply]], ...] = (
    ("redirect", "307 to another address", _redirect),
    ("bad-gateway", "502 with a web page", lambda _: Reply.data(b"<html><title>Bad Gateway</title>", "text/html", 502)),
    ("plain-text", "a sentence with status 200", lambda _: Reply.data(b"The service is starting", "text/plain")),
    ("noise", "bytes without a meaning, with status 200", lambda _: _stream(_NOISE)),
    ("only-comments", "keep-alive comments, then the end", _only_comments),
    ("no-http", "bytes that are no HTTP", lambda _: Reply.raw(_NOISE)),
    ("huge-headers", "300 kB of headers", _huge_headers),
    ("cut-headers", "the connection is closed within the headers", lambda _: Reply.raw(_HEAD)),
    ("stalled-headers", "nothing more comes after half of the headers", lambda _: Reply.raw(_HEAD, Gate())),
    ("short-body", "the connection is closed before content-length bytes have come", _short_body),
    ("broken-chunks", "a chunk without a size in the middle of the body", _broken_chunks),
    ("gzip", "a compressed answer", lambda d: _stream(gzip.compress(_whole(d)), content_encoding="gzip")),
    ("gzip-untold", "a compressed answer whose headers do not say so", lambda d: _stream(gzip.compress(_whole(d)))),
    ("no-gzip", "an answer that is not as compressed as it says", lambda _: _stream(_NOISE, content_encoding="gzip")),
    ("wrong-type", "a stream that calls itself text/html", lambda d: _stream(_whole(d), content_type="text/html")),
    ("broken-text", "a text with bytes that are no UTF-8", _bad_utf8),
    ("duplicates", "every frame of an answer with tool calls comes twice", _duplicates),
    ("odd-values", "a frame in the middle whose JSON is a list", _odd_values),
    ("deep", "a frame in the middle whose JSON is nested 100,000 deep", _deep),
)  # fmt: skip
"""Name, summary, and the reply in a dialect."""
