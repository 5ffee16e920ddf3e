import json
import time

import httpx
import pytest
from exchange import post, read

from mmsp_nb.protocol.errors import ConnectionCutError, ConnectionFailedError, HTTPStatusError, IncompleteStreamError
from mmsp_nb.testing import Frame, Reply
from mmsp_nb.transport.listeners import nothing_listens
from mmsp_nb.transport.retry import RetryPolicy, retry_after

OK = Reply.stream([Frame({"n": 1}), Frame("[DONE]")])
EVENTS = [(None, b'{"n":1}')]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_passing_refusal_is_tried_again(provider, transport, waits, status):
    provider.add(Reply.json({}, status), OK)
    assert await read(transport, post(provider.url())) == EVENTS
    assert waits == [0.5]
    assert len(provider.requests) == 2
    assert provider.requests[0].body == provider.requests[1].body == {}


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 413, 422, 451])
async def test_a_final_refusal_is_not(provider, transport, waits, status):
    provider.add(Reply.json({}, status), OK)
    with pytest.raises(HTTPStatusError) as caught:
        await read(transport, post(provider.url()))
    assert caught.value.status == status
    assert len(provider.requests) == 1
    assert waits == []


async def test_gives_up_after_two_retries(provider, transport, waits):
    provider.add(*[Reply.json({"error": {"message": f"no {n}"}}, 503) for n in range(4)])
    with pytest.raises(HTTPStatusError, match=r"no 2.*after 3 tries"):
        await read(transport, post(provider.url()))
    assert len(provider.requests) == 3
    assert waits == [0.5, 1.0]


async def test_waits_double_up_to_eight_seconds(provider, make_transport, waits):
    provider.add(*[Reply.json({}, 500)] * 7)
    with pytest.raises(HTTPStatusError):
        await read(make_transport(retries=6), post(provider.url()))
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]


async def test_no_retries_on_request(provider, make_transport):
    provider.add(Reply.json({}, 500), OK)
    with pytest.raises(HTTPStatusError):
        await read(make_transport(retries=0), post(provider.url()))
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "3"}, 3.0),
        ({"retry_after": "0.25"}, 0.25),
        ({"retry_after": "0"}, 0.0),
        ({"retry_after": "60"}, 60.0),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:07 GMT"}, 7.0),
        ({"retry_after": "Wed, 21 Oct 2020 07:28:07 GMT"}, 0.0),
        ({"retry_after": "soon"}, 0.5),
        ({"retry_after": "-1"}, 0.5),
        ({"retry_after": "nan"}, 0.5),
        ({"retry_after": "inf"}, 0.5),
    ],
)
async def test_follows_the_servers_wish(provider, make_transport, waits, headers, seconds):
    provider.add(Reply.json({}, 429).with_status(429, **headers), OK)
    transport = make_transport(clock=lambda: 1792567680.0)  # 21 Oct 2026 07:28:00
    assert await read(transport, post(provider.url())) == EVENTS
    assert waits == [seconds]


async def test_nobody_waits_in_silence_for_a_wish_beyond_the_longest_wait(provider, make_transport, waits):
    provider.add(Reply.json({}, 429).with_status(429, retry_after="61"), OK)
    with pytest.raises(HTTPStatusError, match="Wait 61 s"):
        await read(make_transport(), post(provider.url()))
    assert (waits, len(provider.requests)) == ([], 1)


async def test_the_error_keeps_the_wish_uncapped(provider, make_transport):
    provider.add(Reply.json({}, 429).with_status(429, retry_after="3600"))
    with pytest.raises(HTTPStatusError, match="Wait 3600 s") as caught:
        await read(make_transport(retries=0), post(provider.url()))
    assert caught.value.retry_after == 3600.0


@pytest.mark.parametrize(("status", "wish", "requests"), [(400, "true", 2), (500, "false", 1)])
async def test_a_server_may_overrule_with_x_should_retry(provider, transport, status, wish, requests):
    provider.add(Reply.json({}, status).with_status(status, x_should_retry=wish), Reply.json({}, 404))
    with pytest.raises(HTTPStatusError):
        await read(transport, post(provider.url()))
    assert len(provider.requests) == requests


def test_jitter_shortens_a_wait_by_a_quarter_at_most():
    policy = RetryPolicy()
    assert policy.delay(0, None, 0.0) == 0.5
    assert policy.delay(0, None, 0.999) > 0.375
    assert policy.delay(3, 2.0, 0.999) == 2.0


@pytest.mark.parametrize("retries", [-1, 1.5, True, "2"])
def test_a_bad_number_of_retries_is_refused(retries):
    with pytest.raises(ValueError, match="retries"):
        RetryPolicy(retries)


def test_no_wish_is_none():
    assert retry_after({}, 0.0) is None


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone cannot be changed here")
def test_a_date_without_a_zone_is_of_universal_time(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:40"}, 90.0) == 10.0
        assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:40 -0000"}, 90.0) == 10.0
    time.tzset()


@pytest.mark.parametrize("how", ["fin", "reset"])
async def test_a_connection_that_ends_without_a_byte_is_replaced_at_once(provider, make_transport, waits, how):
    provider.add(Reply.no_answer(how), OK)
    assert await read(make_transport(retries=0), post(provider.url())) == EVENTS
    assert waits == []


async def test_such_connections_are_then_retried_like_others(provider, transport, waits):
    provider.add(*[Reply.no_answer()] * 3, OK)
    assert await read(transport, post(provider.url())) == EVENTS
    assert waits == [0.5, 1.0]


async def test_and_given_up_like_others(provider, transport):
    provider.add(*[Reply.no_answer()] * 4, OK)
    with pytest.raises(ConnectionFailedError, match=r"without an answer \(4 tries\)"):
        await read(transport, post(provider.url()))
    assert len(provider.requests) == 4


async def test_a_stream_cut_before_its_first_byte_is_retried(provider, transport):
    provider.add(OK.cut(0), OK)
    assert await read(transport, post(provider.url())) == EVENTS
    assert len(provider.requests) == 2


@pytest.mark.parametrize("how", ["fin", "reset"])
async def test_a_stream_cut_after_its_first_byte_is_not(provider, transport, waits, how):
    first = len(OK.body[0])
    provider.add(OK.cut(first, how), OK)
    seen = []
    with pytest.raises(ConnectionCutError, match="middle of the answer") as caught:
        async with await transport.send(post(provider.url("/v1?key=abc")), client="TestClient") as response:
            async for event in response.events():
                seen.append(event)
    assert seen == EVENTS
    assert len(provider.requests) == 1
    assert caught.value.url == provider.url("/v1")
    assert caught.value.client == "TestClient"
    assert waits == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_where_nothing_listens_on_this_machine_nobody_waits(provider, transport, waits, host):
    provider.close()
    with pytest.raises(ConnectionFailedError, match=r"nothing listens there: start the server, or correct base_url$"):
        await read(transport, post(provider.url().replace("127.0.0.1", host)))
    assert waits == []


async def test_a_refused_connection_elsewhere_is_retried(make_transport, waits):
    def handler(request):
        raise httpx.ConnectError("refused") from ConnectionRefusedError(111, "refused")

    with pytest.raises(ConnectionFailedError, match=r"\(3 tries\).*whether the server is up"):
        await read(make_transport(handler=handler), post("https://api.example.com/v1"))
    assert waits == [0.5, 1.0]


@pytest.mark.parametrize(
    ("port", "command"), [(8000, "vllm serve MODEL"), (11434, "ollama serve"), (1234, "lms server start")]
)
def test_what_is_usual_on_a_port_is_named(port, command):
    said = nothing_listens(f"http://127.0.0.1:{port}/v1")
    assert said == f"nothing listens there: start it with `{command}`, or correct base_url"


async def test_an_error_body_that_never_ends_is_bounded(provider, make_transport):
    provider.add(Reply(status=400).endless(b"x" * 65536))
    with pytest.raises(HTTPStatusError) as caught:
        await read(make_transport(retries=0), post(provider.url()))
    assert len(str(caught.value)) < 500
    provider.wait_until_idle()


async def test_an_empty_success_is_no_reason_to_ask_again(provider, transport):
    provider.add(Reply.data(b"", "text/event-stream"), OK)
    with pytest.raises(IncompleteStreamError, match="empty answer"):
        await read(transport, post(provider.url()))
    assert len(provider.requests) == 1


async def test_json_answers_are_retried_too(provider, transport):
    provider.add(Reply.json({}, 500), Reply.json({"data": [1]}))
    async with await transport.send(post(provider.url(), framing="json"), client="C") as response:
        assert await response.json() == {"data": [1]}
        assert json.loads(provider.last.headers["content-length"]) == 2
