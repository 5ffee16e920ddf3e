"""Remote images as data URLs, for protocols that take no image by its address."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import httpx

from mmsp_nb.protocol.errors import CassetteMissError, InvalidMessageError, TransportError, preview
from mmsp_nb.transport.cassette import through
from mmsp_nb.transport.clients import httpx_handler
from mmsp_nb.transport.interrupt import Interrupt
from mmsp_nb.transport.wire import Handler, Headers, Timeouts, WireRequest, public_url

if TYPE_CHECKING:
    from mmsp_nb.protocol.abort import AbortSignal

__all__ = ["ImageFetcher"]

MAX_IMAGE = 20 * 1024 * 1024
MAX_CACHE = 64 * 1024 * 1024
TOTAL_TIMEOUT = 10.0
CONCURRENCY = 8

_TIMEOUTS = Timeouts(connect=5.0, read=TOTAL_TIMEOUT, write=5.0, loopback_connect=5.0)
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)


class ImageFetcher:
    """Fetches images by a plain GET, without any key, and remembers them.

    Args:
        handler: who gets the bytes; the default is HTTP/1.1 by httpx.
        limit: the largest image, in bytes (default 20 MB).
        timeout: seconds for one image as a whole (default 10).
        cache: how many bytes of images are remembered; the longest unused go first (default 64 MB).
    """

    def __init__(
        self,
        *,
        handler: Handler | None = None,
        limit: int = MAX_IMAGE,
        timeout: float = TOTAL_TIMEOUT,
        cache: int = MAX_CACHE,
    ) -> None:
        self._handler = handler or through(httpx_handler(_TIMEOUTS))
        self._limit = limit
        self._timeout = timeout
        self._cache_size = cache
        self._cache: OrderedDict[str, str] = OrderedDict()

    async def data_urls(self, urls: Iterable[str], *, client: str, signal: AbortSignal | None = None) -> dict[str, str]:
        """A data URL for each of ``urls``, fetched at the same time and each only once.

        Raises InvalidMessageError (``item_type="image_url"``) for an image that cannot be had, and
        AbortError when ``signal`` is aborted meanwhile.
        """
        found = {url: self._cached(url) for url in urls}
        missing = [url for url, data in found.items() if data is None]
        if missing:
            interrupt = Interrupt(signal)
            gate = asyncio.Semaphore(CONCURRENCY)
            tasks = [asyncio.ensure_future(self._fetch(url, client, gate)) for url in missing]
            try:
                with interrupt:
                    fetched = await asyncio.gather(*tasks)
            finally:
                interrupt.close()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            for url, data in zip(missing, fetched, strict=True):
                found[url] = data
                self._remember(url, data)
        return {url: data for url, data in found.items() if data is not None}

    def has(self, urls: Iterable[str]) -> bool:
        """Whether all of ``urls`` are remembered."""
        return all(url in self._cache for url in urls)

    def clear(self) -> None:
        """Forget all images."""
        self._cache.clear()

    def _cached(self, url: str) -> str | None:
        data = self._cache.get(url)
        if data is not None:
            self._cache.move_to_end(url)
        return data

    def _remember(self, url: str, data: str) -> None:
        self._cache[url] = data
        while sum(map(len, self._cache.values())) > self._cache_size:
            self._cache.popitem(last=False)

    async def _fetch(self, url: str, client: str, gate: asyncio.Semaphore) -> str:
        try:
            async with gate, asyncio.timeout(self._timeout):
                return await self._get(url)
        except CassetteMissError as error:
            error.client = client  # type: ignore[attr-defined]
            raise
        except TimeoutError:
            reason = f"it took more than {self._timeout:g} s"
        except _NoImageError as error:
            reason = str(error)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TransportError) as error:
            reason = str(error) or type(error).__name__
        raise InvalidMessageError(
            f"the image {preview(public_url(url))} cannot be had: {reason}", client=client, item_type="image_url"
        )

    async def _get(self, url: str) -> str:
        request = WireRequest("GET", url, Headers({"Accept": "image/*"}), framing="json")
        async with self._handler(request) as (status, given, body):
            headers = {name.lower(): value for name, value in given.items()}
            if 300 <= status < 400:
                target = public_url(urljoin(url, headers.get("location", "")))
                raise _NoImageError(f"it was moved to {target} (redirects are not followed)")
            if not 200 <= status < 300:
                raise _NoImageError(f"the server answered with status {status}")
            data = bytearray()
            async for piece in body:
                data += piece
                if len(data) > self._limit:
                    raise _NoImageError(f"it is larger than {self._limit // 1024} KiB")
        if not data:
            raise _NoImageError("it is empty")
        kind = _mime_type(url, headers, data)
        return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


class _NoImageError(Exception):
    pass


def _mime_type(url: str, headers: Mapping[str, str], data: bytes | bytearray) -> str:
    """What kind of image it is: by the server's word, the address, its first bytes, in this order."""
    said = headers.get("content-type", "").partition(";")[0].strip().lower()
    if said.startswith("image/"):
        return said
    if said == "text/html":
        raise _NoImageError("it is a web page")
    guess, _ = mimetypes.guess_type(urlsplit(url).path)
    if guess and guess.startswith("image/"):
        return guess
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:12] in (b"ftypavif", b"ftypheic"):
        return f"image/{data[8:12].decode('ascii')}"
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    raise _NoImageError(f"it is no image (content type {said or 'missing'})")
