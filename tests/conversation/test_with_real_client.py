"""The conversation over the real client, over real sockets: the demo model, and a scripted provider."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest

from mmsp_nb.client import AutoLLMClient
from mmsp_nb.conversation import Conversation
from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import (
    AbortError,
    AuthenticationError,
    ConnectionCutError,
    InvalidMessageError,
    ToolCallArgumentParseError,
    UnsupportedParameterError,
)
from mmsp_nb.testing import FakeProvider, Gate, Reply, streams

TYPES = ["openai-chat", "openai-responses", "ant-messages"]


def get_weather(location: str) -> str:
    """Gets the current weather for a given location.

    Args:
        location: The city name
    """
    return f"Temperature in {location}: 22 C"


@pytest.mark.parametrize("client_type", TYPES)
def test_tools_run_over_every_dialect(client_type):
    chat = Conversation("demo", client_type=client_type, tools=[get_weather])
    answer = chat.ask("What's the weather in London and in Paris?")
    assert [call.result for call in answer.calls] == ["Temperature in London: 22 C", "Temperature in Paris: 22 C"]
    assert "London" in answer.text and "Paris" in answer.text
    assert answer.usage["response_tokens"] > 0 and answer.cost is None
    recorded = [(m["role"], m["content_items"]) for m in chat.client.get_history()]
    assert recorded == [(m["role"], m["content_items"]) for m in chat.messages]


def test_a_conversation_moves_through_dialects_and_forks():
    chat = Conversation("demo", client_type=TYPES[0], tools=[get_weather])
    chat.ask("What's the weather in London?")
    for client_type in TYPES[1:]:
        chat.switch("demo", client_type=client_type)
        fork = chat.fork()
        assert "Rome" in fork.ask("And in Rome?").text
        assert len(fork) == 2
    assert len(chat) == 1
    assert "Rome" in chat.ask("And in Rome?").text, "the history has come along"


def test_errors_of_the_provider_leave_a_conversation_that_works():
    chat = Conversation("demo", tools=[get_weather])
    with pytest.raises(AuthenticationError):
        chat.ask("demo: fail 401")
    with pytest.raises(ConnectionCutError):
        chat.ask("demo: cut")
    with pytest.raises(ToolCallArgumentParseError):
        chat.ask("demo: broken arguments")
    answer = chat.ask("demo: unknown tool")
    assert [call.status for call in answer.calls] == ["unknown"]
    assert chat.turns[0].state == "failed"
    assert chat.turns[1].state in ("partial", "failed") and chat.turns[1].error is not None
    assert "London" in chat.ask("What's the weather in London?").text


def test_what_is_wrong_in_form_is_told_before_anything_is_sent():
    chat = Conversation("demo")
    with pytest.raises(UnsupportedParameterError, match="max_tokens"):
        chat.ask("Hi", config={"max_token": 5})
    with pytest.raises(InvalidMessageError):
        chat.ask([{"type": "text.dome", "text": "Hi"}])
    assert chat.turns == [] and chat.ask("Hi").text


def test_an_abort_closes_the_connection_and_the_next_question_carries_what_came():
    gate = Gate()
    begin = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}\n\n'
    with FakeProvider(Reply([begin, gate]), streams.reply("text", "chat")) as provider:
        chat = Conversation("any", api_key="k", base_url=provider.url("/v1"), client_type="openai-chat")
        events, signal = [], AbortSignal()

        async def read() -> None:
            async for event in chat.stream("First", signal=signal):
                events.append(event)
                if event["type"] == "event":
                    signal.abort("enough")

        with pytest.raises(AbortError) as caught:
            asyncio.run(read())
        assert caught.value.reason == "enough"
        assert (chat.turns[0].state, chat.turns[0].text) == ("partial", "Hel")
        chat.ask("Second")
        sent = provider.requests[-1].body["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "user"]
    assert "Hel" in json.dumps(sent[1])


def test_a_client_that_was_given_can_be_forked():
    client = AutoLLMClient("demo")
    chat = Conversation(client=client)
    chat.ask("Hi")
    fork = chat.fork()
    assert fork.client is not client and fork.model == "demo"
    assert fork.ask("And again?").text and len(chat) == 1


def test_without_a_model_there_is_one_nevertheless(monkeypatch):
    from mmsp_nb import local

    monkeypatch.setattr(local, "choose", lambda environ: local.Choice("demo", None, "nothing else is there"))
    chat = Conversation()
    assert chat.model == "demo" and chat.why == "nothing else is there"
    assert chat.ask("Hi").complete


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_a_real_ctrl_c_in_a_script():
    code = """
import signal, threading, time
from mmsp_nb import Conversation
chat = Conversation("demo")
started = threading.Event()
def wait(seconds: int) -> str:
    "Waits."
    started.set()
    # in small steps: a signal that comes just before a blocking call does not end that call
    while True:
        time.sleep(0.02)
def interrupt():
    started.wait(20)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    chat.ask("wait for 30 seconds", tools=[wait], config={"tool_choice": "required"})
except KeyboardInterrupt:
    turn = chat.turns[0]
    print("stopped", turn.state, [outcome.status for outcome in turn.outcomes])
print(chat.ask("Hello").complete)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n")[:2] == ["stopped partial ['interrupted']", "True"], done.stderr
