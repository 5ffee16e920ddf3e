"""The bytes of each wire format, and what the package's own clients make of them."""

import base64
import json
import struct

import pytest
from local_helpers import WEATHER, WIRES, ask, frames, get, payloads, post, raw_connection, raw_request, request

from mmsp_nb import AutoLLMClient
from mmsp_nb.local.rules import SIGNATURE
from mmsp_nb.local.wire import pieces
from mmsp_nb.local.wire.neutral import Call, Text, Thinking

CLIENT_TYPES = [
    "openai-official",
    "openai-responses",
    "openai-chat",
    "openai-chat-vllm-adapter",
    "zai-official",
    "moonshot-official",
    "deepseek-official",
    "minimax-official",
    "anthropic-official",
    "ant-messages",
    "google-official",
    "google-genai",
    "mmsp",
]
BOTH = "What's the weather in London and in Paris?"


def text_of(wire, content):
    """The answer's text, read by hand from the wire."""
    text = ""
    for event in payloads(content):
        if wire == "chat":
            text += "".join(choice["delta"].get("content") or "" for choice in event["choices"])
        elif wire == "responses" and event["type"] == "response.output_text.delta":
            text += event["delta"]
        elif wire == "messages" and event["type"] == "content_block_delta":
            text += event["delta"].get("text", "")
        elif wire == "interactions" and event["event_type"] == "step.delta":
            text += event["delta"].get("text", "") if event["delta"]["type"] == "text" else ""
        elif wire == "generate":
            text += "".join(part.get("text", "") for part in event["candidates"][0]["content"]["parts"])
        elif wire == "mmsp":
            text += "".join(item["text"] for item in event["content_items"] if item["type"] == "text.delta")
    return text


@pytest.mark.parametrize("wire", WIRES)
def test_every_format_tells_the_same_answer(demo, wire):
    text = text_of(wire, ask(demo, wire, "What is 17 * 23?"))
    assert text == f"17 × 23 = **391**\n\n{SIGNATURE}"


@pytest.mark.parametrize("wire", WIRES)
def test_the_same_request_gets_the_same_bytes(demo, wire):
    options = {"tools": [WEATHER], "thinking": True}
    assert ask(demo, wire, BOTH, **options) == ask(demo, wire, BOTH, **options)


def test_chat_chunks(demo):
    content = ask(demo, "chat", "count to 2")
    events = payloads(content)
    assert frames(content)[-1] == (None, "[DONE]")
    assert {event["id"] for event in events} == {events[0]["id"]}
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert events[0]["usage"] is None
    assert events[-2]["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    assert events[-1]["choices"] == []
    usage = events[-1]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}


def test_chat_without_include_usage_has_no_usage(demo):
    path, body = request("chat", "hi")
    del body["stream_options"]
    _, _, content = post(demo, path, body)
    assert not any("usage" in event for event in payloads(content))


def test_chat_streams_parallel_calls_in_pieces(demo):
    events = payloads(ask(demo, "chat", BOTH, tools=[WEATHER]))
    entries = [
        entry for event in events for choice in event["choices"] for entry in choice["delta"].get("tool_calls", [])
    ]
    heads = [entry for entry in entries if "id" in entry]
    assert [(entry["index"], entry["function"]["name"], entry["function"]["arguments"]) for entry in heads] == [
        (0, "get_weather", ""),
        (1, "get_weather", ""),
    ]
    for index, city in enumerate(["London", "Paris"]):
        parts = [entry["function"]["arguments"] for entry in entries if entry["index"] == index]
        assert json.loads("".join(parts)) == {"city": city}
        assert len(parts) > 3  # also cut inside the strings
    assert events[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_responses_events_are_numbered_and_nested(demo):
    content = ask(demo, "responses", BOTH, tools=[WEATHER], thinking=True)
    events = payloads(content)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [name for name, _ in frames(content)] == [event["type"] for event in events]
    opened = [event["item"]["type"] for event in events if event["type"] == "response.output_item.added"]
    assert opened == ["reasoning", "function_call", "function_call"]
    done = events[-1]
    assert done["type"] == "response.completed"
    assert [item["type"] for item in done["response"]["output"]] == opened
    assert json.loads(done["response"]["output"][1]["arguments"]) == {"city": "London"}
    assert done["response"]["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
    closed = [event["output_index"] for event in events if event["type"] == "response.output_item.done"]
    assert closed == [0, 1, 2]


def test_messages_blocks_follow_each_other(demo):
    content = ask(demo, "messages", BOTH, tools=[WEATHER], thinking=True)
    events = payloads(content)
    assert [event["type"] for event in events[:2]] == ["message_start", "ping"]
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    assert events[0]["message"]["usage"]["input_tokens"] > 10
    starts = [event for event in events if event["type"] == "content_block_start"]
    assert [(event["index"], event["content_block"]["type"]) for event in starts] == [
        (0, "thinking"),
        (1, "tool_use"),
        (2, "tool_use"),
    ]
    signature = [event for event in events if event.get("delta", {}).get("type") == "signature_delta"]
    assert len(signature) == 1
    assert base64.b64decode(signature[0]["delta"]["signature"])
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_omitted_thinking_has_a_signature_and_no_text(demo):
    path, body = request("messages", "hi", thinking=True)
    body["thinking"]["display"] = "omitted"
    _, _, content = post(demo, path, body)
    kinds = [event["delta"]["type"] for event in payloads(content) if event["type"] == "content_block_delta"]
    assert "thinking_delta" not in kinds
    assert kinds[0] == "signature_delta"


def test_interactions_steps_open_and_close(demo):
    content = ask(demo, "interactions", BOTH, tools=[WEATHER])
    events = payloads(content)
    assert frames(content)[-1] == ("done", "[DONE]")
    assert [name for name, _ in frames(content)][:-1] == [event["event_type"] for event in events]
    steps = [event["step"]["type"] for event in events if event["event_type"] == "step.start"]
    assert steps == ["thought", "function_call", "function_call"]
    assert sum(event["event_type"] == "step.stop" for event in events) == 3
    assert events[-1]["interaction"]["status"] == "requires_action"


def test_generate_content_sends_whole_calls_and_crlf(demo):
    content = ask(demo, "generate", BOTH, tools=[WEATHER])
    assert b"}\r\n\r\n" in content
    events = payloads(content)
    calls = [part for event in events for part in event["candidates"][0]["content"]["parts"] if "functionCall" in part]
    assert [part["functionCall"]["args"] for part in calls] == [{"city": "London"}, {"city": "Paris"}]
    assert ["thoughtSignature" in part for part in calls] == [True, False]
    assert events[-1]["candidates"][0]["finishReason"] == "STOP"
    assert events[-1]["usageMetadata"]["promptTokenCount"] > 10


def test_generate_content_takes_snake_case_and_upper_case_types(demo):
    tool = json.loads(json.dumps(WEATHER).replace('"string"', '"STRING"').replace('"object"', '"OBJECT"'))
    body = {
        "contents": [{"role": "user", "parts": [{"text": BOTH}]}],
        "tools": [{"function_declarations": [tool]}],
        "generation_config": {"thinking_config": {"include_thoughts": True}},
        "tool_config": {"function_calling_config": {"mode": "ANY"}},
    }
    _, _, content = post(demo, "/v1beta/models/demo:generateContent", body)
    parts = json.loads(content)["candidates"][0]["content"]["parts"]
    assert [next(iter(part)) for part in parts] == ["text", "functionCall", "functionCall"]
    assert parts[0]["thought"] is True


@pytest.mark.parametrize("wire", ["chat", "responses", "messages", "interactions", "generate"])
def test_without_streaming_the_answer_is_one_document(demo, wire):
    status, headers, content = post(demo, *request(wire, BOTH, tools=[WEATHER], thinking=True, stream=False))
    assert (status, headers["content-type"]) == (200, "application/json")
    document = json.loads(content)
    assert content.count(b"London") >= 1
    calls = {
        "chat": lambda: [call["function"]["arguments"] for call in document["choices"][0]["message"]["tool_calls"]],
        "responses": lambda: [item["arguments"] for item in document["output"] if item["type"] == "function_call"],
        "messages": lambda: [block["input"] for block in document["content"] if block["type"] == "tool_use"],
        "interactions": lambda: [step["arguments"] for step in document["steps"] if step["type"] == "function_call"],
        "generate": lambda: [
            part["functionCall"]["args"]
            for part in document["candidates"][0]["content"]["parts"]
            if "functionCall" in part
        ],
    }[wire]()
    parsed = [json.loads(call) if isinstance(call, str) else call for call in calls]
    assert parsed == [{"city": "London"}, {"city": "Paris"}]


@pytest.mark.parametrize("client_type", CLIENT_TYPES)
async def test_every_client_type_runs_a_tool_turn(demo, client_type, fresh_local):
    config = {"tools": [WEATHER], "max_tokens": 2000}
    if client_type != "openai-chat":
        config["thinking_level"] = "high"
    if client_type.startswith(("openai-o", "openai-r", "ant", "google", "mmsp")):
        config["thinking_summary"] = True
    message = {"role": "user", "content_items": [{"type": "text.done", "text": f"{BOTH} 🌦️"}]}
    async with AutoLLMClient("demo", client_type=client_type) as client:
        items, stop = await _turn(client, message, config)
        kinds = [item["type"] for item in items]
        calls = [item for item in items if item["type"] == "tool_call.done"]
        assert kinds == ["thinking.done"] * (client_type != "openai-chat") + ["tool_call.done"] * 2
        assert [call["arguments"] for call in calls] == [{"city": "London"}, {"city": "Paris"}]
        assert stop["finish_reason"] == "tool_call"
        results = [
            {"type": "tool_result.done", "tool_call_id": call["tool_call_id"], "text": text}
            for call, text in zip(calls, ["15 degrees ☔", "19 degrees"], strict=True)
        ]
        items, stop = await _turn(client, {"role": "user", "content_items": results}, config)
        answer = items[-1]["text"]
        assert "**London**: 15 degrees ☔" in answer
        assert "**Paris**: 19 degrees" in answer
        assert answer.endswith(SIGNATURE)
        assert stop["finish_reason"] == "stop"
        assert stop["usage_metadata"]["cached_tokens"] > 50
        assert await client.list_models() == ["demo", "demo:thinking", "demo:embedding"]


async def _turn(client, message, config):
    items, stop = [], None
    async for event in client.streaming_response_stateful(message, config):
        items += [item for item in event["content_items"] if item["type"].endswith(".done")]
        stop = event if event["event_type"] == "stop" else stop
    return items, stop


@pytest.mark.parametrize("wire", WIRES)
def test_a_character_is_cut_between_two_writes(demo, wire):
    """The first byte of a character comes in a chunk of its own piece, the rest in the next."""
    with raw_connection(demo) as connection:
        connection.sendall(raw_request(*request(wire, "hi"), close=True))
        received = b""
        while block := connection.recv(65536):
            received += block
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    chunks = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        body = rest[int(size, 16) + 2 :]
    cut = [chunk for chunk in chunks if chunk.endswith(b"\xf0")]
    assert cut, "no chunk ends inside the emoji"
    assert "👋".encode() in b"".join(chunks)


def test_pieces_join_to_the_text_again():
    for text in [
        "",
        "  two  spaces ",
        "**bold** `code`\n\n```py\nx = 1\n```",
        "naïve 👩‍👩‍👧‍👦 e\u0301_x__y\u2028z",
        "a" * 40,
    ]:
        assert "".join(pieces.tokens(text)) == text
        assert pieces.count(text) == len(pieces.tokens(text))


def test_a_budget_cuts_text_and_arguments():
    said, cut = pieces.limit([Thinking("one two"), Text("three four five")], 4)
    assert (said, cut) == ([Thinking("one two"), Text("three four")], True)
    said, cut = pieces.limit([Call("f", {"city": "London"})], 3)
    assert cut
    assert '{"city": "London"}'.startswith(said[0].json)
    assert pieces.limit([Text("one")], None) == ([Text("one")], False)


@pytest.mark.parametrize("wire", WIRES)
def test_a_cut_answer_says_why(demo, wire):
    content = ask(demo, wire, "write 100 words", max_tokens=10)
    mark = {
        "chat": b'"finish_reason":"length"',
        "responses": b'"type":"response.incomplete"',
        "messages": b'"stop_reason":"max_tokens"',
        "interactions": b'"status":"incomplete"',
        "generate": b'"finishReason":"MAX_TOKENS"',
        "mmsp": b'"finish_reason":"length"',
    }[wire]
    assert mark in content
    assert pieces.count(text_of(wire, content)) == 10


def test_listings_take_the_callers_form(demo):
    ids = ["demo", "demo:thinking", "demo:embedding"]
    status, listing = get(demo, "/v1/models")
    assert (status, [entry["id"] for entry in listing["data"]]) == (200, ids)
    _, first = get(demo, "/v1/models?limit=2", {"anthropic-version": "2026-10-21"})
    assert ([entry["id"] for entry in first["data"]], first["has_more"], first["last_id"]) == (ids[:2], True, ids[1])
    _, second = get(demo, f"/v1/models?after_id={first['last_id']}", {"anthropic-version": "2026-10-21"})
    assert ([entry["id"] for entry in second["data"]], second["has_more"]) == (ids[2:], False)
    _, page = get(demo, "/v1beta/models?pageSize=2", {"x-goog-api-key": "k"})
    assert [entry["name"] for entry in page["models"]] == ["models/demo", "models/demo:thinking"]
    _, rest = get(demo, f"/v1beta/models?pageSize=2&pageToken={page['nextPageToken']}", {"x-goog-api-key": "k"})
    assert [entry["name"] for entry in rest["models"]] == ["models/demo:embedding"]
    assert "nextPageToken" not in rest


def test_one_model_can_be_looked_up(demo):
    assert get(demo, "/v1/models/demo:thinking")[1]["id"] == "demo:thinking"
    status, body = get(demo, "/v1/models/nonsense")
    assert (status, body["error"]["code"]) == (404, "model_not_found")


def test_embeddings_of_like_texts_are_near_each_other(demo):
    texts = ["the cat sat on the mat", "a cat on a mat", "quarterly revenue grew"]
    _, _, content = post(demo, "/v1/embeddings", {"model": "demo", "input": texts})
    answer = json.loads(content)
    first, second, third = [entry["embedding"] for entry in answer["data"]]
    near, far = (sum(a * b for a, b in zip(first, other, strict=True)) for other in (second, third))
    assert near > 0.4 > far
    assert sum(value * value for value in first) == pytest.approx(1, abs=1e-5)
    body = {"model": "demo", "input": texts[0], "encoding_format": "base64", "dimensions": 8}
    _, _, packed = post(demo, "/v1/embeddings", body)
    vector = json.loads(packed)["data"][0]["embedding"]
    assert len(struct.unpack("<8f", base64.b64decode(vector))) == 8


def test_gemini_embeddings_match_the_openai_ones(demo):
    content = {"role": "user", "parts": [{"text": "hello world"}]}
    one = {"model": "models/demo", "content": content, "outputDimensionality": 16}
    _, _, single = post(demo, "/v1/models/demo:embedContent", one)
    _, _, batch = post(demo, "/v1/models/demo:batchEmbedContents", {"requests": [one, one]})
    _, _, openai = post(demo, "/v1/embeddings", {"model": "demo", "input": "hello world", "dimensions": 16})
    vector = json.loads(openai)["data"][0]["embedding"]
    assert json.loads(single)["embedding"]["values"] == vector
    assert [entry["values"] for entry in json.loads(batch)["embeddings"]] == [vector, vector]


@pytest.mark.parametrize("dimensions", [0, -1, 5000, "8", True])
def test_impossible_dimensions_are_refused(demo, dimensions):
    status, _, content = post(demo, "/v1/embeddings", {"model": "demo", "input": "x", "dimensions": dimensions})
    assert (status, json.loads(content)["error"]["param"]) == (400, "dimensions")


async def test_the_embedding_client_gets_a_vector(fresh_local):
    async with AutoLLMClient("demo", client_type="openai-embedding") as client:
        message = {"role": "user", "content_items": [{"type": "text.done", "text": "hello"}]}
        items, stop = await _turn_stateless(client, message, {"embedding_config": {"dimensions": 4}})
    assert len(items[0]["embedding"]) == 4
    assert stop["usage_metadata"]["prompt_tokens"] == 1


async def _turn_stateless(client, message, config):
    items, stop = [], None
    async for event in client.streaming_response([message], config):
        items += [item for item in event["content_items"] if item["type"].endswith(".done")]
        stop = event if event["event_type"] == "stop" else stop
    return items, stop
