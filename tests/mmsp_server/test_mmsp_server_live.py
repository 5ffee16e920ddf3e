"""Our client through the reference's server: to the demo model, and to scripted vendors of every kind."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from mmsp_server_process import DEMO
from switch_kinds import KINDS, Kind, exchange, opaque_in, picture, send, user
from wire_rules import check

from mmsp_nb import Agent, AutoLLMClient, Conversation, UpstreamError
from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import AbortError
from mmsp_nb.testing import FakeProvider, Gate, Reply, streams
from mmsp_nb.testing.parts import image, text
from mmsp_nb.testing.wire import generate_content
from mmsp_nb.transport.clients import httpx_handler
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.wire import Timeouts, WireRequest

pytestmark = pytest.mark.reference

Make = Callable[..., AutoLLMClient]
UPSTREAM = [kind for kind in KINDS.values() if kind.name != "mmsp"]
# the reference cannot send calls to google-official that have their name for an id
WITH_IDS = [replace(kind, call_id="call-{}".format) if kind.name == "google-official" else kind for kind in UPSTREAM]


async def said(client: AutoLLMClient, *items: Any, config: Any = None) -> list[Any]:
    return [event async for event in client.streaming_response_stateful(user(*items), config)]


def text_of(events: list[Any]) -> str:
    items = [item for event in events for item in event["content_items"]]
    return "".join(item["text"] for item in items if item["type"] == "text.done")


# text


@pytest.mark.parametrize("model", DEMO)
async def test_text_streams_through(client: Make, model: str) -> None:
    chat = client(model)
    events = await said(chat, "What is 17 * 23?")
    assert "391" in text_of(events)
    deltas = [item["text"] for event in events for item in event["content_items"] if item["type"] == "text.delta"]
    assert len(deltas) > 3 and "".join(deltas) == text_of(events)
    stop = events[-1]
    assert (stop["event_type"], stop["finish_reason"]) == ("stop", "stop")
    assert stop["usage_metadata"]["response_tokens"] > 0
    asked, answer = chat.get_history()
    assert answer["content_items"][-1]["text"] == text_of(events) and answer["usage_metadata"] == stop["usage_metadata"]
    assert asked["origin"] == answer["origin"] == f"mmsp@127.0.0.1/{model}"


async def test_the_server_gets_the_history_and_the_config(client: Make, provider: FakeProvider) -> None:
    kind = KINDS["openai-chat"]
    chat = client("fake-openai-chat")
    provider.add(kind.says("one"), kind.says("two"))
    await said(chat, "Ünïcode 🌊", config={"system_prompt": "Be brief.", "max_tokens": 50})
    await said(chat, "And?", config={"max_tokens": 60})
    first, second = (request.body for request in provider.requests)
    assert first["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (first["max_completion_tokens"], second["max_completion_tokens"]) == (50, 60)
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][0]["content"] == [{"type": "text", "text": "Ünïcode 🌊"}]


async def test_the_models_are_listed_in_the_tables_order(client: Make) -> None:
    assert await client().list_models() == [*DEMO, *(f"fake-{kind.name}" for kind in UPSTREAM)]


async def test_many_at_once(client: Make) -> None:
    async def one(number: int) -> str:
        return text_of(await said(client(), f"What is {number} * 10?"))

    answers = await asyncio.gather(*(one(number) for number in range(2, 10)))
    assert all(str(number * 10) in answer for number, answer in enumerate(answers, 2))


# tools


def get_weather(location: str) -> str:
    """Gets the current weather for a given location.

    Args:
        location: The city name
    """
    return f"Temperature in {location}: 22 C"


@pytest.mark.parametrize("model", DEMO)
async def test_the_agents_loop_runs_through_it(client: Make, model: str) -> None:
    chat = client(model)
    agent = Agent(chat, [get_weather])
    message = user("What's the weather in London and in Paris?")
    events = [event async for event in agent.run(message)]
    outcomes = [event["outcome"] for event in events if event["type"] == "tool_end"]
    assert [outcome.result for outcome in outcomes] == [get_weather("London"), get_weather("Paris")]
    assert events[-1]["reason"] == "answer" and "22 C" in events[-1]["text"]
    assert [message["role"] for message in chat.get_history()] == ["user", "assistant"] * 2


def test_a_conversation_lives_on_it(server: Any) -> None:
    chat = Conversation("demo", api_key="team-key", base_url=server.base_url, client_type="mmsp", tools=[get_weather])
    assert [call.result for call in chat.ask("What's the weather in Rome?").calls] == [get_weather("Rome")]
    assert "391" in chat.ask("What is 17 * 23?").text
    assert len(chat.turns) == 2


@pytest.mark.parametrize("kind", WITH_IDS, ids=lambda kind: kind.name)
async def test_calls_signatures_and_images_go_there_and_back(client: Make, provider: FakeProvider, kind: Kind) -> None:
    chat = client(f"fake-{kind.name}")
    await exchange(chat, kind, provider, "one")
    await send(chat, user("And then?"), provider, kind.says("two"))
    made = opaque_in(chat.get_history()[:-1])
    for request in provider.requests:
        check(kind, request.body, made)
    assert opaque_in(provider.last.body) == made, "what the vendor made comes back to it through the server"


# images


@pytest.mark.parametrize("model", DEMO)
async def test_images_go_in(client: Make, model: str) -> None:
    chat = client(model)
    assert "PNG image of 1×1" in text_of(await said(chat, "What is this?", picture()))


async def test_bytes_go_in_and_come_out(client: Make, provider: FakeProvider) -> None:
    chat = client("fake-google-genai")
    data = bytes(range(256))
    answers = [text("Here."), image(data)]
    provider.add(*(Reply.stream(generate_content.frames(answers)) for _ in range(2)))
    events = await said(chat, {"type": "inline_data.done", "data": data, "mime_type": "image/png"}, "Draw it.")
    drawn = [item for event in events for item in event["content_items"] if item["type"] == "inline_data.done"]
    assert [item["data"] for item in drawn] == [data]
    await said(chat, "Again.")
    asked, drawing, _ = provider.last.body["contents"]
    for part in (asked["parts"][0], drawing["parts"][1]):
        assert base64.urlsafe_b64decode(part["inlineData"]["data"]) == data


# errors


@pytest.mark.parametrize(
    ("model", "key", "status", "kind"),
    [("nope", "team-key", 404, "NotFoundError"), ("demo", "wrong", 401, "AuthenticationError")],
)
async def test_what_the_server_refuses(client: Make, model: str, key: str, status: int, kind: str) -> None:
    chat = client(model, key)
    with pytest.raises(UpstreamError) as caught:
        await said(chat, "Hi")
    assert (caught.value.status, caught.value.error_type) == (status, kind)
    assert chat.get_history() == [] and "team-key" not in str(caught.value)


async def test_a_listing_needs_the_key_too(client: Make) -> None:
    with pytest.raises(UpstreamError) as caught:
        await client(key="wrong").list_models()
    assert caught.value.status == 401


@pytest.mark.parametrize(("order", "status"), [("fail 401", 401), ("fail 400", 400), ("fail 404", 404)])
async def test_what_the_vendor_refuses(client: Make, order: str, status: int) -> None:
    chat = client()
    with pytest.raises(UpstreamError) as caught:
        await said(chat, f"demo: {order}")
    assert caught.value.status == status and "told to" in str(caught.value)
    assert "391" in text_of(await said(chat, "What is 17 * 23?")), "the client goes on"


@pytest.mark.parametrize(
    ("order", "kind"),
    [
        ("empty", "EmptyResponseError"),
        ("no usage", "IncompleteStreamError"),
        ("cut", None),
        ("error after 200", None),
    ],
)
async def test_what_goes_wrong_inside_the_stream(client: Make, order: str, kind: str | None) -> None:
    chat = client()
    with pytest.raises(UpstreamError) as caught:
        await said(chat, f"demo: {order}")
    assert kind in (None, caught.value.error_type) and caught.value.error["message"]
    assert chat.get_history() == []


async def test_bad_arguments_are_told_with_the_call(client: Make) -> None:
    tools = [{"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}]
    with pytest.raises(UpstreamError) as caught:
        await said(client(), "demo: broken arguments", config={"tools": tools})
    assert caught.value.error_type == "ToolCallArgumentParseError" and caught.value.error["tool_name"] == "f"


async def test_what_the_servers_adapter_rejects(client: Make) -> None:
    with pytest.raises(UpstreamError) as caught:
        await said(client(), {"type": "inline_data.done", "data": b"x", "mime_type": "image/png"})
    assert (caught.value.error_type, caught.value.error["item_type"]) == ("InvalidMessageError", "inline_data.done")
    with pytest.raises(UpstreamError) as caught:
        await said(client(), "Hi", config={"prompt_caching": "disable"})
    assert (caught.value.error_type, caught.value.error["parameter"]) == (
        "UnsupportedParameterError",
        "prompt_caching",
    )


async def test_messages_that_are_none_are_the_servers_to_judge(client: Make) -> None:
    chat = client()
    chat.set_history([{"role": "user", "content_items": [{"type": "odd.done"}], "origin": "elsewhere"}])
    with pytest.raises(UpstreamError) as caught:
        await said(chat, "Hi")
    assert caught.value.error_type == "InvalidMessageError"


# slow servers


async def test_an_abort_ends_the_wait(client: Make, provider: FakeProvider) -> None:
    gate, signal = Gate(), AbortSignal()
    provider.add(Reply.stream(streams.frames("text", "chat")[:4]).then(gate))
    chat = client("fake-openai-chat")
    with pytest.raises(AbortError):
        async for _ in chat.streaming_response_stateful(user("Hi"), signal=signal):
            signal.abort()
    assert chat.get_history() == []
    gate.open()


async def test_a_server_that_keeps_the_line_alive_says_nothing(client: Make, provider: FakeProvider) -> None:
    heard = asyncio.Event()
    network = httpx_handler(Timeouts())

    @asynccontextmanager
    async def listening(request: WireRequest) -> AsyncIterator[Any]:
        async with network(request) as (status, headers, body):

            async def pieces() -> AsyncIterator[bytes]:
                async for piece in body:
                    if b": keep-alive" in piece:
                        heard.set()
                    yield piece

            yield status, headers, pieces()

    gate = Gate()
    provider.add(Reply.stream(streams.frames("text", "chat")).hold(gate, 300))
    chat = client("fake-openai-chat", transport=Transport(handler=listening))
    task = asyncio.create_task(said(chat, "Hi"))
    # the server says it every fifteen seconds in which it has nothing to say
    await asyncio.wait_for(heard.wait(), 60)
    gate.open()
    events = await task
    assert text_of(events) == "High tide in Brest — 6,4 m 🌊." and events[-1]["event_type"] == "stop"
    assert all(event["content_items"] or event["event_type"] == "stop" for event in events)


# another vendor's history


# Moonshot wants the reasoning of calls, which OpenAI refuses: what is sent suits the others
@pytest.mark.parametrize("kind", [k for k in UPSTREAM if k.name != "moonshot-official"], ids=lambda kind: kind.name)
async def test_a_foreign_history_reaches_every_vendor_behind_the_server(
    client: Make, provider: FakeProvider, kind: Kind
) -> None:
    home = KINDS["google-genai"].client(provider)
    await exchange(home, KINDS["google-genai"], provider, "one")
    chat = client(f"fake-{kind.name}")
    chat.set_history(home.get_history())
    check(kind, await send(chat, user("And then?"), provider, kind.says("two")), ())
    check(kind, await send(chat, user("Bye"), provider, kind.says("three")), opaque_in(chat.get_history()[4:]))
