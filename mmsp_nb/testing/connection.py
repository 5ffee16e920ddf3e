"""The server's side of HTTP/1.1 on one connection: read a request, write a `Reply`, notice when the client leaves."""

from __future__ import annotations

import asyncio
import http
import json
import os
import socket
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from mmsp_nb.testing.gate import Gate
from mmsp_nb.testing.reply import Cut, Reply

__all__ = ["Connection", "RecordedRequest"]

AUTH_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
NO_BODY = (204, 304)

_NO_LINGER = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
"""Socket option: closing sends a reset."""


@dataclass(slots=True)
class RecordedRequest:
    """One request as it arrived. The repr shows no header, hence no key.

    headers: names in lower case; a repeated header's values are joined with ``", "``.
    body: the parsed JSON, or None when there was no body, or the bytes when they are no JSON.
    sent: bytes of the answer's body that were written so far.
    left: set when the client closed the connection before the answer was complete.
    done: set when the answer is over, whichever way.
    """

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Any = field(default=None, repr=False)
    sent: int = 0
    left: threading.Event = field(default_factory=threading.Event, repr=False)
    done: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def auth(self) -> list[str]:
        """Which authentication headers were there, by name."""
        return [name for name in AUTH_HEADERS if name in self.headers]


class ConnectionGone(Exception):
    """The client left, or the script tore the connection."""


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._received = bytearray()

    async def read_request(self) -> RecordedRequest | None:
        """The next request, or None when the client has closed the connection."""
        while b"\r\n\r\n" not in self._received:
            if not await self._receive():
                return None
        head, _, rest = bytes(self._received).partition(b"\r\n\r\n")
        self._received = bytearray(rest)
        start, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = start.split(" ", 2)
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
        content = await self._read_body(headers)
        url = urlsplit(target)
        return RecordedRequest(method, unquote(url.path), dict(parse_qsl(url.query)), headers, _parsed(content))

    async def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await self._take(int(headers.get("content-length", "0")))
        content = bytearray()
        while size := int((await self._take_line()).split(b";")[0], 16):
            content += await self._take(size)
            await self._take_line()
        while await self._take_line():
            pass
        return bytes(content)

    async def answer(self, reply: Reply, request: RecordedRequest) -> bool:
        """Write ``reply``. True when the connection may serve another request."""
        if reply.before is not None:
            await self._unless_client_leaves(reply.before)
        if reply.hang_up:
            self._end(Cut(reply.hang_up))
            return False
        chunked = reply.framing == "chunked"
        body = [b"".join(part for part in reply.body if isinstance(part, bytes))] if reply.framing == "length" else None
        if reply.framing != "raw":
            self._writer.write(self._head(reply, len(body[0]) if body else None))
            await self._writer.drain()
        has_body = request.method != "HEAD" and reply.status not in NO_BODY
        for part in (body if body is not None else reply.body) if has_body else ():
            if isinstance(part, Gate):
                await self._unless_client_leaves(part)
            elif isinstance(part, Cut):
                self._end(part)
                return False
            elif part:
                self._writer.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
                await self._writer.drain()
                request.sent += len(part)
                # a turn of the loop, so that an endless body notices a client that has left
                await asyncio.sleep(0)
                if self._reader.at_eof():
                    raise ConnectionGone
        if chunked and has_body:
            self._writer.write(b"0\r\n\r\n")
            await self._writer.drain()
        return reply.framing not in ("close", "raw") and not reply.drop_after

    def abort(self) -> None:
        """Drop the connection without sending what is still buffered."""
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except (OSError, asyncio.CancelledError):
            pass  # cancelled: the provider is being closed, and a cancelled task would be reported as a fault

    def _head(self, reply: Reply, length: int | None) -> bytes:
        try:
            phrase = http.HTTPStatus(reply.status).phrase
        except ValueError:
            phrase = "Status"
        headers = dict(reply.headers)
        if reply.framing == "chunked" and reply.status not in NO_BODY:
            headers["transfer-encoding"] = "chunked"
        elif reply.framing == "length":
            headers["content-length"] = str(length)
        headers["connection"] = "close" if reply.framing == "close" else "keep-alive"
        lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    async def _unless_client_leaves(self, gate: Gate) -> None:
        waiting = asyncio.ensure_future(gate.pass_through())
        leaving = asyncio.ensure_future(self._client_left())
        try:
            await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise ConnectionGone
        finally:
            waiting.cancel()
            leaving.cancel()

    async def _client_left(self) -> None:
        while await self._receive():  # what arrives early is the start of the next request
            pass

    def _end(self, cut: Cut) -> None:
        if cut.how == "reset":
            sock = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self._writer.transport.abort()
        else:
            self._writer.close()

    async def _receive(self) -> bool:
        data = await self._reader.read(65536)
        self._received += data
        return bool(data)

    async def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            if not await self._receive():
                raise ConnectionGone
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    async def _take_line(self) -> bytes:
        while b"\r\n" not in self._received:
            if not await self._receive():
                raise ConnectionGone
        line, _, rest = bytes(self._received).partition(b"\r\n")
        self._received = bytearray(rest)
        return line


def _parsed(content: bytes) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return content
