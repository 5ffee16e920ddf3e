import gzip
import pickle
import zlib

import pytest
from exchange import post, read, tcp_server

from mmsp_nb.protocol.errors import (
    AuthenticationError,
    ConnectionCutError,
    ConnectionFailedError,
    HTTPStatusError,
    ProviderStreamError,
    RateLimitError,
    RequestTimeoutError,
    ResponseFormatError,
    ResponseTooLargeError,
    TransportError,
)
from mmsp_nb.testing import Gate, Reply
from mmsp_nb.transport.http import Timeouts, Transport
from mmsp_nb.transport.wire import Headers, WireRequest, is_loopback, public_url

KEY = "sk-secret-0123456789"


async def failure(transport, request, **options):
    with pytest.raises(TransportError) as caught:
        await read(transport, request, **options)
    return caught.value


# refusals


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, HTTPStatusError), (401, AuthenticationError), (403, AuthenticationError), (429, RateLimitError)],
)
async def test_a_refusal_carries_what_the_provider_said(provider, make_transport, status, kind):
    body = {"error": {"code": "bad_thing", "message": "Do it\nbetter", "type": "x"}}
    provider.add(Reply.json(body, status).with_status(status, x_request_id="req-1"))
    error = await failure(make_transport(retries=0), post(provider.url("/v1/x?key=abc")))
    assert type(error) is kind
    assert (error.status, error.code, error.request_id) == (status, "bad_thing", "req-1")
    assert (error.client, error.url) == ("TestClient", provider.url("/v1/x"))
    assert error.error == {"code": "bad_thing", "message": "Do it better", "type": "x"}
    assert "bad_thing: Do it better" in str(error)
    assert "\n" not in str(error)
    assert pickle.loads(pickle.dumps(error)).status == status


@pytest.mark.parametrize("name", ["x-request-id", "request-id", "x-goog-request-id", "x-amzn-requestid", "cf-ray"])
async def test_the_request_id_is_found_under_its_many_names(provider, transport, name):
    provider.add(Reply.json({}, 400, {name: "id-7"}))
    assert (await failure(transport, post(provider.url()))).request_id == "id-7"


async def test_the_callers_reader_of_error_documents_is_used(provider, transport):
    provider.add(Reply.json({"oops": 1}, 400))
    error = await failure(transport, post(provider.url()), parse_error=lambda s, p: ("c7", f"{s} and {p['oops']}"))
    assert (error.code, "400 and 1" in str(error)) == ("c7", True)


async def test_a_wrong_key_names_the_variable_that_holds_it(provider, transport):
    provider.add(Reply.json({}, 401))
    assert "Check the key in SOME_API_KEY (or api_key=)" in str(
        await failure(transport, post(provider.url()), key_env="SOME_API_KEY")
    )


async def test_a_key_that_the_server_quotes_is_hidden(provider, transport):
    provider.add(
        Reply.json({"error": {"message": f"bad key {KEY}!", "code": KEY, "seen": [{"k": f"Bearer {KEY}"}]}}, 401)
    )
    error = await failure(transport, post(provider.url()))
    assert "bad key ***!" in str(error)
    assert KEY not in f"{error!r} {error.error} {error.code} {vars(error)}"


async def test_a_key_in_a_plain_text_refusal_is_hidden(provider, transport):
    provider.add(Reply.data(f"no: {KEY}".encode(), "text/plain", 400))
    assert KEY not in str(await failure(transport, post(provider.url())))


async def test_a_web_page_as_refusal_is_told_by_its_title(provider, make_transport):
    page = b"<!DOCTYPE html><html><head><title> 502 Bad\nGateway </title></head><body>" + b"x" * 5000
    provider.add(Reply.data(page, "text/html", 502))
    assert "(502 Bad Gateway)" in str(await failure(make_transport(retries=0), post(provider.url())))


async def test_a_redirect_is_an_error_that_says_where_it_leads(provider, transport):
    provider.add(Reply(status=307, headers={"location": "https://elsewhere.example/v2?token=t"}))
    error = await failure(transport, post(provider.url()))
    assert "redirects to https://elsewhere.example/v2;" in str(error)
    assert "base_url" in str(error)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("location", "said"),
    [
        (b"http://[", "redirects to an address that is none;"),
        (b"http://[::1", "redirects to an address that is none;"),
        (b"javascript:alert(1)", "redirects to javascript://alert(1);"),
        (b"/login/" + KEY.encode(), "/login/***;"),
        (b"/" + b"x" * 60_000, "[truncated]"),
        (b"/a\x1b[2Jb", "/a\ufffd[2Jb;"),
        (b"", "redirects to another address;"),
    ],
)
async def test_an_odd_redirect_is_told_in_one_harmless_line(provider, make_transport, location, said):
    head = b"HTTP/1.1 307 Elsewhere\r\nconnection: close\r\ncontent-length: 0\r\nlocation: "
    provider.add(Reply.raw(head + location + b"\r\n\r\n"))
    request = post(provider.url("/v1/x"))
    request.headers["Authorization"] = f"Bearer {KEY}"
    error = await failure(make_transport(retries=0), request)
    assert isinstance(error, HTTPStatusError) and error.status == 307
    assert said in str(error) and KEY not in str(error) and len(str(error)) < 500


async def test_what_a_server_says_in_a_refusal_is_visible_text_without_the_key(provider, make_transport):
    request = post(provider.url("/v1/x"))
    request.headers["Authorization"] = f"Bearer {KEY}"
    message = "no \x1b[2J\u202ekey\x00"
    provider.add(Reply.json({"error": {"message": message}}, 400, {"x-request-id": f"r-{KEY}-" + "y" * 9000}))
    error = await failure(make_transport(retries=0), request)
    assert "no \ufffd[2J\ufffdkey\ufffd" in str(error)
    assert error.request_id.startswith("r-") and KEY not in error.request_id and len(error.request_id) < 200


async def test_a_host_name_that_cannot_be_one_is_named_as_such(make_transport, monkeypatch):
    monkeypatch.delenv("MMSP_REQUESTS", raising=False)
    error = await failure(make_transport(retries=0), post("http://xn--/v1"))
    assert isinstance(error, ConnectionFailedError) and "the address is no URL" in str(error)


async def test_a_relative_redirect_is_resolved(provider, transport):
    provider.add(Reply(status=308, headers={"location": "/v9/x"}))
    assert f"redirects to {provider.url('/v9/x')};" in str(await failure(transport, post(provider.url("/v1/x"))))


# answers that are none


async def test_a_web_page_with_status_200(provider, transport):
    provider.add(Reply.data(b"\n<html>Please log in</html>", "text/html"))
    error = await failure(transport, post(provider.url()))
    assert isinstance(error, ResponseFormatError)
    assert (error.status, "base_url" in str(error)) == (200, True)


async def test_a_web_page_where_json_was_asked_for(provider, transport):
    provider.add(Reply.data(b"<html>", "text/html"))
    async with await transport.send(post(provider.url(), framing="json"), client="C") as response:
        with pytest.raises(ResponseFormatError, match="web page"):
            await response.json()


@pytest.mark.parametrize("body", [b"", b"  \n"])
async def test_an_empty_json_answer(provider, transport, body):
    provider.add(Reply.data(body, "application/json"))
    async with await transport.send(post(provider.url(), framing="json"), client="C") as response:
        with pytest.raises(ResponseFormatError, match="empty answer"):
            await response.json()


async def test_json_garbage(provider, transport):
    provider.add(Reply.data(b'{"a":', "application/json"))
    async with await transport.send(post(provider.url(), framing="json"), client="C") as response:
        with pytest.raises(ResponseFormatError, match="not JSON"):
            await response.json()


async def test_one_json_document_instead_of_a_stream(provider, transport):
    provider.add(Reply.json({"choices": []}))
    error = await failure(transport, post(provider.url()))
    assert isinstance(error, ResponseFormatError)
    assert "JSON document instead of a stream" in str(error)


async def test_an_error_document_with_status_200(provider, transport):
    provider.add(Reply.json({"error": {"message": "model is loading", "code": "busy"}}))
    with pytest.raises(ProviderStreamError, match="model is loading") as caught:
        await read(transport, post(provider.url()))
    assert caught.value.code == "busy"


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", ""])
async def test_a_stream_under_a_wrong_content_type_is_read_all_the_same(provider, transport, content_type):
    provider.add(Reply.data(b'data: {"a":1}\n\n', content_type))
    assert await read(transport, post(provider.url())) == [(None, b'{"a":1}')]


# the end of a stream


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n", [b"1"]),
        (b"data: 1\n\ndata: [DONE]", [b"1"]),
        (b"data: [DONE]\n\n", []),
        (b"data: 1\n\n: bye\n\n", [b"1"]),
        (b'data: 1\n\ndata: {"a":2}', [b"1", b'{"a":2}']),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
async def test_ends_of_a_stream(provider, transport, body, expected, size):
    provider.add(Reply([body], headers={"content-type": "text/event-stream"}).split(size))
    assert [data for _, data in await read(transport, post(provider.url()))] == expected


async def test_a_stream_that_ends_inside_an_event_was_cut(provider, transport):
    provider.add(Reply([b'data: 1\n\ndata: {"a":'], framing="close"))
    seen = []
    with pytest.raises(ConnectionCutError, match="in the middle of an event"):
        async with await transport.send(post(provider.url()), client="C") as response:
            async for _, data in response.events():
                seen.append(data)
    assert seen == [b"1"]


async def test_a_server_that_keeps_the_stream_open_after_done_holds_nobody_up(provider, transport):
    gate = Gate()
    provider.add(Reply([b"data: 1\n\ndata: [DONE]\n\n", gate]))
    assert await read(transport, post(provider.url())) == [(None, b"1")]
    provider.wait_until_idle()
    assert not gate.is_open


async def test_compressed_streams_are_read_as_they_come(provider, transport):
    press = zlib.compressobj(wbits=31)
    pieces = [press.compress(b"data: a\xc3") + press.flush(zlib.Z_SYNC_FLUSH)]
    pieces += [press.compress(b"\xa4\n\n") + press.flush(zlib.Z_SYNC_FLUSH)]
    gate = Gate()
    end = press.compress(b"data: b\n\n") + press.flush()
    provider.add(Reply([*pieces, gate, end], headers={"content-encoding": "gzip"}))
    async with await transport.send(post(provider.url()), client="C") as response:
        assert await response.batch() == [(None, "aä".encode())]
        gate.open()
        assert await response.batch() == [(None, b"b")]
        assert await response.batch() is None


async def test_a_compressed_json_answer(provider, transport):
    provider.add(Reply([gzip.compress(b"[1]")], headers={"content-encoding": "gzip"}))
    async with await transport.send(post(provider.url(), framing="json"), client="C") as response:
        assert await response.json() == [1]


async def test_broken_compression(provider, transport):
    provider.add(Reply([b"no gzip at all"], headers={"content-encoding": "gzip"}))
    error = await failure(transport, post(provider.url()))
    assert isinstance(error, ResponseFormatError)
    assert "compressed" in str(error)


# limits


async def test_an_event_beyond_the_limit(provider, make_transport):
    provider.add(Reply([b"data: 1\n\n", b"data: "]).endless(b"x" * 1000))
    seen = []
    with pytest.raises(ResponseTooLargeError) as caught:
        async with await make_transport(max_event=50_000).send(post(provider.url()), client="C") as response:
            async for _, data in response.events():
                seen.append(data)
    assert seen == [b"1"]
    assert (caught.value.limit, caught.value.client, caught.value.url) == (50_000, "C", provider.url())
    provider.wait_until_idle()


async def test_a_json_answer_beyond_the_limit(provider, make_transport):
    provider.add(Reply([b"["]).endless(b"1,"))
    async with await make_transport(max_event=10_000).send(
        post(provider.url(), framing="json"), client="C"
    ) as response:
        with pytest.raises(ResponseTooLargeError):
            await response.json()
    provider.wait_until_idle()


async def test_silence_before_the_answer(provider, make_transport):
    gate = Gate()
    provider.add(Reply([b"data: 1\n\n"], before=gate))
    error = await failure(make_transport(timeout=0.05), post(provider.url()))
    assert isinstance(error, RequestTimeoutError)
    assert (error.timeout, "sent nothing for 0.05 s" in str(error)) == (0.05, True)
    assert len(provider.requests) == 1
    provider.wait_until_idle()


async def test_silence_within_the_answer(provider, make_transport):
    provider.add(Reply([b"data: 1\n\n", Gate()]))
    error = await failure(make_transport(timeout=Timeouts(read=0.5)), post(provider.url()))
    assert isinstance(error, RequestTimeoutError)
    assert "nothing more for 0.5 s" in str(error)


@pytest.mark.parametrize("value", [0, -1, "5", True, float("nan")])
def test_a_bad_time_limit_is_refused(value):
    with pytest.raises(ValueError, match="read"):
        Transport(timeout=value)


def test_default_limits():
    limits = Transport().timeouts
    assert (limits.connect, limits.read, limits.write, limits.loopback_connect) == (10.0, 600.0, 30.0, 2.0)


# requests that cannot leave


@pytest.mark.parametrize("value", ["Bearer sk-sécret", "sk-line\nbreak", "\u201csk-quoted\u201d"])
async def test_a_header_that_cannot_travel_is_named_without_its_value(transport, value):
    error = await failure(transport, post("http://127.0.0.1:9/v1", headers={"X-Api-Key": value}))
    assert "'X-Api-Key'" in str(error)
    assert value not in str(error)
    assert "sk-" not in str(error)


@pytest.mark.mmsp_allow_requests
@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "127.0.0.1:1/v1"])
async def test_an_address_that_is_none(transport, waits, url):
    error = await failure(transport, post(url))
    assert isinstance(error, ConnectionFailedError)
    assert "base_url" in str(error)
    assert waits == []


async def test_a_server_that_does_not_speak_http(transport):
    async with tcp_server(lambda writer: writer.write(b"220 smtp ready\r\n")) as port:
        error = await failure(transport, post(f"http://127.0.0.1:{port}/v1"))
    assert isinstance(error, ConnectionFailedError)


async def test_tls_where_there_is_none(make_transport):
    async with tcp_server(lambda writer: writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        error = await failure(make_transport(retries=0), post(f"https://127.0.0.1:{port}/v1"))
    assert isinstance(error, ConnectionFailedError)
    assert "SSL" in str(error).upper()


# what is shown


def test_a_request_shows_no_key():
    request = post("http://h/v1", headers={"Authorization": f"Bearer {KEY}", "x-api-key": KEY, "Accept": "text/plain"})
    assert KEY not in repr(request)
    assert "text/plain" in repr(request)
    assert isinstance(request.headers, Headers)


def test_secrets_are_the_values_of_headers_that_carry_them():
    headers = Headers(
        {"Authorization": "Bearer abcdefgh", "Accept": "text/event-stream", "api-key": "1234567", "token": "x"}
    )
    assert headers.secrets() == ["Bearer abcdefgh", "abcdefgh", "1234567"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@host:1/a/b?key=k#f", "https://host:1/a/b"),
        ("http://127.0.0.1/v1", "http://127.0.0.1/v1"),
    ],
)
def test_public_url(url, shown):
    assert public_url(url) == shown


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.8.8.8", True),
        ("http://localhost:1", True),
        ("http://LOCALHOST.:1", True),
        ("http://app.localhost", True),
        ("http://[::1]:8000/v1", True),
        ("http://0.0.0.0:8000", True),
        ("https://localhost.example.com", False),
        ("https://api.openai.com", False),
        ("http://10.0.0.1", False),
        ("nonsense", False),
    ],
)
def test_is_loopback(url, local):
    assert is_loopback(url) is local


async def test_default_headers_are_filled_in_and_given_ones_stay(provider, transport):
    provider.add(Reply.data(b"data: 1\n\n", ""), Reply.json([]))
    await read(transport, post(provider.url()))
    sent = provider.last.headers
    assert (sent["accept"], sent["accept-encoding"], sent["content-type"]) == (
        "text/event-stream",
        "identity",
        "application/json",
    )
    assert sent["user-agent"].startswith("mmsp-nb/")
    assert sent["connection"] == "close"
    request = WireRequest("GET", provider.url(), Headers({"accept": "a/b"}), framing="json")
    async with await transport.send(request, client="C") as response:
        await response.json()
    assert provider.last.headers["accept"] == "a/b"
    assert "content-type" not in provider.last.headers
