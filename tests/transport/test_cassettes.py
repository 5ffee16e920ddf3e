import asyncio
import json
import time

import pytest
from exchange import read

from mmsp_nb.protocol.errors import ConnectionCutError, HTTPStatusError, TransportError
from mmsp_nb.testing import Frame, Gate, Reply
from mmsp_nb.transport.cassette import record, replay
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.wire import WireRequest

KEY = "sk-secret-0123456789"


def ask(provider, body=b'{"q": 1}', path="/v1/x"):
    return WireRequest("POST", provider.url(path), {"Authorization": f"Bearer {KEY}"}, body)


async def pieces(handler, request):
    async with handler(request) as (_, _, body):
        return [piece async for piece in body]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tides.jsonl"


async def test_a_recorded_stream_comes_back_piece_by_piece(provider, file):
    sent = [b"data: \xc3", b"\xa4\n\n", b"data: 2\n\n"]
    gates = [Gate(), Gate()]
    provider.add(Reply([sent[0], gates[0], sent[1], gates[1], sent[2]]))
    got = []
    async with record(file)(ask(provider)) as (status, _, body):
        async for piece in body:
            got.append(piece)
            if gates:
                gates.pop(0).open()
    assert status == 200
    assert got == sent
    provider.close()
    assert await pieces(replay(file), ask(provider)) == sent


async def test_no_key_is_written(provider, file):
    provider.add(
        Reply([f"data: your key is {KEY}\n\n".encode()], headers={"set-cookie": f"a={KEY}", "x-request-id": "r"})
    )
    await read(Transport(handler=record(file)), ask(provider, path=f"/v1/x?key={KEY}&alt=sse"))
    text = file.read_text()
    assert KEY not in text
    assert "cookie" not in text
    assert "your key is ***" in text
    assert '"x-request-id": "r"' in text
    assert '"alt"' in text


async def test_requests_are_told_apart_by_what_they_ask(provider, file):
    provider.add(*[Reply.stream([Frame({"n": n})]) for n in range(4)])
    transport = Transport(handler=record(file))
    for request in (ask(provider), ask(provider, b'{"q": 2}'), ask(provider), ask(provider, path="/v1/y")):
        await read(transport, request)
    again = Transport(handler=replay(file))
    same_but_for_the_order_of_keys = ask(provider, b'{ "q":2 }')
    answers = [
        await read(again, request)
        for request in (
            same_but_for_the_order_of_keys,
            ask(provider, path="/v1/y"),
            ask(provider),
            ask(provider),
            ask(provider),
        )
    ]
    assert [json.loads(events[0][1])["n"] for events in answers] == [1, 3, 0, 2, 2]


async def test_created_at_does_not_tell_requests_apart(provider, file):
    provider.add(Reply.stream([Frame({"n": 1})]))
    body = b'{"messages": [{"role": "user", "created_at": %d}]}'
    await read(Transport(handler=record(file)), ask(provider, body % 1))
    assert await read(Transport(handler=replay(file)), ask(provider, body % 2)) == [(None, b'{"n":1}')]


async def test_an_unknown_request_fails_loudly(provider, file):
    provider.add(Reply.stream([Frame({"n": 1})]))
    await read(Transport(handler=record(file)), ask(provider))
    with pytest.raises(TransportError, match=r"holds no recording of POST .*/v1/x") as caught:
        await read(Transport(handler=replay(file)), ask(provider, b'{"q": 9}'))
    assert caught.value.client == "TestClient"
    assert len(provider.requests) == 1


async def test_refusals_and_cuts_are_recorded_too(provider, file):
    provider.add(Reply.json({"error": {"message": "no"}}, 400), Reply([b"data: 1\n\n", b"data: 2\n\n"]).cut(9))
    for make in (record, replay):
        transport = Transport(handler=make(file))
        with pytest.raises(HTTPStatusError, match="no"):
            await read(transport, ask(provider))
        with pytest.raises(ConnectionCutError):
            await read(transport, ask(provider, b"2"))


async def test_a_recording_that_was_left_early_ends_as_a_cut(provider, file):
    provider.add(Reply([b"data: 1\n\n"]).endless(b": ping\n\n"))
    async with await Transport(handler=record(file)).send(ask(provider), client="C") as response:
        await response.batch()
    with pytest.raises(ConnectionCutError, match="recording ends here"):
        await read(Transport(handler=replay(file)), ask(provider))


async def test_the_rhythm_is_kept_on_demand(file):
    lines = [
        {"request": {"method": "POST", "url": "http://h/v1/x", "query": [], "body": {"q": 1}}},
        {"response": {"status": 200, "headers": {}}},
        {"t": 0.0, "text": "data: 1\n\n"},
        {"t": 0.4, "text": "data: 2\n\n"},
        {"end": "end"},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    request = WireRequest("POST", "http://other/v1/x", {}, b'{"q":1}')
    started = time.monotonic()
    assert len(await pieces(replay(file, speed=10), request)) == 2
    assert time.monotonic() - started >= 0.039
    started = time.monotonic()
    assert len(await pieces(replay(file), request)) == 2
    assert time.monotonic() - started < 0.3


async def test_exchanges_at_the_same_time_do_not_mix(provider, file):
    provider.add(*[Reply.stream([Frame({"n": n}), Frame({"n": n})]) for n in range(8)])
    transport = Transport(handler=record(file))
    await asyncio.gather(*[read(transport, ask(provider, b"%d" % n)) for n in range(8)])
    again = Transport(handler=replay(file))
    for n in range(8):
        first, second = await read(again, ask(provider, b"%d" % n))
        assert first == second


@pytest.mark.parametrize("text", ["nonsense", '{"t": 1}\n', '{"request": {}}\n{"response": 3}\n', "[]\n"])
def test_a_file_that_is_no_recording_is_refused_at_once(file, text):
    file.write_text(text)
    with pytest.raises(ValueError, match="this is no recording"):
        replay(file)


def test_a_file_that_is_missing(file):
    with pytest.raises(FileNotFoundError):
        replay(file)
