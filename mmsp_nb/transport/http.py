"""One request out, one answer in: retries, time limits, abort and typed failures.

Retries happen only until the first byte of a successful answer's body has come; afterwards nothing
is ever repeated. Whoever leaves ``async with await transport.send(...)`` has closed the connection.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import httpx

from mmsp_nb.protocol.errors import ConnectionFailedError, TransportError
from mmsp_nb.transport.cassette import Cassette, current, through
from mmsp_nb.transport.clients import httpx_handler
from mmsp_nb.transport.failures import ErrorParser, Subject, error_details, is_disconnect, is_permanent
from mmsp_nb.transport.interrupt import Interrupt
from mmsp_nb.transport.response import Response
from mmsp_nb.transport.retry import RetryPolicy, retry_after
from mmsp_nb.transport.sse import MAX_EVENT
from mmsp_nb.transport.wire import Handler, Timeouts, WireRequest

if TYPE_CHECKING:
    from mmsp_nb.protocol.abort import AbortSignal

__all__ = ["Response", "Timeouts", "Transport", "WireRequest"]

log = logging.getLogger("mmsp_nb.transport")

MAX_ITEM = 64 * 1024 * 1024
MAX_ANSWER = 256 * 1024 * 1024
MAX_ERROR_BODY = 1024 * 1024
ERROR_BODY_TIMEOUT = 10.0

_ACCEPT = {"sse": "text/event-stream", "json": "application/json", "aws": "application/vnd.amazon.eventstream"}
_BAD_HEADER = re.compile(r"[^\t\x20-\x7e]")


class Transport:
    """Sends requests. Holds no connections: those belong to the running event loop.

    Args:
        handler: who gets the bytes, for instance a `Cassette`; the default is HTTP/1.1 by httpx, or the cassette
            that is in use for the whole process.
        timeout: the longest silence in seconds (default 600), or all limits as `Timeouts`.
        retries: further tries after a failure (default 2), or a whole `RetryPolicy`.
        max_event: limit of one event, or of a whole JSON answer, in bytes (default 64 MB).
        max_item: limit of one text, or whatever else an answer has in pieces, in characters or bytes (default 64 MB).
        max_answer: limit of the answer to one request, in bytes on the wire (default 256 MB).
        sleep, clock, jitter: replaceable in tests; ``clock`` gives Unix seconds.
    """

    def __init__(
        self,
        *,
        handler: Handler | None = None,
        timeout: float | Timeouts | None = None,
        retries: int | RetryPolicy = 2,
        max_event: int = MAX_EVENT,
        max_item: int = MAX_ITEM,
        max_answer: int = MAX_ANSWER,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.timeouts = (
            timeout if isinstance(timeout, Timeouts) else Timeouts() if timeout is None else Timeouts(read=timeout)
        )
        self.policy = retries if isinstance(retries, RetryPolicy) else RetryPolicy(retries)
        self.max_event, self.max_item, self.max_answer = max_event, max_item, max_answer
        self.custom_handler = handler
        self._handler = handler or through(httpx_handler(self.timeouts))
        self._sleep, self._clock, self._jitter = sleep, clock, jitter

    @property
    def cassette(self) -> Cassette | None:
        """The recording that answers or records what is sent now, if there is one."""
        handler = self.custom_handler
        return current() if handler is None else handler if isinstance(handler, Cassette) else None

    async def send(
        self,
        request: WireRequest,
        *,
        client: str,
        signal: AbortSignal | None = None,
        parse_error: ErrorParser = error_details,
        key_env: str | None = None,
    ) -> Response:
        """Send ``request``; the answer, whose first bytes have come. Use it in ``async with``.

        Args:
            client: the adapter's class name, for errors.
            signal: ends the exchange when it is aborted, at any moment, with AbortError.
            parse_error: reads code and message out of the provider's error document.
            key_env: the environment variable a user keeps the key in, for the message of a 401.

        Raises:
            ConnectionFailedError, RequestTimeoutError, HTTPStatusError, AuthenticationError,
            RateLimitError, AbortError.
        """
        _prepare(request, client)
        subject = Subject(request, client, parse_error, key_env)
        interrupt = Interrupt(signal)
        try:
            return await self._connect(request, subject, interrupt)
        except BaseException as error:
            interrupt.close()
            subject.claim(error)
            raise

    async def _connect(self, request: WireRequest, subject: Subject, interrupt: Interrupt) -> Response:
        tries = counted = 0
        spare = 1  # a connection that broke before any byte is replaced once, at once
        error: TransportError
        while True:
            tries += 1
            wish = None
            try:
                answer = await self._try(request, subject, interrupt)
            except (httpx.HTTPError, OSError) as caught:
                error = subject.connection_error(caught, self.timeouts, received=0, tries=tries)
                if spare and is_disconnect(caught):
                    spare = 0
                    log.info("%s; trying again at once", error)
                    continue
                again = isinstance(error, ConnectionFailedError) and not is_permanent(caught, loopback=subject.loopback)
            except (httpx.InvalidURL, UnicodeError) as caught:  # a host name that cannot be one
                raise ConnectionFailedError(
                    f"the address is no URL: {caught}. Correct base_url", client=subject.client
                ) from None
            else:
                if isinstance(answer, Response):
                    return answer
                status, headers, body = answer
                wish = retry_after(headers, self._clock())
                error = subject.status_error(status, headers, body, wish, tries)
                del answer, body  # a refusal may repeat the key, and tools show the local variables of a traceback
                again = self.policy.retryable(status, headers, wish)
            if not again or counted >= self.policy.retries:
                raise error
            delay = self.policy.delay(counted, wish, self._jitter())
            counted += 1
            log.info("%s; trying again in %.1f s", error, delay)
            cassette = self.cassette
            if cassette is not None and cassette.replays and not cassette.speed:
                continue  # what was waited for then is in the recording
            with interrupt:
                await self._sleep(delay)

    async def _try(
        self, request: WireRequest, subject: Subject, interrupt: Interrupt
    ) -> Response | tuple[int, Mapping[str, str], bytes]:
        """One attempt: an answer whose body has begun (or is empty), or a refusal."""
        manager = self._handler(request)
        entered = False
        try:
            with interrupt:
                status, given, body = await manager.__aenter__()
                entered = True
                headers = {name.lower(): value for name, value in given.items()}
                if 200 <= status < 300:
                    return Response(
                        manager,
                        status=status,
                        headers=headers,
                        body=body,
                        first=await _first_piece(body),
                        framing=request.framing,
                        subject=subject,
                        interrupt=interrupt,
                        timeouts=self.timeouts,
                        limits=(self.max_event, self.max_answer),
                    )
                refusal = status, headers, await _read_refusal(body)
        except BaseException:
            if entered:
                await manager.__aexit__(None, None, None)
            raise
        await manager.__aexit__(None, None, None)
        return refusal


async def _first_piece(body: AsyncIterator[bytes]) -> bytes:
    async for piece in body:
        if piece:
            return piece
    return b""


async def _read_refusal(body: AsyncIterator[bytes]) -> bytes:
    """The body of a refusal, as much as is bearable: it only serves the message."""
    data = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_TIMEOUT):
            async for piece in body:
                data += piece
                if len(data) >= MAX_ERROR_BODY:
                    break
    except (httpx.HTTPError, OSError):  # the status alone says enough
        pass
    return bytes(data[:MAX_ERROR_BODY])


def _prepare(request: WireRequest, client: str) -> None:
    """Fill in the headers every request has, and refuse those that cannot travel."""
    present = {name.lower() for name in request.headers}
    for name, value in (
        ("Accept", _ACCEPT[request.framing]),
        ("Content-Type", "application/json" if request.content else ""),
        # A compressed stream is held back by some proxies until a block is full.
        ("Accept-Encoding", "identity" if request.framing == "sse" else ""),
    ):
        if value and name.lower() not in present:
            request.headers[name] = value
    for name, value in request.headers.items():
        if _BAD_HEADER.search(value) or _BAD_HEADER.search(name) or not name:
            raise TransportError(
                f"the request header {name!r} holds a character that HTTP does not allow (a line break, or one "
                "outside ASCII). If it carries the key, copy the key again",
                client=client,
            )
