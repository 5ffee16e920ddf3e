"""A successful answer being read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

import httpx

from mmsp_nb.protocol.errors import (
    ConnectionCutError,
    IncompleteStreamError,
    MMSPError,
    ProviderStreamError,
    ResponseFormatError,
    ResponseTooLargeError,
    TransportError,
)
from mmsp_nb.transport.aws import EventStreamParser
from mmsp_nb.transport.failures import Subject, allow_more, parse_json
from mmsp_nb.transport.interrupt import Interrupt
from mmsp_nb.transport.sse import ServerEvent, SSEParser, is_done
from mmsp_nb.transport.wire import Timeouts

__all__ = ["Response"]

log = logging.getLogger("mmsp_nb.transport")

DRAIN_TIMEOUT = 0.1
"""Seconds given to the end of the answer after ``[DONE]`` and the like, so that its connection can be used again."""


class Response:
    """What `Transport.send` returns. Read it once, within ``async with``: by `batch`, `events` or `json`.

    Each of them raises ConnectionCutError, RequestTimeoutError, ResponseFormatError,
    ResponseTooLargeError or AbortError. ``headers`` has lower-case names.
    """

    def __init__(
        self,
        manager: AbstractAsyncContextManager[Any],
        *,
        status: int,
        headers: Mapping[str, str],
        body: AsyncIterator[bytes],
        first: bytes,
        framing: str,
        subject: Subject,
        interrupt: Interrupt,
        timeouts: Timeouts,
        limits: tuple[int, int],
    ) -> None:
        self.status = status
        self.headers = headers
        self._manager = manager
        self._body = body
        self._first: bytes | None = first
        self.received = len(first)
        """Bytes of the body so far, as they are after decompression."""
        self._subject = subject
        self._interrupt = interrupt
        self._timeouts = timeouts
        self._limit, self._most = limits
        self._framing = framing
        self._parser = EventStreamParser(self._limit) if framing == "aws" else SSEParser(self._limit)
        self._state = "start"  # then "running", "drain" after [DONE], "over"
        self._closing: asyncio.Task[None] | None = None
        interrupt.on_idle = self._shut

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def batch(self) -> list[ServerEvent] | None:
        """The next events, at least one: all that came together. None at the end of the stream.

        ``[DONE]`` ends a stream like the end of the connection does, and is not handed out. An answer
        that was asked for as one JSON document is the only event of its stream.
        """
        if self._state == "start" and self._framing == "json":
            self._state = "over"
            return [(None, await self._read_all())]
        if self._state == "start":
            await self._require_stream()
            self._state = "running"
        while self._state == "running":
            chunk = await self._read()
            try:
                events = self._parser.feed(chunk) if chunk is not None else self._finish()
            except TransportError as error:
                self._subject.claim(error)
                raise
            for index, (_, data) in enumerate(events):
                if is_done(data):
                    del events[index:]
                    self._state = "drain"
                    break
            if events:
                return events
        if self._state == "drain":
            self._state = "over"
            await self._drain()
        return None

    def end(self) -> None:
        """The stream has said by itself that it is complete: what still comes is left out, as after ``[DONE]``."""
        if self._state == "running":
            self._state = "drain"

    async def events(self) -> AsyncIterator[ServerEvent]:
        """The stream's events one by one."""
        while (batch := await self.batch()) is not None:
            for event in batch:
                yield event

    def purge(self, error: MMSPError) -> MMSPError:
        """``error``, which was made of this answer, without the secrets of the request; servers do quote them."""
        hide = self._subject.hide
        if (message := hide(error.message)) != error.message:
            error.message, error.args = message, (message,)
        error.__dict__.update((name, hide(value)) for name, value in vars(error).items())
        return error

    async def json(self) -> Any:
        """The whole answer as one JSON value."""
        data = await self._read_all()
        try:
            return parse_json(data)
        except ValueError as error:
            raise self._format_error(f"sent something that is not JSON ({error})") from None

    async def aclose(self) -> None:
        """Close the connection, unless the answer was read to its end: then it is kept for the next."""
        self._interrupt.close()
        await self._shut()

    async def _shut(self) -> None:
        # A task of its own, so that a cancelled caller still leaves a closed connection behind.
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._manager.__aexit__(None, None, None)
        except Exception as error:
            log.debug("closing the connection to %s: %s", self._subject.host, error)

    async def _read(self) -> bytes | None:
        """The next piece of the body, or None at its end."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        try:
            with self._interrupt:
                chunk = await anext(self._body)
        except StopAsyncIteration:
            return None
        except (httpx.HTTPError, OSError) as error:
            failure = self._subject.connection_error(error, self._timeouts, received=self.received)
        else:
            self.received += len(chunk)
            if self.received <= self._most:
                return chunk
            failure = self._too_large(self._most, "max_answer")
        raise failure

    async def _read_all(self) -> bytes:
        pieces: list[bytes] = []
        while (piece := await self._read()) is not None:
            pieces.append(piece)
            if self.received > self._limit:
                raise self._too_large(self._limit, "max_event")
        data = b"".join(pieces)
        if not data.strip():
            raise self._format_error("sent an empty answer")
        self._refuse_page(data)
        return data

    def _finish(self) -> list[ServerEvent]:
        self._state = "over"
        events = self._parser.finish()
        if self._parser.truncated and events and not is_done(events[-1][1]):
            # The last line has no end. Whole JSON means a careless server, anything else a cut connection.
            try:
                parse_json(events[-1][1])
            except ValueError:
                raise ConnectionCutError(
                    f"the answer of {self._subject.host} ended in the middle of an event. Ask again",
                    client=self._subject.client,
                    url=self._subject.url,
                ) from None
        return events

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(DRAIN_TIMEOUT):
                while await self._read() is not None:
                    pass
        except (TimeoutError, TransportError):  # the answer was complete all the same
            pass

    async def _require_stream(self) -> None:
        """Refuse what some servers send instead of a stream, with what it says."""
        first = (self._first or b"").lstrip(b"\xef\xbb\xbf \t\r\n")
        if not self._first:
            raise IncompleteStreamError(
                f"{self._subject.host} answered with status {self.status}, but sent an empty answer. Perhaps the "
                "prompt is longer than the server's context, or base_url is wrong",
                client=self._subject.client,
                missing=("usage_metadata", "finish_reason"),
            )
        self._refuse_page(first)
        if first.startswith((b"{", b"[")):
            code, message = self._subject.details(None, await self.json())
            if message and not message.startswith("unknown error"):  # else it is no error document
                raise ProviderStreamError(
                    f"{self._subject.host} reported an error: {message}. Ask again, or check what it names",
                    client=self._subject.client,
                    code=code,
                )
            raise self._format_error("sent one JSON document instead of a stream. Does this address stream?")

    def _refuse_page(self, data: bytes) -> None:
        if data.lstrip()[:1] == b"<":
            raise self._format_error("sent a web page. Is base_url right, and the network free of a login page?")

    def _too_large(self, limit: int, name: str) -> ResponseTooLargeError:
        return ResponseTooLargeError(
            f"the answer of {self._subject.host} is larger than the limit of {limit} bytes. {allow_more(name)}",
            client=self._subject.client,
            url=self._subject.url,
            limit=limit,
        )

    def _format_error(self, what: str) -> ResponseFormatError:
        return ResponseFormatError(
            f"{self._subject.host} answered with status {self.status}, but {what}",
            client=self._subject.client,
            url=self._subject.url,
            status=self.status,
        )
