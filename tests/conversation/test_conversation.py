from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from decimal import Decimal
from typing import Any

import pytest
from agent_scripted import USAGE, Gate, ScriptedClient, call, text, thinking

from mmsp_nb.conversation import Answer, Conversation, Turn
from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import (
    AbortError,
    ConcurrentCallError,
    InvalidMessageError,
    UnsupportedContentError,
    UnsupportedOperationError,
    UnsupportedParameterError,
)
from mmsp_nb.tools import ToolRegistry, View


def tide(port: str) -> dict[str, Any]:
    """The tide."""
    return {"port": port, "height": 6.5}


def chat(*responses: Any, **options: Any) -> Conversation:
    return Conversation(client=ScriptedClient(*responses), **options)


def said(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Role and contents of messages, short."""
    short = []
    for message in messages:
        for item in message["content_items"]:
            kind = item["type"].partition(".")[0]
            value = item.get("text", item.get("thinking", item.get("name", item.get("image_url"))))
            short.append((message["role"][0], f"{kind}:{value}"))
    return short


def sent(conversation: Conversation, index: int = -1) -> list[tuple[str, Any]]:
    return said(conversation.client.requests[index][0])


# asking


def test_ask_returns_an_answer_that_reads_like_its_text():
    conversation = chat([thinking("Hm."), text("Hel", "lo")])
    answer = conversation.ask("Say hello")
    assert isinstance(answer, Answer)
    assert str(answer) == answer.text == "Hello"
    assert answer.thinking == "Hm."
    assert answer.model == "scripted" and answer.finish_reason == "stop"
    assert answer.usage == USAGE and answer.complete and answer.calls == []
    assert said(answer.messages) == [("u", "text:Say hello"), ("a", "thinking:Hm."), ("a", "text:Hello")]
    turn = answer.turn
    assert conversation.turns == [turn] and turn.state == "done" and turn.reason == "answer"
    assert 0 <= turn.first_token <= turn.duration


def test_calls_keep_the_real_objects():
    conversation = chat([call("tide", port="Brest")], [text("6.5 m")], tools=tide)
    answer = conversation.ask("How high?")
    [made] = answer.calls
    assert (made.name, made.arguments, made.status) == ("tide", {"port": "Brest"}, "ok")
    assert made.result == {"port": "Brest", "height": 6.5}
    assert said(answer.messages) == [
        ("u", "text:How high?"),
        ("a", "tool_call:tide"),
        ("u", 'tool_result:{"port":"Brest","height":6.5}'),
        ("a", "text:6.5 m"),
    ]
    assert answer.usage["prompt_tokens"] == 20, "of both requests"
    assert answer.turn.tools == ["tide"]


def test_the_next_question_builds_on_the_history():
    conversation = chat([text("one")], [text("two")])
    conversation.ask("1")
    conversation.ask("2")
    assert sent(conversation) == [("u", "text:1"), ("a", "text:one"), ("u", "text:2")]
    assert said(conversation.messages) == [*sent(conversation), ("a", "text:two")]
    assert conversation.turns[1].parent == conversation.turns[0].id
    assert len(conversation) == 2 and conversation.usage["response_tokens"] == 10


def test_config_and_system_prompt_are_defaults_that_a_question_can_override():
    conversation = chat([text("a")], [text("b")], [text("c")], system="Be brief.", config={"temperature": 1.0})
    conversation.ask("1", config={"max_tokens": 5})
    conversation.ask("2", config={"temperature": None})
    conversation.system = "Be long."
    conversation.ask("3")
    assert [request[1] for request in conversation.client.requests] == [
        {"system_prompt": "Be brief.", "temperature": 1.0, "max_tokens": 5},
        {"system_prompt": "Be brief."},
        {"system_prompt": "Be long.", "temperature": 1.0},
    ]
    assert conversation.turns[0].config == {"system_prompt": "Be brief.", "temperature": 1.0, "max_tokens": 5}


def test_tools_for_one_question_and_a_registry_that_is_used_live():
    registry = ToolRegistry()
    conversation = chat([text("a")], [text("b")], [text("c")], [text("d")], tools=registry)
    conversation.ask("1", tools=[tide])
    conversation.ask("2")
    registry.add(tide)
    conversation.ask("3")
    conversation.tools = None
    conversation.ask("4")
    names = [[each["name"] for each in config.get("tools", [])] for _, config in conversation.client.requests]
    assert names == [["tide"], [], ["tide"], []]


def test_pictures_and_lists_of_items():
    url = "https://example.org/a.png"
    conversation = chat([text("a")], [text("b")])
    conversation.ask("What is this?", images=url)
    conversation.ask(["Compare", {"type": "image_url.done", "image_url": url}, "and", b"\x89PNG\r\n\x1a\n"])
    assert sent(conversation, 0) == [("u", f"image_url:{url}"), ("u", "text:What is this?")]
    assert sent(conversation, 1)[-4:-1] == [("u", "text:Compare"), ("u", f"image_url:{url}"), ("u", "text:and")]
    assert sent(conversation, 1)[-1][1].startswith("image_url:data:image/png;base64,")


@pytest.mark.parametrize("prompt", ["", "  \n", [], 3, [object()]])
def test_what_is_no_prompt_is_refused_and_leaves_no_turn(prompt):
    conversation = chat([text("fine")])
    with pytest.raises(InvalidMessageError):
        conversation.ask(prompt)
    assert conversation.turns == []
    assert conversation.ask("again").text == "fine"


def test_a_question_refused_before_sending_leaves_the_conversation_as_it_was():
    refusal = UnsupportedParameterError("no such key", parameter="max_token")
    conversation = chat([text("one")], [refusal], [text("two")])
    conversation.ask("1")
    with pytest.raises(UnsupportedParameterError):
        conversation.ask("2", config={"max_token": 1})
    assert len(conversation.turns) == 1
    conversation.ask("3")
    assert sent(conversation) == [("u", "text:1"), ("a", "text:one"), ("u", "text:3")]


def test_the_arguments_of_the_constructor_are_checked():
    with pytest.raises(TypeError, match="either a client"):
        Conversation("demo", client=ScriptedClient())
    with pytest.raises(TypeError, match=r"'max_turn'.*did you mean 'max_turns'"):
        Conversation("demo", max_turn=3)
    with pytest.raises(ValueError, match="max_turns"):
        chat(max_turns=0)
    with pytest.raises(TypeError, match="not int"):
        chat(tools=[3])
    client = ScriptedClient()
    client.set_history([{"role": "user", "content_items": [{"type": "text.done", "text": "before"}]}])
    assert said(Conversation(client=client).messages) == [("u", "text:before")]


def test_the_limit_of_requests_can_be_gone_on_from():
    conversation = chat(
        [call("tide", port="Brest")], [call("tide", "c2", port="Riga")], [text("done")], tools=tide, max_turns=2
    )
    answer = conversation.ask("How high?")
    assert not answer.complete and answer.turn.reason == "max_turns" and answer.turn.state == "done"
    assert len(answer.calls) == 2
    assert "stopped at the limit" in repr(answer)
    assert conversation.ask().text == "done"
    assert sent(conversation)[-2:] == [("a", "tool_call:tide"), ("u", 'tool_result:{"port":"Riga","height":6.5}')]
    assert [m["role"] for m in conversation.messages] == ["user", "assistant"] * 3


def test_results_that_were_not_sent_go_out_with_the_next_question():
    conversation = chat([call("tide", port="Brest")], [text("done")], tools=tide, max_turns=1)
    conversation.ask("How high?")
    conversation.ask("Never mind, say hello")
    assert sent(conversation)[-2:] == [
        ("u", 'tool_result:{"port":"Brest","height":6.5}'),
        ("u", "text:Never mind, say hello"),
    ]
    assert [m["role"] for m in conversation.client.requests[-1][0]] == ["user", "assistant", "user"]
    assert said(conversation.turns[1].messages)[0] == ("u", "text:Never mind, say hello")


def test_there_must_be_something_to_go_on_with():
    conversation = chat([text("a")])
    with pytest.raises(InvalidMessageError, match="nothing to go on with"):
        conversation.ask()
    conversation.ask("1")
    with pytest.raises(InvalidMessageError, match="nothing to go on with"):
        conversation.ask()


# hosts: blocking


def test_ask_works_inside_a_running_loop():
    async def main() -> str:
        return chat([text("fine")]).ask("1").text

    assert asyncio.run(main()) == "fine"


def test_synchronous_tools_run_on_the_calling_thread():
    threads = []

    def where() -> None:
        threads.append(threading.current_thread())

    chat([call("where")], [text("ok")], tools=where).ask("1")
    assert threads == [threading.current_thread()]


async def test_ask_async_runs_on_the_callers_loop():
    loops = []

    async def where() -> None:
        loops.append(asyncio.get_running_loop())

    answer = await chat([call("where")], [text("ok")], tools=where).ask_async("1")
    assert answer.text == "ok" and loops == [asyncio.get_running_loop()]


def test_a_tool_may_ask_another_conversation():
    other = chat([text("inner")])

    def ask_other() -> str:
        return other.ask("2").text

    conversation = chat([call("ask_other")], [text("outer")], tools=ask_other)
    assert conversation.ask("1").calls[0].result == "inner"


def test_an_async_tool_that_blocks_its_own_loop_is_told_what_to_do():
    other = chat([text("inner")])

    async def ask_other() -> str:
        return other.ask("2").text

    outcome = chat([call("ask_other")], [text("outer")], tools=ask_other).ask("1").calls[0]
    assert "ask_async" in outcome.text and isinstance(outcome.error, UnsupportedOperationError)
    assert other.turns == []


def test_a_tool_that_asks_its_own_conversation_is_refused():
    def recursive() -> str:
        return conversation.ask("2").text

    conversation = chat([call("recursive")], [text("ok")], tools=recursive)
    outcome = conversation.ask("1").calls[0]
    assert isinstance(outcome.error, ConcurrentCallError)
    assert conversation.turns[0].state == "done" and len(conversation.turns) == 1


def test_several_threads_may_ask_at_once():
    gates = [Gate() for _ in range(3)]
    conversations = [chat([gate, text(str(n))]) for n, gate in enumerate(gates)]
    answers: dict[int, str] = {}

    def ask(n: int) -> None:
        answers[n] = conversations[n].ask("1").text

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    assert all(gate.reached.wait(5) for gate in gates)
    for gate in reversed(gates):
        gate.open()
    for thread in threads:
        thread.join(5)
    assert answers == {0: "0", 1: "1", 2: "2"}


def test_where_there_are_no_threads_the_way_out_is_named(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    from mmsp_nb import loop

    monkeypatch.setattr(loop, "_shared", loop.BackgroundLoop())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(UnsupportedOperationError, match="ask_async"):
        chat([text("x")]).ask("1")


def test_a_second_question_meanwhile_is_refused_and_does_not_disturb_the_first():
    gate = Gate()
    conversation = chat([gate, text("first")])
    answers = []
    thread = threading.Thread(target=lambda: answers.append(conversation.ask("1")))
    thread.start()
    assert gate.reached.wait(5) and conversation.running
    for action in (
        lambda: conversation.ask("2"),
        conversation.reset,
        conversation.undo,
        lambda: conversation.switch("x"),
    ):
        with pytest.raises(ConcurrentCallError):
            action()
    gate.open()
    thread.join(5)
    assert answers[0].text == "first" and len(conversation.turns) == 1 and not conversation.running


def test_a_registered_host_consumes_the_stream():
    from mmsp_nb import hosts

    class Host(hosts.PlainHost):
        def run(self, conversation, stream):
            super().run(conversation, stream)
            return True

    previous = hosts.register(Host())
    try:
        answer = chat([text("ok")]).ask("1")
    finally:
        hosts.register(previous)
    assert answer.shown is True and hosts.current() is previous
    answer._ipython_display_()  # draws nothing, once
    with pytest.raises(NotImplementedError):
        answer._ipython_display_()


# stopping


def interrupted_at(gate: Gate, conversation: Conversation, prompt: str = "1") -> None:
    signal = AbortSignal()
    thread = threading.Thread(target=lambda: (gate.reached.wait(5), signal.abort()))
    thread.start()
    with pytest.raises(AbortError):
        conversation.ask(prompt, signal=signal)
    thread.join(5)


def test_an_interrupted_answer_is_kept_and_the_next_question_works():
    gate = Gate()
    conversation = chat([thinking("Hm."), text("Hel", "lo")[:2], gate], [text("ok")])
    interrupted_at(gate, conversation)
    [turn] = conversation.turns
    assert turn.state == "partial" and turn.error is None and turn.text == "Hello"
    assert turn.messages[-1]["content_items"][-1] == {"type": "text.done", "text": "Hello", "partial": True}
    assert "interrupted" in repr(conversation)
    conversation.ask("2")
    # thinking that led to nothing complete is not sent again
    assert sent(conversation) == [("u", "text:1"), ("a", "text:Hello"), ("u", "text:2")]
    assert all("partial" not in item for m in conversation.client.requests[-1][0] for item in m["content_items"])


def test_half_streamed_arguments_are_dropped_and_complete_calls_are_answered():
    gate = Gate()
    conversation = chat(
        [text("Let me see."), call("tide", "c1", port="Brest"), call("tide", "c2", port="Riga")[:2], gate],
        [text("ok")],
        tools=tide,
    )
    interrupted_at(gate, conversation)
    assert [outcome.status for outcome in conversation.turns[0].outcomes] == ["interrupted"]
    conversation.ask("2")
    assert sent(conversation) == [
        ("u", "text:1"),
        ("a", "text:Let me see."),
        ("a", "tool_call:tide"),
        ("u", "tool_result:Interrupted before there was a result."),
        ("u", "text:2"),
    ]
    assert [m["role"] for m in conversation.client.requests[-1][0]] == ["user", "assistant", "user"]


def test_when_nothing_or_only_thinking_came_the_next_question_starts_clean_and_the_prompt_can_be_sent_again():
    for begin in ([], thinking("Hm.")[:1], thinking("Hm.")):
        gate = Gate()
        conversation = chat([*begin, gate], [text("ok")], [text("again")])
        interrupted_at(gate, conversation)
        assert conversation.turns[0].state == "partial"
        conversation.ask("2")
        assert sent(conversation) == [("u", "text:2")]
        assert conversation.turns[0].pending["content_items"][0]["text"] == "1"


def test_an_interrupted_tool_leaves_a_valid_history_with_the_results_there_were():
    def stops() -> None:
        raise KeyboardInterrupt

    conversation = chat(
        [call("tide", "c1", port="Brest"), call("stops", "c2"), call("tide", "c3", port="Riga")],
        [text("ok")],
        tools=[tide, stops],
    )
    with pytest.raises(KeyboardInterrupt):
        conversation.ask("1")
    [turn] = conversation.turns
    assert turn.state == "partial"
    assert {o.call["tool_call_id"]: o.status for o in turn.outcomes} == {
        "c1": "ok",
        "c2": "interrupted",
        "c3": "interrupted",
    }
    conversation.ask("2")
    assert sent(conversation)[-4:] == [
        ("u", 'tool_result:{"port":"Brest","height":6.5}'),
        ("u", "tool_result:Interrupted before there was a result."),
        ("u", "tool_result:Interrupted before there was a result."),
        ("u", "text:2"),
    ]


def test_pictures_that_were_left_out_stay_out_of_the_history():
    def plot() -> View:
        return View("a plot", ("data:image/png;base64,AA==",))

    refused = UnsupportedContentError("no images", item_type="tool_result")
    conversation = chat([call("plot")], [refused], [text("x")], [RuntimeError("down")], [text("ok")], tools=plot)
    answer = conversation.ask("1")
    assert answer.messages[2]["content_items"][0]["images"], "a person may see them"
    with pytest.raises(RuntimeError):
        conversation.ask("2")
    conversation.ask("3")
    assert "images" not in conversation.client.requests[-1][0][2]["content_items"][0]


def test_an_error_in_mid_stream_keeps_what_came():
    failure = RuntimeError("cut sk-proj-aB3dE5gH7jK9mN1pQ3s")
    conversation = chat([text("Hel", "lo")[:1], failure], [text("ok")])
    with pytest.raises(RuntimeError):
        conversation.ask("1")
    [turn] = conversation.turns
    assert (turn.state, turn.error, turn.text) == ("partial", failure, "Hel")
    assert "RuntimeError" in repr(conversation) and "aB3dE5" not in repr(conversation)
    conversation.ask("2")
    assert sent(conversation) == [("u", "text:1"), ("a", "text:Hel"), ("u", "text:2")]


def test_a_failed_question_keeps_its_prompt_and_can_be_asked_again():
    conversation = chat([RuntimeError("down")], [RuntimeError("down")], [text("ok")])
    with pytest.raises(RuntimeError):
        conversation.ask("1")
    assert conversation.turns[0].state == "failed" and conversation.turns[0].prompt == "1"
    with pytest.raises(RuntimeError):
        conversation.ask()
    assert conversation.ask().text == "ok"
    assert sent(conversation) == [("u", "text:1")]
    assert said(conversation.messages) == [("u", "text:1"), ("a", "text:ok")]


def test_a_failure_after_tools_have_run_loses_no_result():
    conversation = chat(
        [call("tide", port="Brest")], [RuntimeError("down")], [RuntimeError("down")], [text("ok")], tools=tide
    )
    with pytest.raises(RuntimeError):
        conversation.ask("1")
    assert conversation.turns[0].state == "partial" and len(conversation.turns[0].outcomes) == 1
    with pytest.raises(RuntimeError):
        conversation.ask()
    assert conversation.ask().text == "ok"
    assert sent(conversation) == [
        ("u", "text:1"),
        ("a", "tool_call:tide"),
        ("u", 'tool_result:{"port":"Brest","height":6.5}'),
    ]
    assert len(conversation.messages) == 4


def test_a_keyboard_interrupt_while_waiting_stops_at_once_and_keeps_what_came():
    """In an interpreter of its own, with a real SIGINT."""
    code = f"""
import sys, threading, time, os, signal
sys.path[:0] = {sys.path!r}
from agent_scripted import Gate, ScriptedClient, text
from mmsp_nb.conversation import Conversation
gate = Gate()
chat = Conversation(client=ScriptedClient([text("Hel", "lo")[:1], gate], [text("ok")]))
def interrupt():
    gate.reached.wait(10)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    chat.ask("1")
except KeyboardInterrupt:
    print("stopped", chat.turns[0].state, chat.turns[0].text, chat.client.closed)
print(chat.ask("2"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["stopped", "partial", "Hel", "1", "ok"], done.stderr


# streams


async def test_a_stream_yields_the_agents_events_and_the_books_are_complete_at_the_end():
    conversation = chat([text("ok")])
    states = []
    async for event in conversation.stream("1"):
        states.append((event["type"], conversation.turns[0].state))
    assert states[0] == ("turn_start", "running") and states[-1] == ("end", "done")


async def test_a_stream_does_nothing_before_its_first_step():
    conversation = chat([text("ok")])
    stream = conversation.stream("1")
    assert conversation.turns == [] and not conversation.running
    await stream.aclose()
    assert conversation.turns == []


async def test_a_stream_that_is_closed_early_leaves_a_partial_turn():
    conversation = chat([text("Hel", "lo")], [text("ok")])
    stream = conversation.stream("1")
    async for event in stream:
        if event["type"] == "event":
            break
    await stream.aclose()
    assert conversation.turns[0].state == "partial" and conversation.turns[0].text == "Hel"
    assert (await conversation.ask_async("2")).text == "ok"


async def test_a_stream_that_was_dropped_does_not_block_the_next_question():
    conversation = chat([text("Hel", "lo")], [text("ok")])
    async for event in conversation.stream("1"):
        if event["type"] == "event":
            break
    await asyncio.sleep(0)
    assert (await conversation.ask_async("2")).text == "ok"
    assert [turn.state for turn in conversation.turns] == ["partial", "done"]
    assert sent(conversation) == [("u", "text:1"), ("a", "text:Hel"), ("u", "text:2")]


async def test_a_stream_left_at_the_stop_of_an_answer_is_complete():
    conversation = chat([text("Hello")])
    stream = conversation.stream("1")
    async for event in stream:
        if event["type"] == "event" and event["event"]["event_type"] == "stop":
            break
    await stream.aclose()
    assert conversation.turns[0].state == "done" and said(conversation.messages)[-1] == ("a", "text:Hello")


@pytest.mark.parametrize("where", ["stop", "turn_end", "tool_start", "tool_end"])
async def test_wherever_a_stream_is_left_the_history_stays_valid(where):
    conversation = chat([call("tide", port="Brest")], [text("ok")], tools=tide)
    stream = conversation.stream("1")
    async for event in stream:
        kind = event["event"]["event_type"] if event["type"] == "event" else event["type"]
        if kind == where:
            break
    await stream.aclose()
    assert conversation.turns[0].state == "partial"
    await conversation.ask_async("2")
    messages = conversation.client.requests[-1][0]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    first, second = messages[-1]["content_items"]
    assert (first["tool_call_id"], second["text"]) == ("c1", "2")
    assert ("6.5" in first["text"]) == (where == "tool_end")


async def test_the_consumer_of_a_stream_cannot_change_the_record():
    conversation = chat([text("Hello")])
    async for event in conversation.stream("1"):
        if event["type"] == "event":
            for item in event["event"]["content_items"]:
                item["text"] = "changed"
    assert conversation.turns[0].text == "Hello"
    kept = conversation.messages
    kept[0]["content_items"].clear()
    assert said(conversation.messages)[0] == ("u", "text:1")


# changing


def test_reset_can_be_undone():
    conversation = chat([text("one")], [text("two")], [text("three")])
    conversation.ask("1")
    conversation.reset()
    assert conversation.turns == [] and conversation.messages == [] and conversation.usage is None
    conversation.ask("2")
    assert sent(conversation) == [("u", "text:2")]
    assert conversation.undo()[0].prompt == "2"
    assert [turn.prompt for turn in conversation.undo()] == ["1"]
    conversation.ask("3")
    assert sent(conversation) == [("u", "text:1"), ("a", "text:one"), ("u", "text:3")]


def test_undo_takes_back_the_last_turn_and_ends_somewhere():
    conversation = chat([text("one")], [text("two")], [text("three")])
    conversation.ask("1")
    conversation.ask("2")
    assert conversation.undo()[0].prompt == "2"
    conversation.ask("3")
    assert sent(conversation) == [("u", "text:1"), ("a", "text:one"), ("u", "text:3")]
    conversation.undo()
    conversation.undo()
    with pytest.raises(UnsupportedOperationError, match="nothing to undo"):
        conversation.undo()


def test_undoing_a_resumed_turn_gives_back_what_was_pending():
    conversation = chat([call("tide", port="Brest")], [text("a")], [text("b")], tools=tide, max_turns=1)
    conversation.ask("1")
    conversation.ask()
    conversation.undo()
    assert conversation.ask().text == "b"
    assert sent(conversation)[-1] == ("u", 'tool_result:{"port":"Brest","height":6.5}')


def test_a_fork_begins_like_the_original_and_shares_nothing_that_changes():
    conversation = chat([text("one")], [text("two")], tools=tide, system="s", name="n")
    conversation.ask("1")
    conversation.ask("2")
    for at in (0, -2, conversation.turns[0], conversation.turns[0].id):
        fork = conversation.fork(at, client=ScriptedClient([text("other")]))
        assert [turn.prompt for turn in fork.turns] == ["1"] and fork.turns[0].id == conversation.turns[0].id
        fork.ask("3")
        assert sent(fork) == [("u", "text:1"), ("a", "text:one"), ("u", "text:3")]
        assert fork.turns[1].parent == conversation.turns[0].id
    fork.turns[0].messages.clear()
    fork.system = "other"
    fork.tools.remove("tide")
    assert len(conversation.turns) == 2 and conversation.turns[0].messages
    assert conversation.system == "s" and "tide" in conversation.tools and fork.name == "n"
    whole = conversation.fork(client=ScriptedClient())
    assert whole.messages == conversation.messages and whole.turns[1] is not conversation.turns[1]


def test_a_fork_at_a_turn_that_is_not_there_says_so():
    conversation = chat([text("one")])
    conversation.ask("1")
    for at in (1, -2, "nope", Turn("x")):
        with pytest.raises(UnsupportedOperationError, match="no turn"):
            conversation.fork(at, client=ScriptedClient())
    with pytest.raises(UnsupportedOperationError, match="fork"):
        conversation.fork()


def test_switching_keeps_the_history_but_not_another_vendors_signatures():
    conversation = chat([thinking("Hm.", signature="s1"), text("one")])
    conversation.client.client_type = "first"
    conversation.ask("1")
    other = ScriptedClient([text("two")], model="other")
    other.client_type = "second"
    report = conversation.switch(client=other)
    assert conversation.model == "other" and isinstance(bool(report), bool)
    conversation.ask("2")
    assert ("a", "text:one") in sent(conversation)
    assert all("fidelity" not in item for m in other.requests[0][0] for item in m["content_items"])
    assert [turn.model for turn in conversation.turns] == ["scripted", "other"]
    back = ScriptedClient([text("three")])
    back.client_type = "first"
    conversation.switch(client=back)
    conversation.ask("3")
    assert back.requests[0][0][1]["content_items"][0]["fidelity"] == {"signature": "s1"}


def test_a_switch_that_fails_changes_nothing():
    conversation = chat([text("one")])
    client = conversation.client
    with pytest.raises(ValueError, match="no-such-model"):
        conversation.switch("no-such-model")
    with pytest.raises(TypeError):
        conversation.switch()
    assert conversation.client is client


def test_cost_is_the_sum_of_what_is_known():
    conversation = chat([text("one")], [text("two")])
    assert conversation.cost is None
    conversation.ask("1")
    assert conversation.cost is None and conversation.turns[0].cost is None
    conversation.turns[0].prices = {"currency": "USD", "prompt_tokens": 2, "response_tokens": 10}
    assert conversation.cost == conversation.turns[0].cost == Decimal("0.00007")


def test_the_price_comes_from_the_catalogue():
    from mmsp_nb.providers import catalog

    known = next(model for model in catalog.models() if model.prompt_price and model.response_price)
    client = ScriptedClient([text("one")], model=known.model)
    client.base_url = known.base_url
    conversation = Conversation(client=client)
    conversation.ask("1")
    assert conversation.cost > 0
    client.base_url = "http://127.0.0.1:1/v1"
    assert conversation.fork(client=client) is not None
    client.responses = [[text("two")]]
    assert Conversation(client=client).ask("1").cost is None, "another endpoint has other prices"
