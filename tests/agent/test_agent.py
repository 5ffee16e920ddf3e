from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from agent_scripted import USAGE, Gate, ScriptedClient, call, text, thinking

from mmsp_nb.agent import Agent
from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import AbortError, IncompleteStreamError, UnsupportedContentError
from mmsp_nb.tools import ToolRegistry, View, run_calls


def tide(port: str) -> str:
    """The tide."""
    return f"high at {port}"


async def collect(agent: Agent, message: Any = "question", **options: Any) -> list[dict[str, Any]]:
    return [event async for event in agent.run(message, **options)]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events if event["type"] != "event"]


def results(request: Any) -> list[dict[str, Any]]:
    return request[0][-1]["content_items"]


async def test_an_answer_without_tools_is_one_turn():
    client = ScriptedClient([thinking("Hm."), text("Hel", "lo")])
    events = await collect(Agent(client))
    assert kinds(events) == ["turn_start", "turn_end", "end"]
    assert events[0] == {
        "type": "turn_start",
        "turn": 1,
        "message": {"role": "user", "content_items": [{"type": "text.done", "text": "question"}]},
    }
    assert events[-2] == {
        "type": "turn_end",
        "turn": 1,
        "usage_metadata": USAGE,
        "finish_reason": "stop",
        "calls": [],
    }
    assert events[-1] == {"type": "end", "reason": "answer", "text": "Hello", "turns": 1, "pending": None}
    assert client.requests[0][1] == {}, "no tools, no key for them"


async def test_the_clients_events_come_through_untouched():
    client = ScriptedClient([text("a", "b")])
    events = [event["event"] for event in await collect(Agent(client)) if event["type"] == "event"]
    assert [e["event_type"] for e in events] == ["delta", "delta", "delta", "stop"]
    assert events[0]["content_items"] == [{"type": "text.delta", "text": "a"}]


async def test_all_results_go_back_in_one_message_after_the_stop():
    log: list[str] = []

    def first(n: int) -> int:
        log.append("tool")
        return n

    client = ScriptedClient(
        [text("Let me see."), call("first", "c1", n=1), call("nope", "c2"), call("first", "c3", n="x")],
        [text("Done.")],
    )
    agent = Agent(client, [first])
    async for event in agent.run("question"):
        if event["type"] == "event" and event["event"]["event_type"] == "stop":
            log.append("stop")
        elif event["type"] != "event":
            log.append(event["type"])
    assert log[:5] == ["turn_start", "stop", "turn_end", "tool_start", "tool"]
    assert log[-2:] == ["turn_end", "end"]
    sent = results(client.requests[1])
    assert [item["tool_call_id"] for item in sent] == ["c1", "c2", "c3"]
    assert sent[0] == {"type": "tool_result.done", "text": "1", "tool_call_id": "c1"}
    assert "There is no tool 'nope'" in sent[1]["text"] and "Invalid arguments" in sent[2]["text"]
    assert [m["role"] for m in client.requests[1][0]] == ["user", "assistant", "user"]


async def test_the_config_carries_the_tools_and_is_laid_over_the_defaults():
    extra = {"name": "other", "description": "x"}
    client = ScriptedClient([text("ok")])
    agent = Agent(client, [tide], config={"max_tokens": 5, "temperature": 1.0, "tools": [extra]})
    await collect(agent, config={"max_tokens": 9, "temperature": None})
    config = client.requests[0][1]
    assert config["max_tokens"] == 9 and "temperature" not in config
    assert [each["name"] for each in config["tools"]] == ["other", "tide"]


async def test_a_forced_tool_choice_holds_for_the_first_request_only():
    for choice in ("required", ["tide"]):
        client = ScriptedClient([call("tide", port="Brest")], [text("ok")])
        await collect(Agent(client, [tide]), config={"tool_choice": choice})
        assert [request[1].get("tool_choice") for request in client.requests] == [choice, None]
    client = ScriptedClient([call("tide", port="Brest")], [text("ok")])
    await collect(Agent(client, [tide]), config={"tool_choice": "none"})
    assert [request[1].get("tool_choice") for request in client.requests] == ["none", "none"]


async def test_the_limit_hands_back_what_was_not_sent():
    client = ScriptedClient(*([text("again"), call("tide", f"c{n}", port="Brest")] for n in range(5)))
    agent = Agent(client, [tide], max_turns=2)
    end = (await collect(agent))[-1]
    assert (end["reason"], end["turns"], end["text"]) == ("max_turns", 2, "again")
    assert len(client.requests) == 2
    assert end["pending"] is agent.pending
    assert end["pending"]["content_items"] == [
        {"type": "tool_result.done", "text": "high at Brest", "tool_call_id": "c1"}
    ]
    # and it can be sent to go on
    client.responses = [[text("Enough.")]]
    assert (await collect(agent, end["pending"]))[-1]["text"] == "Enough."


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(ValueError, match="max_turns"):
        Agent(ScriptedClient(), max_turns=limit)


async def test_a_call_that_keeps_failing_is_bounded_and_the_model_is_told():
    def fails(port: str) -> None:
        raise ValueError("closed")

    client = ScriptedClient(*([call("fails", port="Brest")] for _ in range(4)))
    agent = Agent(client, [fails], max_turns=4)
    end = (await collect(agent))[-1]
    assert end["reason"] == "max_turns"
    texts = [results(request)[0]["text"] for request in client.requests[1:]] + [
        end["pending"]["content_items"][0]["text"]
    ]
    assert texts[0] == texts[1] == "Error: ValueError: closed"
    assert "failed 3 times" in texts[2] and "failed 4 times" in texts[3]


async def test_an_error_of_the_client_passes_and_the_message_can_be_sent_again():
    failure = RuntimeError("cut")
    client = ScriptedClient([call("tide", port="Brest")], [text("Hal"), failure], [text("ok")])
    agent = Agent(client, [tide])
    with pytest.raises(RuntimeError) as caught:
        await collect(agent)
    assert caught.value is failure
    assert agent.pending["content_items"][0]["text"] == "high at Brest"
    assert (await collect(agent, agent.pending))[-1]["text"] == "ok"
    assert agent.pending is None


async def test_calls_of_a_turn_that_fails_are_not_run():
    ran: list[int] = []

    def tool() -> None:
        ran.append(1)

    client = ScriptedClient([call("tool"), RuntimeError("cut")])
    with pytest.raises(RuntimeError):
        await collect(Agent(client, [tool]))
    assert ran == []


async def test_a_stream_without_a_stop_is_an_error_and_runs_nothing():
    class Endless(ScriptedClient):
        async def streaming_response_stateful(self, message, config=None, signal=None):
            async for event in super().streaming_response_stateful(message, config):
                if event["event_type"] != "stop":
                    yield event

    with pytest.raises(IncompleteStreamError):
        await collect(Agent(Endless([call("tide", port="Brest")]), [tide]))


async def test_a_consumer_that_changes_an_event_does_not_change_the_call():
    client = ScriptedClient([call("tide", port="Brest")], [text("ok")])
    async for event in Agent(client, [tide]).run("question"):
        if event["type"] == "event":
            for item in event["event"]["content_items"]:
                if item["type"] == "tool_call.done":
                    item["arguments"]["port"] = "changed"
    assert results(client.requests[1])[0]["text"] == "high at Brest"


async def test_a_registry_is_used_live():
    registry = ToolRegistry()

    def adds_another() -> str:
        registry.add(tide)
        return "added"

    registry.add(adds_another)
    client = ScriptedClient([call("adds_another")], [call("tide", port="Brest")], [text("ok")])
    await collect(Agent(client, registry))
    assert [len(request[1]["tools"]) for request in client.requests] == [1, 2, 2]
    assert results(client.requests[2])[0]["text"] == "high at Brest"


async def test_pictures_that_a_model_cannot_read_are_left_out_and_it_is_told():
    def plot() -> View:
        return View("a plot", ("data:image/png;base64,AA==",))

    refused = UnsupportedContentError("no images", item_type="tool_result")
    client = ScriptedClient([call("plot")], [refused], [text("ok")])
    events = await collect(Agent(client, [plot]))
    assert events[-1]["text"] == "ok"
    assert "images" in results(client.requests[1])[0]
    [item] = results(client.requests[2])
    assert "images" not in item and item["text"].startswith("a plot\n(You cannot see")
    # a refusal that has nothing to do with a tool's pictures is not tried again
    with pytest.raises(UnsupportedContentError):
        await collect(Agent(ScriptedClient([refused], [text("not reached")])))


# hosts


async def test_a_hosts_executor_gets_prepared_calls_and_reports_from_any_thread():
    async def execute(calls, report):
        def work():
            outcomes = []
            for prepared in calls:
                report({"type": "tool_start", "call": prepared.call})
                outcomes.append(prepared.run())
                report({"type": "tool_end", "outcome": outcomes[-1]})
            return outcomes

        return await asyncio.to_thread(work)

    client = ScriptedClient([call("tide", "c1", port="Brest"), call("tide", "c2", port="Riga")], [text("ok")])
    events = await collect(Agent(client, [tide], execute=execute))
    assert kinds(events) == ["turn_start", "turn_end", *["tool_start", "tool_end"] * 2, "turn_start", "turn_end", "end"]
    assert [item["text"] for item in results(client.requests[1])] == ["high at Brest", "high at Riga"]


async def test_events_come_while_the_tools_run():
    gate = Gate()

    async def slow() -> str:
        await gate.wait()
        return "done"

    client = ScriptedClient([call("slow")], [text("ok")])
    seen = []
    async for event in Agent(client, [slow]).run("question"):
        seen.append(event["type"])
        if event["type"] == "tool_start":
            gate.open()
    assert seen.index("tool_start") < seen.index("tool_end")


async def test_every_call_is_answered_whatever_the_executor_returns():
    async def execute(calls, report):
        return (await run_calls(calls))[:1]

    client = ScriptedClient([call("tide", "c1", port="Brest"), call("tide", "c2", port="Riga")], [text("ok")])
    await collect(Agent(client, [tide], execute=execute))
    sent = results(client.requests[1])
    assert [item["tool_call_id"] for item in sent] == ["c1", "c2"]
    assert "Interrupted" in sent[1]["text"]


# stopping


class Deaf(ScriptedClient):
    """A client of the protocol that knows no signals."""

    async def streaming_response_stateful(self, message, config=None):
        async for event in super().streaming_response_stateful(message, config):
            yield event


@pytest.mark.parametrize("kind", [ScriptedClient, Deaf])
async def test_an_abort_while_streaming_ends_it(kind):
    gate, signal = Gate(), AbortSignal()
    client = kind([text("Hel"), gate, text("lo")])
    agent = Agent(client)
    seen = []
    with pytest.raises(AbortError) as caught:
        async for event in agent.run("question", signal=signal):
            seen.append(event["type"])
            threading.Thread(target=lambda: (gate.reached.wait(5), signal.abort("enough"))).start()
    assert caught.value.reason == "enough"
    assert "event" in seen and client.closed == 1
    assert agent.pending is not None and client.get_history() == []


@pytest.mark.parametrize("kind", [ScriptedClient, Deaf])
async def test_an_abort_before_the_start_sends_nothing(kind):
    signal = AbortSignal()
    signal.abort()
    with pytest.raises(AbortError):
        await collect(Agent(kind([text("x")])), signal=signal)


async def test_a_deaf_client_streams_as_any_other_when_nothing_is_aborted():
    events = await collect(Agent(Deaf([text("a", "b")])), signal=AbortSignal())
    assert events[-1]["text"] == "ab"


async def test_an_abort_between_response_and_tools_runs_no_tool():
    signal = AbortSignal()
    ran = []

    def tool() -> None:
        ran.append(1)

    agent = Agent(ScriptedClient([call("tool")]), [tool])
    with pytest.raises(AbortError):
        async for event in agent.run("question", signal=signal):
            if event["type"] == "turn_end":
                signal.abort()
    assert ran == []
    assert "Interrupted" in agent.pending["content_items"][0]["text"]


async def test_an_abort_during_tools_stops_them_and_answers_every_call():
    signal, cancelled = AbortSignal(), asyncio.Event()

    async def waits() -> None:
        try:
            signal.abort("enough")
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    client = ScriptedClient([call("tide", "c1", port="Brest"), call("waits", "c2")])
    agent = Agent(client, [tide, waits])
    with pytest.raises(AbortError):
        await collect(agent, signal=signal)
    assert cancelled.is_set()
    answers = {item["tool_call_id"]: item["text"] for item in agent.pending["content_items"]}
    assert set(answers) == {"c1", "c2"} and "Interrupted" in answers["c2"]


async def test_a_tool_that_finished_before_the_interruption_keeps_its_result():
    def interrupts() -> None:
        raise KeyboardInterrupt

    async def execute(calls, report):
        first = calls[0].run()
        report({"type": "tool_end", "outcome": first})
        raise asyncio.CancelledError

    client = ScriptedClient([call("tide", "c1", port="Brest"), call("interrupts", "c2")])
    agent = Agent(client, [tide, interrupts], execute=execute)
    with pytest.raises(asyncio.CancelledError):
        await collect(agent)
    first, second = agent.pending["content_items"]
    assert first["text"] == "high at Brest" and "Interrupted" in second["text"]


async def test_closing_the_iterator_during_tools_cancels_them():
    cancelled, entered = asyncio.Event(), asyncio.Event()

    async def waits() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    agent = Agent(ScriptedClient([call("waits")]), [waits])
    stream = agent.run("question")
    async for event in stream:
        if event["type"] == "tool_start":
            break
    await entered.wait()
    await stream.aclose()
    assert cancelled.is_set() and agent.pending is not None


async def test_cancelling_the_consumer_closes_the_request():
    gate = Gate()
    client = ScriptedClient([text("x"), gate])
    task = asyncio.ensure_future(collect(Agent(client)))
    while not gate.reached.is_set():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.closed == 1


async def test_tools_may_be_one_function_or_none_at_all():
    def look() -> int:
        """Look."""
        return 1

    for tools, names in ((look, ["look"]), (None, []), ([look], ["look"])):
        assert Agent(ScriptedClient([text("x")]), tools).tools.names() == names
    with pytest.raises(TypeError, match="tools must be a function or a list of functions, not 3"):
        Agent(ScriptedClient([text("x")]), 3)


def test_a_model_in_the_place_of_a_client_is_refused():
    with pytest.raises(TypeError, match=r"such as AutoLLMClient\(...\), not 'demo'"):
        Agent("demo")
