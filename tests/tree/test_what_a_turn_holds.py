"""A turn says of itself who answered what, when, for how much, and how it ended: over real sockets."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import warnings
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from mmsp_nb import AbortSignal, Conversation, hosts, load
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.errors import AbortError
from mmsp_nb.testing import Gate, Reply, streams
from mmsp_nb.testing.plugin import fake_provider  # noqa: F401


def where(provider):
    return {"client_type": "openai-responses", "api_key": "k", "base_url": provider.url("/v1")}


def tide_table(port: str, days: int = 1) -> str:
    """When?"""
    return f"noon in {port}"


class Notebook(hosts.PlainHost):
    def cell_id(self) -> str:
        return "cell-7"


async def test_every_fact_of_a_turn(fake_provider, monkeypatch):  # noqa: F811
    first, last = Gate(), Gate()
    answer = streams.reply("text", "responses")
    fake_provider.add(streams.reply("tools", "responses"), answer.hold(first, 0).hold(last, len(answer.content) - 5))
    prices = {"prompt_tokens": "2", "cached_tokens": "0.2", "thoughts_tokens": "8", "response_tokens": "8"}
    monkeypatch.setattr(
        "mmsp_nb.choosing.prices", lambda client: prices
    )  # those of a list hold at the vendor's address
    chat = Conversation("gpt-5.5", tools=[tide_table], config={"max_tokens": 99}, **where(fake_provider))
    before = hosts.register(Notebook())
    begun = time.time()
    try:
        asking = asyncio.ensure_future(chat.ask_async("When?"))
        await first.wait_arrived()
        running = chat.turns[0]
        assert (running.state, running.reason, chat.running) == ("running", None, True)
        assert running.first_token is not None and running.duration is None
        first.open()
        await last.wait_arrived()
        last.open()
        await asking
    finally:
        hosts.register(before)
    turn = chat.turns[0]
    assert [message["role"] for message in turn.messages] == ["user", "assistant", "user", "assistant"]
    assert [item["type"] for item in turn.messages[2]["content_items"]] == ["tool_result.done"] * 2
    assert (turn.model, turn.client_type, turn.config["max_tokens"], turn.tools) == (
        "gpt-5.5",
        "openai-responses",
        99,
        ["tide_table"],
    )
    counted = [message["usage_metadata"] for message in turn.messages if message["role"] == "assistant"]
    assert turn.usage == tokens.add(*counted)
    assert turn.prices and turn.cost == tokens.cost(turn.usage, turn.prices) > Decimal(0)
    assert 0 < turn.first_token <= turn.duration <= time.time() - begun + 1
    assert abs(turn.started - begun) < 5
    assert (turn.finish_reason, turn.state, turn.reason, turn.cell) == ("stop", "done", "answer", "cell-7")
    events = list(turn.log)
    assert [event["event_type"] for _, event in events].count("stop") == 2
    assert events[0][0] == pytest.approx(turn.first_token, abs=1e-3) and events[-1][0] <= turn.duration
    assert [item for _, event in events for item in event["content_items"] if item["type"].endswith("done")] == [
        item for message in turn.messages if message["role"] == "assistant" for item in message["content_items"]
    ]


async def test_the_states_of_turns(fake_provider):  # noqa: F811
    gate, signal = Gate(), AbortSignal()
    answer = streams.reply("text", "responses")
    fake_provider.add(
        answer, answer, Reply.json({"error": {"message": "no"}}, 400), answer.hold(gate, len(answer.content) // 2)
    )
    chat = Conversation("gpt-5.5", **where(fake_provider))
    await chat.ask_async("one")
    await chat.ask_async("two")
    with pytest.raises(ValueError):
        await chat.ask_async("three")
    asking = asyncio.ensure_future(chat.ask_async("four", signal=signal))
    await gate.wait_arrived()
    signal.abort()
    with pytest.raises(AbortError):
        await asking
    gate.open()
    chat.hide(0)
    assert [turn.state for turn in chat.turns] == ["done", "done", "failed", "partial"]
    assert [turn.stale for turn in chat.turns] == [False, True, True, True]
    assert chat.turns[2].error.status == 400 and chat.turns[3].error is None
    assert chat.turns[3].messages[-1]["content_items"][-1].get("partial") in (True, None)


async def test_the_work_for_a_question_does_not_grow_with_the_past(fake_provider):  # noqa: F811
    """Calls of the package's own functions, but for reading what came, are the same after 10 and after 150 turns."""
    answer = streams.reply("text", "responses").joined()
    chat = Conversation("gpt-5.5", **where(fake_provider))

    async def once() -> Counter[str]:
        found: Counter[str] = Counter()

        def profile(frame, event, argument):
            path = Path(frame.f_code.co_filename)
            if event == "call" and "mmsp_nb" in path.parts and not {"transport", "testing"} & set(path.parts):
                found[path.name] += 1

        fake_provider.add(answer)
        sys.setprofile(profile)
        try:
            await chat.ask_async("more")
        finally:
            sys.setprofile(None)
        return found

    async def calls() -> Counter[str]:
        """The least of three: what waits once more for the network is entered once more."""
        return min([await once() for _ in range(3)], key=Counter.total)

    async def go_on(count: int) -> None:
        fake_provider.add(*[answer] * count)
        for _ in range(count):
            await chat.ask_async("x " * 200)

    await go_on(10)
    few = await calls()
    await go_on(140)
    many = await calls()
    assert few["copying.py"] > 10 and many["copying.py"] == few["copying.py"]
    assert many.total() <= few.total() + 10, many - few


def test_a_trace_file_of_the_reference_is_loaded(tmp_path):
    """As it writes them: old names of items, times with a zone, bytes as base64, keys that are not ours."""
    record = {
        "history": [
            {"role": "user", "content_items": [{"type": "text", "text": "Draw a gull."}], "created_at": 1790000000000},
            {
                "role": "assistant",
                "content_items": [
                    {"type": "thinking.done", "thinking": "A gull.", "fidelity": {"signature": "c2ln"}},
                    {"type": "tool_call.done", "name": "draw", "arguments": {"what": "gull"}, "tool_call_id": "c1"},
                ],
                "usage_metadata": {
                    "cached_tokens": None,
                    "prompt_tokens": 31,
                    "thoughts_tokens": 4,
                    "response_tokens": 8,
                },
                "finish_reason": "tool_call",
                "created_at": 1790000001417,
            },
            {"role": "user", "content_items": [{"type": "tool_result.done", "text": "done", "tool_call_id": "c1"}]},
            {
                "role": "assistant",
                "content_items": [
                    {"type": "inline_data.done", "data": "iVBORw0KGgo=", "mime_type": "image/png"},
                    {"type": "text.done", "text": "A gull."},
                ],
                "usage_metadata": None,
                "finish_reason": "stop",
                "created_at": 1790000002000,
            },
        ],
        "config": {"system_prompt": "Be brief.", "trace_id": "birds/1", "tools": [], "model": "gemini-3.8-flash"},
        "timestamp": "2026-09-21T09:06:41.417000+00:00",
    }
    path = Path(tmp_path / "1.json")
    path.write_text(json.dumps(record, indent=2), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of the old names, once in a process
        chat = load(path, api_key="k")
    [turn] = chat.turns
    assert (turn.prompt, turn.text, turn.model) == ("Draw a gull.", "A gull.", "gemini-3.8-flash")
    assert turn.messages[-1]["content_items"][0]["data"] == b"\x89PNG\r\n\x1a\n"
    assert [(one.name, one.text) for one in turn.outcomes] == [("draw", "done")]
    assert turn.usage["prompt_tokens"] == 31 and chat.system == "Be brief."
    assert load(chat.save(tmp_path / "again.jsonl", times=True), api_key="k").messages == chat.messages
