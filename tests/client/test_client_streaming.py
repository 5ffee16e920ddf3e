import asyncio
import json
import pickle

import pytest
from talk import CLIENTS, collect, kinds, user

from mmsp_nb import (
    AuthenticationError,
    ConnectionCutError,
    EmptyResponseError,
    IncompleteStreamError,
    MMSPError,
    ProviderStreamError,
    RateLimitError,
    ResponseFormatError,
    ResponseTooLargeError,
    ToolCallArgumentParseError,
    UpstreamError,
)
from mmsp_nb.testing import Gate, Reply, faults, parts, streams
from mmsp_nb.testing.sse import Style
from mmsp_nb.transport.http import Transport

TEXT = "High tide in Brest — 6,4 m 🌊."
ASSEMBLED = [dialect for dialect in CLIENTS if dialect != "mmsp"]


def dialects(test):
    return pytest.mark.parametrize("dialect", CLIENTS)(test)


@pytest.fixture
def speak(make_client):
    """A client of a dialect."""

    def make(dialect, **options):
        client_type, path = CLIENTS[dialect]
        return make_client(client_type, path=path, **options)

    return make


def done(events):
    return [item for event in events for item in event["content_items"] if item["type"].endswith(".done")]


# what arrives


@dialects
async def test_text(speak, provider, dialect):
    provider.add(streams.reply("text", dialect))
    events = await collect(speak(dialect).streaming_response([user("hi")]))
    assert kinds(events) == ["text.delta", "text.done", "stop"]
    assert [item["text"] for item in done(events)] == [TEXT]
    stop = events[-1]
    assert stop["finish_reason"] == "stop"
    assert set(stop["usage_metadata"]) == {"cached_tokens", "prompt_tokens", "thoughts_tokens", "response_tokens"}
    assert stop["usage_metadata"]["cached_tokens"] == streams.USAGE.cached
    assert all(event["usage_metadata"] is None for event in events[:-1])


@dialects
async def test_tools(speak, provider, dialect):
    provider.add(streams.reply("tools", dialect))
    events = await collect(speak(dialect).streaming_response([user("hi")]))
    calls = [item for item in done(events) if item["type"] == "tool_call.done"]
    assert [call["arguments"] for call in calls] == [{"port": "Brest", "days": 1}, {"port": "Saint-Malo", "days": 2}]
    assert [call["tool_call_id"] for call in calls] == ["call_1", "call_2"]
    assert done(events)[0]["thinking"] == "Two ports, two calls."


@dialects
async def test_a_whole_tool_turn_with_history(speak, provider, dialect):
    provider.add(streams.reply("tools", dialect), streams.reply("text", dialect))
    client = speak(dialect)
    tools = [{"name": "tide_table", "description": "Tides", "parameters": {"type": "object", "properties": {}}}]
    events = await collect(client.streaming_response_stateful(user("hi"), {"tools": tools}))
    results = [
        {"type": "tool_result.done", "text": "6.4 m", "tool_call_id": item["tool_call_id"]}
        for item in done(events)
        if item["type"] == "tool_call.done"
    ]
    answer = await collect(
        client.streaming_response_stateful({"role": "user", "content_items": results}, {"tools": tools})
    )
    assert done(answer)[0]["text"] == TEXT
    assert [message["role"] for message in client.get_history()] == ["user", "assistant", "user", "assistant"]
    sent = json.dumps(provider.last.body)
    assert "6.4 m" in sent and "Saint-Malo" in sent


@dialects
@pytest.mark.parametrize(
    "style", [Style(newline="\r\n"), Style(newline="\r"), Style(bom=True, comments=2), Style(space=False)]
)
async def test_however_the_stream_is_written(speak, provider, dialect, style):
    provider.add(streams.reply("tools", dialect), streams.reply("tools", dialect, style=style).bytewise())
    client = speak(dialect)
    plain = await collect(client.streaming_response([user("hi")]))
    odd = await collect(client.streaming_response([user("hi")]))
    assert [(e["content_items"], e["usage_metadata"]) for e in odd] == [
        (e["content_items"], e["usage_metadata"]) for e in plain
    ]


@dialects
async def test_a_delta_goes_out_as_it_comes(speak, provider, dialect):
    gate = Gate()
    reply = streams.reply("text", dialect)
    whole = reply.content
    first = whole.index(b"tide in Brest")  # in the second piece
    provider.add(reply.hold(gate, first))
    stream = speak(dialect).streaming_response([user("hi")])
    event = await asyncio.wait_for(anext(stream), 10)
    assert event["content_items"] == [{"type": "text.delta", "text": "High "}]
    assert not gate.is_open
    gate.open()
    assert (await collect(stream))[-1]["event_type"] == "stop"


@pytest.mark.parametrize("dialect", ["interactions", "generate_content", "mmsp"])
async def test_an_image(speak, provider, dialect):
    provider.add(streams.reply("images", dialect))
    events = await collect(speak(dialect).streaming_response([user("hi")]))
    assert done(events)[-1] == {"type": "inline_data.done", "data": streams.PNG, "mime_type": "image/png"}


# failures


@dialects
async def test_a_wrong_key(speak, provider, dialect):
    provider.add(faults.reply("unauthorized", dialect))
    with pytest.raises(MMSPError) as caught:
        await collect(speak(dialect).streaming_response([user("hi")]))
    error = caught.value
    assert error.status == 401
    assert "invalid key" in str(error)
    if dialect == "mmsp":
        assert isinstance(error, UpstreamError)
    else:
        assert isinstance(error, AuthenticationError)
        assert "_API_KEY" in str(error)
        assert error.client == speak(dialect).vendor.client


async def test_too_many_requests(make_client, provider):
    provider.add(faults.reply("rate-limited-7", "chat"))
    with pytest.raises(RateLimitError) as caught:
        await collect(make_client(transport=Transport(retries=0)).streaming_response([user("hi")]))
    assert caught.value.retry_after == 7.0
    assert caught.value.code == "rate_limit_error"


@pytest.mark.parametrize("dialect", ASSEMBLED)
async def test_an_overloaded_server_is_asked_again(speak, provider, dialect):
    provider.add(faults.reply("overloaded", dialect), streams.reply("text", dialect))
    events = await collect(speak(dialect).streaming_response([user("hi")]))
    assert done(events)[0]["text"] == TEXT
    assert len(provider.requests) == 2


@dialects
async def test_an_error_inside_the_stream(speak, provider, dialect):
    provider.add(faults.reply("error-in-stream", dialect))
    seen = []
    with pytest.raises((ProviderStreamError, UpstreamError), match="gave up"):
        await collect(speak(dialect).streaming_response([user("hi")]), seen)
    assert kinds(seen) == ["text.delta"]
    assert len(provider.requests) == 1


@dialects
@pytest.mark.parametrize("how", ["reset", "fin"])
async def test_a_cut_connection(speak, provider, dialect, how):
    reply = streams.reply("thinking", dialect)
    provider.add(reply.cut(reply.content.index(b" at noon"), how), streams.reply("text", dialect))
    seen = []
    with pytest.raises(ConnectionCutError):
        await collect(speak(dialect).streaming_response([user("hi")]), seen)
    assert kinds(seen) == ["thinking.delta", "thinking.done", "text.delta"]
    assert len(provider.requests) == 1


@dialects
async def test_a_frame_that_is_no_json(speak, provider, dialect):
    provider.add(faults.reply("not-json", dialect))
    with pytest.raises(ResponseFormatError, match="cannot be understood") as caught:
        await collect(speak(dialect).streaming_response([user("hi")]))
    assert caught.value.client == speak(dialect).vendor.client
    provider.wait_until_idle()


@dialects
@pytest.mark.parametrize("frame", [b"data: 7\n\n", b"data: [1]\n\n", b'data: "x"\n\n'])
async def test_a_frame_that_is_no_object(speak, provider, dialect, frame):
    provider.add(Reply([frame]))
    with pytest.raises(MMSPError):
        await collect(speak(dialect).streaming_response([user("hi")]))


@pytest.mark.parametrize("dialect", ASSEMBLED)
async def test_a_web_page(speak, provider, dialect):
    provider.add(faults.reply("html", dialect))
    with pytest.raises(ResponseFormatError, match="web page"):
        await collect(speak(dialect).streaming_response([user("hi")]))


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses", "generate_content"])
async def test_no_usage(speak, provider, dialect):
    provider.add(faults.reply("no-usage", dialect))
    seen = []
    with pytest.raises(IncompleteStreamError) as caught:
        await collect(speak(dialect).streaming_response([user("hi")]), seen)
    assert "usage_metadata" in caught.value.missing
    assert kinds(seen) == ["text.delta", "text.done"]


@pytest.mark.parametrize("dialect", ASSEMBLED)
async def test_thinking_only(speak, provider, dialect):
    provider.add(faults.reply("thinking-only", dialect))
    seen = []
    with pytest.raises(EmptyResponseError):
        await collect(speak(dialect).streaming_response([user("hi")]), seen)
    assert kinds(seen)[-1] == "thinking.done"


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses", "interactions"])
async def test_arguments_that_are_no_json(speak, provider, dialect):
    provider.add(faults.reply("bad-arguments", dialect))
    seen = []
    with pytest.raises(ToolCallArgumentParseError) as caught:
        await collect(speak(dialect).streaming_response([user("hi")]), seen)
    assert caught.value.tool_name
    assert not [item for item in done(seen) if item["type"] == "tool_call.done"]


async def test_an_event_beyond_the_limit(make_client, provider):
    provider.add(Reply([*streams.reply("text", "chat").body[:2], b"data: "]).endless(b"x" * 999))
    client = make_client(transport=Transport(max_event=10_000))
    with pytest.raises(ResponseTooLargeError) as caught:
        await collect(client.streaming_response([user("hi")]))
    assert caught.value.client == "OpenaiChatClient"


async def test_half_an_emoji_does_no_harm(client, provider):
    frames = streams.frames("text", "chat")
    broken = json.dumps({"choices": [{"index": 0, "delta": {"content": "a\ud83d"}}]}).encode()
    provider.add(Reply.stream([b"data: " + broken + b"\n\n", *frames[-3:]]))
    events = await collect(client.streaming_response([user("hi")]))
    assert done(events)[0]["text"] == "a\ufffd"


async def test_half_an_emoji_may_be_sent(client, provider):
    provider.add(streams.reply("text", "chat"))
    await collect(client.streaming_response([user("a\ud83d")]))
    assert provider.last.body["messages"][0]["content"][0]["text"] == "a\ud83d"


async def test_what_json_cannot_hold_is_refused_in_one_line(client, provider):
    with pytest.raises(MMSPError, match="JSON"):
        await collect(client.streaming_response([user("a")], {"extra_body": {"x": object()}}))
    assert provider.requests == []


# loops and crowds


@pytest.mark.parametrize("times", [2])
def test_one_client_in_two_event_loops(client, provider, times):
    provider.add(*[streams.reply("text", "chat")] * times)
    for _ in range(times):
        asyncio.run(collect(client.streaming_response_stateful(user("hi"))))
        provider.wait_until_idle()
    assert len(client.get_history()) == 2 * times


async def test_fifty_streams_at_once(client, provider):
    gate = Gate()
    reply = streams.reply("text", "chat").hold(gate, 400)
    provider.when("/chat/completions", reply)
    tasks = [asyncio.ensure_future(collect(client.streaming_response([user(str(n))]))) for n in range(50)]
    await asyncio.to_thread(provider.wait_for_requests, 50)
    gate.open()
    for events in await asyncio.gather(*tasks):
        assert done(events)[0]["text"] == TEXT
    await asyncio.to_thread(provider.wait_until_idle)


async def test_closing_the_client_ends_what_it_does(client, provider):
    gate = Gate()
    waiting = streams.reply("text", "chat").then(gate)
    provider.add(*[Reply([*waiting.body][:2] + [gate])] * 2)
    idle = client.streaming_response([user("a")])
    await anext(idle)
    pending = asyncio.ensure_future(collect(client.streaming_response_stateful(user("b"))))
    await asyncio.to_thread(provider.wait_for_requests, 2)
    async with client:
        pass
    with pytest.raises(asyncio.CancelledError):
        await pending
    with pytest.raises(StopAsyncIteration):
        await anext(idle)
    await asyncio.to_thread(provider.wait_until_idle)
    provider.add(streams.reply("text", "chat"))
    await collect(client.streaming_response_stateful(user("c")))


# events


async def test_events_are_plain_json_like_dicts(client, provider):
    provider.add(streams.reply("tools", "chat"))
    events = await collect(client.streaming_response([user("hi")]))
    assert json.loads(json.dumps(events)) == events
    assert pickle.loads(pickle.dumps(events)) == events


async def test_a_custom_handler_gets_at_the_bytes(make_client):
    from contextlib import asynccontextmanager

    seen = []

    @asynccontextmanager
    async def handler(request):
        seen.append(request)

        async def body():
            for chunk in streams.reply("text", "chat").body:
                yield chunk

        yield 200, {"Content-Type": "text/event-stream"}, body()

    client = make_client(transport=Transport(handler=handler))
    events = await collect(client.streaming_response_stateful(user("hi")))
    assert done(events)[0]["text"] == TEXT
    [request] = seen
    assert json.loads(request.content)["model"] == "some-model"
    assert request.headers["Authorization"] == "Bearer sk-test-0123456789"
    assert "sk-test" not in repr(request)


def test_parts_and_texts_agree():
    assert "".join(parts.text(TEXT).pieces) == TEXT
