"""Time limits, aborts and second tries, on every wire. What every fault ends in is in the matrix (`matrix.py`)."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from clients import CLIENTS, events_of, make_client, plain, user

from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import AbortError, MMSPError, RequestTimeoutError
from mmsp_nb.testing import Gate, Reply, encode, faults, streams
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.retry import RetryPolicy


@pytest.mark.parametrize("at", [0, 200])
@pytest.mark.parametrize("client_type", CLIENTS)
async def test_a_stream_that_stalls_runs_into_the_time_limit(client_type, at, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type, transport=Transport(timeout=0.05, retries=0))
    provider.add(faults.reply(f"stall-{at}", dialect))
    with pytest.raises(RequestTimeoutError) as caught:
        await events_of(client.streaming_response_stateful(user("Q")))
    assert caught.value.timeout == 0.05
    assert client.get_history() == []
    assert provider.last.done.wait(10)
    assert provider.last.left.is_set()
    provider.wait_until_idle()


@pytest.mark.parametrize("client_type", CLIENTS)
async def test_an_endless_answer_can_be_aborted(client_type, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type)
    provider.add(faults.reply("endless", dialect))
    signal = AbortSignal()
    count = 0
    with pytest.raises(AbortError):
        async for _ in client.streaming_response_stateful(user("Q"), {}, signal):
            count += 1
            if count == 50:
                signal.abort()
    assert client.get_history() == []
    assert provider.last.done.wait(10)
    assert provider.last.left.is_set()
    provider.wait_until_idle()


@pytest.mark.parametrize("headers", [False, True], ids=["before the headers", "after the headers"])
@pytest.mark.parametrize("client_type", CLIENTS)
async def test_a_late_first_token_can_be_waited_for_or_aborted(client_type, headers, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type)
    text = streams.frames("text", dialect)

    def late(gate: Gate):
        reply = streams.reply("text", dialect)
        return reply.hold(gate) if headers else type(reply).stream(text, before=gate)

    gate = Gate()
    provider.add(late(gate))
    waiting = asyncio.create_task(events_of(client.streaming_response_stateful(user("Q1"))))
    await gate.wait_arrived()
    assert not waiting.done()
    gate.open()
    assert (await waiting)[-1]["event_type"] == "stop"

    gate, signal = Gate(), AbortSignal()
    provider.add(late(gate))
    waiting = asyncio.create_task(events_of(client.streaming_response_stateful(user("Q2"), {}, signal)))
    await gate.wait_arrived()
    signal.abort("enough")
    with pytest.raises(asyncio.CancelledError, match="enough"):
        await waiting
    assert provider.last.done.wait(10)
    assert provider.last.left.is_set()
    assert len(client.get_history()) == 2


@pytest.mark.parametrize("fault", ["no-answer", "reset", "rate-limited-0", "overloaded", "status-503"])
@pytest.mark.parametrize("client_type", CLIENTS)
async def test_what_may_pass_is_tried_again(client_type, fault, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type, transport=Transport(retries=RetryPolicy(2, base=0.001)))
    provider.add(faults.reply(fault, dialect), faults.reply(fault, dialect), plain(client_type))
    assert (await events_of(client.streaming_response_stateful(user("Q"))))[-1]["event_type"] == "stop"
    assert len(provider.requests) == 3
    bodies = [request.body for request in provider.requests]
    assert bodies[0] == bodies[1] == bodies[2]


@pytest.mark.parametrize("client_type", CLIENTS)
async def test_an_error_event_is_told_in_one_line_of_visible_characters(client_type, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type)
    frame = encode([streams.DIALECTS[dialect].error()])[0]
    message = json.dumps("no \x1b[2J\n\u202e" + "word k-test " * 1000).encode()
    event = re.sub(rb'"message":"[^"]*"', lambda _: b'"message":' + message, frame)
    provider.add(Reply([event], headers={"content-type": "text/event-stream"}))
    with pytest.raises(MMSPError) as caught:
        await events_of(client.streaming_response_stateful(user("Q")))
    said = str(caught.value)
    assert said.startswith("no \ufffd[2J \ufffdword *** word") and len(said) < 1200
    assert said.endswith("try again later") and "k-tes" not in said


@pytest.mark.parametrize("fault", ["unended", "held-open"])
@pytest.mark.parametrize("client_type", [each for each in CLIENTS if each != "google-genai"])
async def test_an_answer_that_says_it_is_complete_does_not_wait_for_the_end_of_its_connection(
    client_type, fault, provider
):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type)
    provider.add(streams.reply("text", dialect))
    whole = await events_of(client.streaming_response([user("Q")]))
    provider.add(faults.reply(fault, dialect))
    assert await events_of(client.streaming_response_stateful(user("Q"))) == whole
    provider.wait_until_idle()


@pytest.mark.parametrize("size", [None, 7])
@pytest.mark.parametrize("client_type", ["openai-official", "anthropic-official", "google-official"])
async def test_what_follows_a_complete_answer_is_left_out_however_it_comes(client_type, size, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type)
    content = streams.reply("text", dialect).content.removesuffix(b"data: [DONE]\n\n") + b"data: no JSON\n\n"
    reply = Reply([content], headers={"content-type": "text/event-stream"})
    provider.add(reply if size is None else reply.split(size))
    assert (await events_of(client.streaming_response_stateful(user("Q"))))[-1]["event_type"] == "stop"


@pytest.mark.parametrize("fault", ["unauthorized", "status-400", "status-404", "html", "error-in-stream", "cut-after"])
@pytest.mark.parametrize("client_type", CLIENTS)
async def test_what_will_not_pass_is_not_tried_again(client_type, fault, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type)
    provider.add(faults.reply(fault, dialect), plain(client_type))
    with pytest.raises(MMSPError):
        await events_of(client.streaming_response_stateful(user("Q")))
    assert len(provider.requests) == 1
