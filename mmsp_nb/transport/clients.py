"""httpx clients: one of each kind for every event loop, for the loop's whole life.

An httpx client belongs to one loop, and making one costs thousands of times a request (its TLS
context), so clients are kept on the loop object itself. They die with it: `asyncio.run` closes them
while it shuts down asynchronous generators, and a loop that is merely dropped takes them along.
"""

from __future__ import annotations

import asyncio
import functools
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import httpx

from mmsp_nb._version import __version__
from mmsp_nb.protocol.errors import ConnectionFailedError, TransportError
from mmsp_nb.transport.wire import Handler, Reply, Timeouts, WireRequest, is_loopback, public_url

__all__ = ["close_clients", "http_client", "httpx_handler"]

_ATTRIBUTE = "_mmsp_nb_http_clients"
_KEEP_ALIVE = 60.0
"""Seconds that an idle connection is kept: the time somebody takes to read an answer."""


class _QuietURL(httpx.URL):
    """A URL whose text has no user and no query: httpx writes it into the log for each request."""

    def __str__(self) -> str:
        return public_url(super().__str__())


class _Clients:
    """The clients of one loop."""

    def __init__(self) -> None:
        self.by_kind: dict[str, httpx.AsyncClient] = {}
        # A suspended asynchronous generator is closed by loop.shutdown_asyncgens(): the one hook
        # by which a loop tells that it ends.
        self._keeper = self._keep()

    async def start(self) -> None:
        await anext(self._keeper)

    async def close(self) -> None:
        await self._keeper.aclose()

    async def _keep(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            while self.by_kind:
                _, client = self.by_kind.popitem()
                await client.aclose()


async def http_client(url: str) -> httpx.AsyncClient:
    """The running loop's client for ``url``.

    Loopback servers get a client without proxies and without kept connections (some of them close
    a connection after a stream although they announced to keep it); a plain loopback address also
    needs no TLS context.
    """
    kind = ("local-tls" if urlsplit(url).scheme == "https" else "local") if is_loopback(url) else "remote"
    loop = asyncio.get_running_loop()
    clients: _Clients | None = getattr(loop, _ATTRIBUTE, None)
    if clients is None:
        clients = _Clients()
        setattr(loop, _ATTRIBUTE, clients)
        await clients.start()
    client = clients.by_kind.get(kind)
    if client is None:
        client = clients.by_kind[kind] = _make_client(kind)
    return client


async def close_clients() -> None:
    """Close the running loop's clients and their connections. Later calls get new ones."""
    loop = asyncio.get_running_loop()
    clients: _Clients | None = getattr(loop, _ATTRIBUTE, None)
    if clients is not None:
        delattr(loop, _ATTRIBUTE)
        await clients.close()


def _make_client(kind: str) -> httpx.AsyncClient:
    """A client of this kind. ConnectionFailedError when the environment names an unusable proxy."""
    try:
        return _new_client(kind)
    except ImportError:
        raise ConnectionFailedError(
            "the proxy named by HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is a SOCKS proxy: pip install 'httpx[socks]'"
        ) from None
    except (ValueError, httpx.InvalidURL):
        raise ConnectionFailedError(
            "the proxy named by HTTPS_PROXY, HTTP_PROXY or ALL_PROXY cannot be used: its address must begin with "
            "http://, https:// or socks5://, and its port be a number"
        ) from None
    except OSError as error:
        name = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), None)
        if name is None:
            raise
        raise ConnectionFailedError(f"the certificates that {name} names cannot be read: {error.strerror}") from None


async def _hold_location(response: httpx.Response) -> None:
    """Keep the target of a redirect from httpx, which follows none here, but fails on one that is no URL."""
    if "location" in response.headers:
        response.extensions["mmsp_nb_location"] = response.headers.pop("location")


def _new_client(kind: str) -> httpx.AsyncClient:
    local = kind != "remote"
    return httpx.AsyncClient(
        verify=False if kind == "local" else _tls_context(),
        trust_env=not local,
        http2=False,
        follow_redirects=False,
        event_hooks={"response": [_hold_location]},
        limits=httpx.Limits(
            max_connections=None,
            max_keepalive_connections=0 if local else 20,
            keepalive_expiry=_KEEP_ALIVE,
        ),
        headers={"user-agent": f"mmsp-nb/{__version__}"},
        # The clients of a loop are shared by all keys: what a server sets for one must not reach another.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )


@functools.cache
def _tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def httpx_handler(timeouts: Timeouts) -> Handler:
    """The default handler: real HTTP/1.1 over the running loop's client. Raises httpx errors."""
    remote, local = (
        httpx.Timeout(connect=connect, read=timeouts.read, write=timeouts.write, pool=timeouts.connect)
        for connect in (timeouts.connect, timeouts.loopback_connect)
    )

    @asynccontextmanager
    async def handle(request: WireRequest) -> AsyncIterator[Reply]:
        loopback = is_loopback(request.url)
        if not loopback and os.environ.get("MMSP_REQUESTS", "").strip().lower() == "loopback":
            raise TransportError(
                f"a request to {urlsplit(request.url).hostname} was refused: with MMSP_REQUESTS=loopback, as in tests, "
                "nothing leaves this machine. Replay a recording, or allow it with --mmsp-allow-requests"
            )
        client = await http_client(request.url)
        headers = {**request.headers, "Connection": "close"} if loopback else request.headers
        opened: list[Any] = []

        async def trace(event: str, info: Mapping[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                opened.append(info["return_value"])

        sent = client.build_request(
            request.method,
            request.url,
            headers=headers,
            content=request.content or None,
            timeout=local if loopback else remote,
            extensions={"trace": trace},
        )
        sent.url = _QuietURL(sent.url)
        try:
            response = await client.send(sent, stream=True)
        except asyncio.CancelledError:
            # between the connection's being there and its first use nobody in httpcore closes it
            for connection in opened:
                await connection.aclose()
            raise
        if "mmsp_nb_location" in response.extensions:
            response.headers["location"] = response.extensions["mmsp_nb_location"]
        body = response.aiter_bytes()
        try:
            yield response.status_code, response.headers, body
        finally:
            await response.aclose()
            await body.aclose()  # type: ignore[attr-defined]

    return handle
