"""Recordings of real exchanges: piece by piece, with their rhythm, without keys.

::

    client = AutoLLMClient("gpt-5.5", transport=Transport(handler=record("tides.jsonl")))
    client = AutoLLMClient("gpt-5.5", "any key", transport=Transport(handler=replay("tides.jsonl")))

A recording is a text file of JSON lines: for each exchange a ``request``, a ``response``, its pieces
(``t`` = seconds since the request) and an ``end``. Only headers known to be harmless are written, and
the request's key is masked wherever a server repeats it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from mmsp_nb.protocol.errors import TransportError
from mmsp_nb.transport.clients import httpx_handler
from mmsp_nb.transport.failures import REQUEST_ID_HEADERS
from mmsp_nb.transport.wire import Handler, Reply, Timeouts, WireRequest, public_url

__all__ = ["record", "replay"]

_KEPT_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry", *REQUEST_ID_HEADERS})
_SECRET_QUERY = frozenset({"key", "api_key", "api-key", "access_token", "token"})


def record(path: str | Path, handler: Handler | None = None) -> Handler:
    """A handler that answers by ``handler`` (default: the network) and appends every exchange to ``path``."""
    inner = handler or httpx_handler(Timeouts())
    file = Path(path)

    @asynccontextmanager
    async def handle(request: WireRequest) -> AsyncIterator[Reply]:
        secrets = [secret.encode() for secret in request.headers.secrets()]
        started = time.monotonic()
        lines: list[dict[str, Any]] = [{"request": _described(request)}]
        end = "left"

        async def pieces(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            nonlocal end
            try:
                async for piece in body:
                    lines.append({"t": round(time.monotonic() - started, 4), **_packed(_masked(piece, secrets))})
                    yield piece
                end = "end"
            except (httpx.HTTPError, OSError):
                end = "broken"
                raise

        async with inner(request) as (status, headers, body):
            kept = {name.lower(): value for name, value in headers.items() if name.lower() in _KEPT_HEADERS}
            lines.append({"response": {"status": status, "headers": kept}})
            try:
                yield status, headers, pieces(body)
            finally:
                lines.append({"end": end})
                # in one go, so that exchanges at the same time do not mix
                text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
                with file.open("a", encoding="utf-8") as out:
                    out.write(text)

    return handle


def replay(path: str | Path, *, speed: float | None = None) -> Handler:
    """A handler that answers from a recording, and fails on any request that is not in it.

    Requests are told apart by method, path and body (``created_at`` does not count). Those recorded
    several times are answered in the order of the recording; the last answer stays.

    Args:
        speed: 1.0 keeps the recorded rhythm, 2.0 is twice as fast; None does not wait at all.

    Raises:
        TransportError: at a request, when there is no recording of it.
        ValueError, OSError: at once, when ``path`` is no recording.
    """
    exchanges: dict[str, deque[_Exchange]] = defaultdict(deque)
    for exchange in _read(Path(path)):
        exchanges[_identity(exchange.request)].append(exchange)

    @asynccontextmanager
    async def handle(request: WireRequest) -> AsyncIterator[Reply]:
        described = _described(request)
        found = exchanges.get(_identity(described))
        if not found:
            raise TransportError(
                f"{path} holds no recording of {request.method} {described['url']} with this body; record it anew"
            )
        exchange = found.popleft() if len(found) > 1 else found[0]
        yield exchange.status, exchange.headers, exchange.play(speed)

    return handle


@dataclass
class _Exchange:
    request: dict[str, Any]
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    end: str = "left"

    async def play(self, speed: float | None) -> AsyncIterator[bytes]:
        started = time.monotonic()
        for moment, piece in self.pieces:
            if speed:
                await asyncio.sleep(max(0.0, started + moment / speed - time.monotonic()))
            yield piece
        if self.end != "end":
            raise httpx.ReadError("the recording ends here" if self.end == "left" else "the connection broke here")


def _read(path: Path) -> Iterator[_Exchange]:
    exchange: _Exchange | None = None
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                if "request" in entry:
                    exchange = _Exchange(entry["request"])
                    continue
                assert exchange is not None
                if "response" in entry:
                    exchange.status, exchange.headers = entry["response"]["status"], entry["response"]["headers"]
                elif "end" in entry:
                    exchange.end = entry["end"]
                    yield exchange
                else:
                    exchange.pieces.append((float(entry["t"]), _unpacked(entry)))
            except (ValueError, KeyError, TypeError, AssertionError):
                raise ValueError(f"{path}, line {number}: this is no recording") from None


def _described(request: WireRequest) -> dict[str, Any]:
    url = urlsplit(request.url)
    query = sorted((key, value) for key, value in parse_qsl(url.query) if key.lower() not in _SECRET_QUERY)
    try:
        body = json.loads(request.content) if request.content else None
    except ValueError:
        body = _packed(request.content)
    return {"method": request.method, "url": public_url(request.url), "query": query, "body": body}


def _identity(described: dict[str, Any]) -> str:
    path = urlsplit(described["url"]).path
    return json.dumps(
        [described["method"], path, described["query"], _timeless(described["body"])], sort_keys=True, default=list
    )


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(inner) for key, inner in value.items() if key != "created_at"}
    return [_timeless(inner) for inner in value] if isinstance(value, list) else value


def _masked(piece: bytes, secrets: list[bytes]) -> bytes:
    for secret in secrets:
        piece = piece.replace(secret, b"***")
    return piece


def _packed(piece: bytes) -> dict[str, str]:
    try:
        return {"text": piece.decode("utf-8")}
    except UnicodeDecodeError:  # a character is cut, or it is no text
        return {"base64": base64.b64encode(piece).decode("ascii")}


def _unpacked(entry: dict[str, str]) -> bytes:
    return entry["text"].encode() if "text" in entry else base64.b64decode(entry["base64"])
