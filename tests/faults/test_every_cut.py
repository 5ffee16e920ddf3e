"""A stream with tool calls, cut at every single byte: nothing wrong is delivered, run or recorded.

Through the real client and a real socket, for every dialect and three ways of ending: the connection is torn, closed in
the middle of the body, or the body simply ends there, as if that were all. ``MMSP_NB_EVERY_CUT=1`` tries all three
ways at every byte, each with a next call, and prints the totals.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from typing import Any

import pytest
from clients import CLIENTS, TERSE, Event, events_of, make_client, plain, untimed, user, with_tools

from mmsp_nb.agent import Agent
from mmsp_nb.client import AutoLLMClient
from mmsp_nb.protocol.errors import IncompleteStreamError, MMSPError
from mmsp_nb.testing import Reply
from mmsp_nb.testing.wire import embeddings
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.retry import RetryPolicy

THOROUGH = bool(os.environ.get("MMSP_NB_EVERY_CUT"))
"""Every way of cutting at every byte; otherwise two of the three ways are tried at every fifth byte."""
TYPED = {
    "reset": {"ConnectionCutError"},
    "fin": {"ConnectionCutError"},
    "end": {"ConnectionCutError", "IncompleteStreamError", "ToolCallArgumentParseError"},
}
ways = pytest.mark.parametrize("how", ["reset", "fin", "end"])
clients = pytest.mark.parametrize("client_type", CLIENTS)


class Counting:
    """Two tools that note the arguments they were called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def tide(self, port: str) -> str:
        """The tide of a port."""
        self.calls.append(("tide", port))
        return "high"

    def now(self) -> str:
        """The time."""
        self.calls.append(("now", None))
        return "noon"


def closed_early(delivered: list[Event], full: list[Event]) -> bool:
    """Whether ``delivered`` is a prefix of ``full``, and then the done of a call that had no arguments yet.

    A stream that ended without usage and finish reason has every run complete with its done, and no arguments are
    ``{}``. The error comes in place of the stop, so nobody acts on such a call.
    """
    *before, last = delivered
    opened = full[len(before) - 1]["content_items"][0]
    empty = {**opened, "type": "tool_call.done", "arguments": {}}
    return before == full[: len(before)] and opened["arguments"] == "" and last["content_items"] == [empty]


@clients
@ways
async def test_a_stream_cut_at_any_byte_delivers_and_runs_nothing_wrong(client_type, how, provider, capsys):
    whole = with_tools(client_type)
    tools = Counting()
    client = make_client(provider, client_type)
    agent = Agent(client, [tools.tide, tools.now], max_turns=3)
    provider.add(whole)
    full = await events_of(client.streaming_response([user("Q")], {"tools": agent.tools.schemas()}))
    base = [
        {**user("Q0"), "created_at": 1},
        {"role": "assistant", "content_items": [{"type": "text.done", "text": "A0"}], "created_at": 2},
    ]
    outcomes: Counter[str] = Counter()

    positions = range(0, len(whole.content), 1 if how == "reset" or THOROUGH else 5)
    for at in positions:
        client.set_history(base)
        before = client.get_history()
        tools.calls.clear()
        provider.reset()
        cut = whole.end(at) if how == "end" else whole.cut(at, how)
        provider.add(cut, plain(client_type), plain(client_type))
        delivered: list[Event] = []
        error: MMSPError | None = None
        stream = agent.run(user("Q"))
        try:
            async for event in stream:
                if event["type"] == "event":
                    delivered.append(untimed(event["event"]))
        except MMSPError as caught:
            error = caught
        await stream.aclose()

        if error is not None:
            outcomes[type(error).__name__] += 1
            assert type(error).__name__ in TYPED[how], (at, error)
            assert delivered == full[: len(delivered)] or (
                isinstance(error, IncompleteStreamError) and closed_early(delivered, full)
            ), at
            assert not any(event["event_type"] == "stop" for event in delivered), at
            assert tools.calls == [], at
            assert client.get_history() == before, at
            if THOROUGH or at % 10 == 0:
                answer = await events_of(client.streaming_response_stateful(user("Q"), {}))
                assert answer[-1]["finish_reason"] == "stop", at
                assert len(client.get_history()) == 4, at
        elif delivered[: len(full)] == full:
            # all that matters had come before the cut: the turn counts, the tools ran, each once, on whole arguments
            outcomes["complete"] += 1
            assert tools.calls == [("tide", "Brést 🌊"), ("now", None)][: 2 if client_type in TERSE else 1], at
            assert len(client.get_history()) == 6, at
        else:
            # not a byte of the body had come, so the request was made again, and the plain answer came
            outcomes["asked again"] += 1
            assert at == 0
            assert how != "end"
            assert tools.calls == []
            assert len(client.get_history()) == 4
        assert provider.open_connections <= 1, at
    provider.wait_until_idle()
    assert outcomes["ConnectionCutError"] > len(positions) * (0.6 if how == "end" else 0.9)
    with capsys.disabled() if THOROUGH else contextlib.nullcontext():
        print(f"\n{client_type}, {how}: {len(positions)} cuts: {dict(outcomes)}")


@pytest.mark.parametrize("model", ["text-embedding-3-small", "gemini-embedding-2"])
@ways
async def test_embeddings_cut_at_any_byte_are_an_error(model, how, provider):
    vectors = [[0.5, -1.25]]
    google = model.startswith("gemini")
    document = embeddings.gemini_batch(vectors) if google else embeddings.openai(vectors, encoding="float")
    whole = Reply.json(document)
    client = AutoLLMClient(
        model, "k-test", provider.url("" if google else "/v1"), transport=Transport(retries=RetryPolicy(2, base=0.001))
    )
    provider.add(whole)
    full = await events_of(client.streaming_response([user("Q")]))
    assert full[-2]["content_items"][0]["embedding"] == vectors[0]
    for at in range(1, len(whole.content)):
        provider.add(whole.end(at) if how == "end" else whole.cut(at, how))
        with pytest.raises(MMSPError) as caught:
            await events_of(client.streaming_response_stateful(user("Q")))
        assert type(caught.value).__name__ == ("ResponseFormatError" if how == "end" else "ConnectionCutError"), at
        assert client.get_history() == []
    provider.add(whole)
    assert await events_of(client.streaming_response_stateful(user("Q"))) == full
