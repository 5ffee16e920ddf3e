import asyncio
import base64
import re

import pytest

from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import AbortError, InvalidMessageError
from mmsp_nb.testing import Gate, Reply
from mmsp_nb.transport.images import ImageFetcher

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 10


def data_url(data, kind):
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


async def refusal(fetcher, url, **options):
    with pytest.raises(InvalidMessageError) as caught:
        await fetcher.data_urls([url], client="C", **options)
    assert (caught.value.client, caught.value.item_type) == ("C", "image_url")
    return str(caught.value)


@pytest.mark.parametrize(
    ("path", "content_type", "data", "kind"),
    [
        ("/a.png", "image/webp; charset=x", PNG, "image/webp"),
        ("/a.gif?x=1", "application/octet-stream", PNG, "image/gif"),
        ("/a.JPG", "", PNG, "image/jpeg"),
        ("/a", "application/octet-stream", PNG, "image/png"),
        ("/a", "", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("/a", "", b"GIF89a..", "image/gif"),
        ("/a", "", b"RIFF\0\0\0\0WEBP", "image/webp"),
        ("/a", "", b"\0\0\0\x1cftypavif", "image/avif"),
    ],
)
async def test_the_kind_is_the_servers_word_then_the_extension_then_the_first_bytes(
    provider, path, content_type, data, kind
):
    provider.add(Reply.data(data, content_type))
    url = provider.url(path)
    assert await ImageFetcher().data_urls([url], client="C") == {url: data_url(data, kind)}
    assert not provider.last.auth


async def test_images_are_fetched_at_the_same_time_and_once(provider):
    gate = Gate()
    provider.when("/a.png", Reply([PNG], before=gate))
    provider.when("/b.png", Reply([PNG], before=gate))
    a, b = provider.url("/a.png"), provider.url("/b.png")
    fetcher = ImageFetcher()
    task = asyncio.ensure_future(fetcher.data_urls([a, b, a], client="C"))
    await asyncio.to_thread(provider.wait_for_requests, 2)
    gate.open()
    assert list(await task) == [a, b]
    assert list(await fetcher.data_urls([b, a], client="C")) == [b, a]
    assert len(provider.requests) == 2
    fetcher.clear()
    await fetcher.data_urls([a], client="C")
    assert len(provider.requests) == 3


async def test_the_cache_is_bounded_and_forgets_what_was_unused_longest(provider):
    for name in "abc":
        provider.when(f"/{name}.png", Reply.data(PNG, "image/png"))
    a, b, c = (provider.url(f"/{name}.png") for name in "abc")
    fetcher = ImageFetcher(cache=2 * len(data_url(PNG, "image/png")))
    for url in (a, b, a, c):
        await fetcher.data_urls([url], client="C")
    assert len(provider.requests) == 3
    await fetcher.data_urls([a, c], client="C")
    assert len(provider.requests) == 3
    await fetcher.data_urls([b], client="C")
    assert len(provider.requests) == 4


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply.data(b"", "text/plain", 404), "status 404"),
        (Reply(status=302, headers={"location": "/b.png?token=x"}), r"moved to http://127.0.0.1:\d+/b.png \("),
        (Reply.data(b"<html>", "text/html"), "web page"),
        (Reply.data(b"hello", "text/plain"), r"no image \(content type text/plain\)"),
        (Reply.data(b"", "image/png"), "empty"),
        (Reply(headers={"content-type": "image/png"}).endless(b"x" * 4096), "larger than 19 KiB"),
        (Reply([PNG], headers={"content-type": "image/png"}).cut(10), "cannot be had"),
        (Reply.no_answer(), "cannot be had"),
    ],
)
async def test_an_image_that_cannot_be_had(provider, reply, reason):
    provider.add(reply)
    message = await refusal(ImageFetcher(limit=20_000), provider.url("/a?key=secret"))
    assert re.search(reason, message)
    assert provider.url("/a") in message
    assert "secret" not in message
    await asyncio.to_thread(provider.wait_until_idle)


async def test_a_server_that_is_not_there(provider):
    provider.close()
    assert "cannot be had" in await refusal(ImageFetcher(), provider.url("/a.png"))


async def test_an_image_that_takes_too_long(provider):
    provider.add(Reply([b"x", Gate()]))
    assert "more than 0.05 s" in await refusal(ImageFetcher(timeout=0.05), provider.url("/a.png"))
    await asyncio.to_thread(provider.wait_until_idle)


async def test_one_failure_ends_the_other_downloads(provider):
    gate, failing = Gate(), Gate()
    provider.when("/slow.png", Reply([b"x", gate]))
    provider.when("/bad.png", Reply(status=404, before=failing))
    urls = [provider.url("/slow.png"), provider.url("/bad.png")]
    task = asyncio.ensure_future(ImageFetcher().data_urls(urls, client="C"))
    await gate.wait_arrived()
    failing.open()
    with pytest.raises(InvalidMessageError, match="404"):
        await task
    await asyncio.to_thread(provider.wait_until_idle)


async def test_an_abort_ends_the_downloads(provider):
    gate, signal = Gate(), AbortSignal()
    provider.add(Reply([b"x", gate]))
    task = asyncio.ensure_future(ImageFetcher().data_urls([provider.url("/a")], client="C", signal=signal))
    await gate.wait_arrived()
    signal.abort("no more")
    with pytest.raises(AbortError) as caught:
        await task
    assert caught.value.reason == "no more"
    await asyncio.to_thread(provider.wait_until_idle)
