"""What Amazon does its own way: signed requests (Signature Version 4), and event-stream messages."""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
import zlib
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from mmsp_nb.protocol.errors import ConnectionCutError, ResponseFormatError, ResponseTooLargeError
from mmsp_nb.transport.sse import MAX_EVENT, ServerEvent
from mmsp_nb.transport.wire import WireRequest

__all__ = ["EventStreamParser", "sign"]

_ALGORITHM = "AWS4-HMAC-SHA256"
_PRELUDE = struct.Struct(">III")  # length of the message, length of its headers, checksum of both
_SMALLEST = 16
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Header value type -> its size in bytes. Types 6 (bytes) and 7 (text) begin with their size."""


def sign(request: WireRequest, key: str, *, region: str, service: str = "bedrock", now: datetime | None = None) -> None:
    """Sign ``request`` in place.

    Args:
        key: ``"<access key id>,<secret access key>"``.
        now: the time of the signature, which is good for some minutes; default is the clock.
    """
    identity, secret = (part.strip() for part in key.split(","))
    moment = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    url = urlsplit(request.url)
    headers = {"host": url.netloc, "x-amz-date": moment}
    signed = ";".join(headers)
    canonical = "\n".join(
        (
            request.method,
            quote(url.path or "/", safe="/~"),  # a second time: the path is encoded already
            "&".join(sorted(url.query.split("&"))),
            *(f"{name}:{value}" for name, value in headers.items()),
            "",
            signed,
            hashlib.sha256(request.content).hexdigest(),
        )
    )
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((_ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signing_key = f"AWS4{secret}".encode()
    for part in (moment[:8], region, service, "aws4_request"):
        signing_key = hmac.digest(signing_key, part.encode(), "sha256")
    signature = hmac.digest(signing_key, text.encode(), "sha256").hex()
    for name in [name for name in request.headers if name.lower() in ("authorization", "x-amz-date")]:
        del request.headers[name]
    request.headers["X-Amz-Date"] = moment
    request.headers["Authorization"] = (
        f"{_ALGORITHM} Credential={identity}/{scope}, SignedHeaders={signed}, Signature={signature}"
    )


class EventStreamParser:
    """Incremental parser of AWS event-stream messages, with the interface of `SSEParser`.

    An event's name is its ``:event-type`` or ``:exception-type``; its data is the payload. Checksums
    are verified (ResponseFormatError); ``limit`` bounds one message, in bytes (ResponseTooLargeError).
    """

    truncated = False

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self.limit = limit
        self._held = bytearray()

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that ``chunk`` completes, in order."""
        held = self._held
        held += chunk
        events: list[ServerEvent] = []
        start = 0
        while len(held) - start >= _PRELUDE.size:
            total, of_headers, checksum = _PRELUDE.unpack_from(held, start)
            if zlib.crc32(held[start : start + 8]) != checksum or total < _SMALLEST or of_headers > total - _SMALLEST:
                raise ResponseFormatError("the stream holds no AWS event-stream message where one must begin")
            if total > self.limit:
                raise ResponseTooLargeError(
                    f"a message of the stream is larger than the limit of {self.limit} bytes. Allow more with "
                    "Transport(max_event=...), if this is no fault of the server",
                    limit=self.limit,
                )
            if len(held) - start < total:
                break
            message = bytes(held[start : start + total])
            start += total
            if zlib.crc32(message[:-4]) != int.from_bytes(message[-4:], "big"):
                raise ResponseFormatError("a message of the stream is damaged: its checksum is wrong")
            headers = _headers(message[_PRELUDE.size : _PRELUDE.size + of_headers])
            if (event := _event(headers, message[_PRELUDE.size + of_headers : -4])) is not None:
                events.append(event)
        del held[:start]
        return events

    def finish(self) -> list[ServerEvent]:
        """The stream is over. ConnectionCutError if it ended inside a message."""
        if self._held:
            raise ConnectionCutError("the stream ended in the middle of a message")
        return []


def _event(headers: dict[str, str], payload: bytes) -> ServerEvent | None:
    if headers.get(":message-type") == "error":
        code = headers.get(":error-code") or "Unknown"
        name = code if code.lower().endswith("exception") else f"{code}Exception"
        return name, json.dumps({"message": headers.get(":error-message", "")}).encode()
    name = headers.get(":exception-type") or headers.get(":event-type") or ""
    return (name or None, payload) if payload else None


def _headers(data: bytes) -> dict[str, str]:
    """The headers with a text value; others are passed over."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            name = data[at + 1 : at + 1 + data[at]].decode()
            at += 1 + data[at]
            kind = data[at]
            at += 1
            if kind in (6, 7):
                size = int.from_bytes(data[at : at + 2], "big")
                at += 2
            else:
                size = _SIZES[kind]
            if kind == 7:
                found[name] = data[at : at + size].decode()
            at += size
    except (IndexError, KeyError, UnicodeDecodeError):
        raise ResponseFormatError("a message of the stream has headers that cannot be read") from None
    return found
