"""Talking to llama.cpp's own server: bytes handed through as they come, given up the moment the caller leaves."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPException, HTTPResponse
from typing import Any, cast

from .front import Gone, left, readable
from .wire.neutral import BadRequest, Delta, Finish, Usage

_FINISH: dict[str, Finish] = {"length": "length"}


class Upstream:
    """One llama.cpp server. ``address`` is host and port, ``key`` its key."""

    def __init__(self, address: tuple[str, int], key: str) -> None:
        self.address, self.key = address, key

    def relay(self, path: str, body: bytes, client: socket.socket) -> Iterator[bytes]:
        """The raw answer to a POST, status line and headers included, in the pieces in which it comes.

        When ``client`` closes its connection, ours is closed too, which makes the server stop generating; raises Gone.
        """
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self.address[0]}\r\nAuthorization: Bearer {self.key}\r\n"
            # after a stream the server closes the connection whatever it announced; so ask for that
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        with socket.create_connection(self.address, 10) as server:
            server.settimeout(None)
            server.sendall(head.encode() + body)
            watched = [server, client]
            while True:
                ready = readable(watched, None)
                if client in ready:
                    if left(client):
                        raise Gone
                    watched.remove(client)  # it sent something more: nothing that would end this answer
                if server in ready:
                    block = server.recv(65536)
                    if not block:
                        return
                    yield block

    def post(self, body: Mapping[str, Any], client: socket.socket) -> HTTPResponse:
        """Ask for a chat completion and return the parsed answer's head. Raises BadRequest for a refusal."""
        blocks = self.relay("/v1/chat/completions", json.dumps(body).encode(), client)
        response = HTTPResponse(cast("socket.socket", _Pipe(blocks)))
        try:
            response.begin()
        except (HTTPException, ConnectionError) as error:
            raise BadRequest(f"the local model broke off: {type(error).__name__}", 500) from error
        if response.status != 200:
            with closing(response):
                raise _refusal(response.status, response.read())
        return response

    def complete(self, body: Mapping[str, Any], client: socket.socket) -> tuple[str, Usage]:
        """A whole answer: its text and what it cost."""
        with closing(self.post(body, client)) as response:
            answer = json.loads(response.read())
        return answer["choices"][0]["message"].get("content") or "", _usage(answer.get("usage"))

    def stream(self, body: Mapping[str, Any], client: socket.socket) -> Iterator[Delta | tuple[Finish, Usage]]:
        """The fragments of an answer as they come, and last its end. Raises BadRequest for an error on the way."""
        options = {**body, "stream": True, "stream_options": {"include_usage": True}}
        finish: Finish = "stop"
        usage = Usage()
        with closing(self.post(options, client)) as response:
            for line in response:
                if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                    continue
                chunk = json.loads(line[6:])
                if "error" in chunk:
                    raise _refusal(500, line[6:])
                usage = _usage(chunk.get("usage")) if chunk.get("usage") else usage
                for choice in chunk.get("choices") or ():
                    finish = _FINISH.get(choice.get("finish_reason"), finish)
                    if text := choice["delta"].get("content"):
                        yield Delta("text", text)
        yield finish, usage


def _usage(value: Any) -> Usage:
    value = value or {}
    cached = (value.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(value.get("prompt_tokens") or 0, cached, value.get("completion_tokens") or 0)


def _refusal(status: int, body: bytes) -> BadRequest:
    try:
        error = json.loads(body)["error"]
        return BadRequest(
            str(error.get("message")), int(error.get("code") or status), str(error.get("type") or "") or None
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return BadRequest(f"the local model refused with status {status}", status)


class _Pipe(io.RawIOBase):
    """Blocks as the file that `HTTPResponse` wants to read, and as the socket it wants to get that file from."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._blocks, b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            getattr(self._blocks, "close", lambda: None)()
        super().close()
