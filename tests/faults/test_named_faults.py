"""Every fault that a provider can show, on every wire: a typed error or a whole answer, and the client goes on."""

from __future__ import annotations

import asyncio

import pytest
from clients import CLIENTS, events_of, make_client, plain, untimed, user

from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import AbortError, MMSPError, RequestTimeoutError
from mmsp_nb.testing import Gate, faults, streams
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.retry import RetryPolicy

FAULTS = [name for name in faults.FAULTS if name not in ("stall", "endless")]
PAIRS = [
    (client_type, name)
    for client_type in CLIENTS
    for name in FAULTS
    # MiniMax sends calls whole, so that these cannot happen there
    if client_type != "minimax-official" or name not in ("interleaved", "bad-arguments", "budget")
]
WHOLE = {
    *("interleaved", "shared-index", "repeated-name", "crlf", "cr", "bom", "no-space", "comments", "multiline"),
    *("no-final-blank-line", "bytewise", "drops-connection"),
}
"""Nothing is wrong with these: the answer has to come whole."""

EXPECTED = {
    "status": {"HTTPStatusError"},
    "unauthorized": {"AuthenticationError"},
    "rate-limited": {"RateLimitError"},
    "overloaded": {"HTTPStatusError"},
    "no-answer": {"ConnectionFailedError"},
    "reset": {"ConnectionFailedError"},
    "html": {"ResponseFormatError"},
    "json": {"ResponseFormatError"},
    "empty": {"IncompleteStreamError"},
    "cut-after": {"ConnectionCutError"},
    "fin-after": {"ConnectionCutError"},
    "end-after": {"ConnectionCutError", "IncompleteStreamError", "ToolCallArgumentParseError"},
    "error-in-stream": {"ProviderStreamError"},
    "not-json": {"ResponseFormatError"},
    "no-usage": {"IncompleteStreamError"},
    "thinking-only": {"EmptyResponseError"},
    "nothing-said": {"EmptyResponseError"},
    "bad-arguments": {"ToolCallArgumentParseError"},
    "budget": {"ToolCallArgumentParseError"},
}
COMPLETE_WITHOUT = {("google-official", "no-usage")}
"""Here a final event without usage counts as a report of nothing."""

RELAYED = ("no-usage", "thinking-only", "nothing-said")
"""An MMSP server's own stop event says that these are complete answers."""

REPORTED = {"status", "unauthorized", "rate-limited", "overloaded", "error-in-stream", "bad-arguments", "budget"}
"""What an MMSP server reports is an UpstreamError, whatever had happened to it."""


def test_every_fault_is_expected_to_do_something():
    assert EXPECTED.keys() | WHOLE == set(FAULTS)


@pytest.mark.parametrize(("client_type", "fault"), PAIRS)
async def test_a_fault_ends_in_a_typed_error_or_a_whole_answer(client_type, fault, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type, transport=Transport(retries=0))
    provider.add(plain(client_type))
    await events_of(client.streaming_response_stateful(user("Q1")))
    before = client.get_history()

    reply = faults.reply(fault, dialect)
    # a connection that broke before any byte is replaced once, without counting as a retry
    provider.add(*[reply] * (2 if fault in ("no-answer", "reset") else 1))
    events = []
    error = None
    try:
        async for event in client.streaming_response_stateful(user("Q2")):
            events.append(untimed(event))
    except MMSPError as caught:
        error = caught

    whole = fault in WHOLE or (client_type, fault) in COMPLETE_WITHOUT
    if whole or (client_type == "mmsp" and fault in RELAYED):
        assert error is None
        assert events[-1]["event_type"] == "stop"
        assert len(client.get_history()) == 4
    else:
        expected = EXPECTED[fault]
        if client_type == "mmsp":
            expected = {"UpstreamError"} if fault in REPORTED else expected
        assert type(error).__name__ in expected, error
        assert "k-test" not in str(error)
        assert all(event["event_type"] == "delta" for event in events)
        assert client.get_history() == before
    provider.reset()
    provider.add(plain(client_type, "Still here."))
    answer = await events_of(client.streaming_response_stateful(user("Q3")))
    assert answer[-2]["content_items"] == [{"type": "text.done", "text": "Still here."}]
    provider.wait_until_idle()


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


@pytest.mark.parametrize("fault", ["unauthorized", "status-400", "status-404", "html", "error-in-stream", "cut-after"])
@pytest.mark.parametrize("client_type", CLIENTS)
async def test_what_will_not_pass_is_not_tried_again(client_type, fault, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type)
    provider.add(faults.reply(fault, dialect), plain(client_type))
    with pytest.raises(MMSPError):
        await events_of(client.streaming_response_stateful(user("Q")))
    assert len(provider.requests) == 1
