"""What a vendor says to a request it cannot serve, and failures on order."""

import json
import time

import pytest
from local_helpers import WEATHER, WIRES, ask, frames, get, payloads, post, raw_connection, raw_request, request

from mmsp_nb import AutoLLMClient
from mmsp_nb.local.demo import DemoServer
from mmsp_nb.local.rules import SIGNATURE, faults
from mmsp_nb.protocol import errors
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.retry import RetryPolicy

HINTS = {"messages": {"anthropic-version": "2026-10-21"}, "generate": {"x-goog-api-key": "k"}}
CLIENT_OF = {
    "chat": "openai-chat",
    "responses": "openai-responses",
    "messages": "anthropic-official",
    "interactions": "google-official",
    "generate": "google-genai",
    "mmsp": "mmsp",
}


def kind_of(body):
    """What the vendor's error says, whatever its form."""
    error = body["error"]
    return error.get("status") if isinstance(error.get("status"), str) else error["type"]


@pytest.mark.parametrize(
    ("wire", "kind"),
    [("chat", "invalid_request_error"), ("messages", "not_found_error"), ("generate", "NOT_FOUND")],
)
def test_an_unknown_path_is_refused_in_the_callers_form(demo, wire, kind):
    status, _, content = post(demo, "/v1/v1/messages", {}, HINTS.get(wire))
    assert (status, kind_of(json.loads(content))) == (404, kind)
    assert "/v1/v1/messages" in content.decode()


@pytest.mark.parametrize("wire", WIRES)
def test_broken_json_is_refused(demo, wire):
    path, _ = request(wire, "hi")
    for content in (b"{broken", b"[1]", b"", b"\xff\xfe"):
        status, _, answer = post(demo, path, content)
        assert status == 400, answer
        assert json.loads(answer)["error"]["message"]


@pytest.mark.parametrize("wire", ["chat", "responses", "messages", "interactions", "mmsp"])
@pytest.mark.parametrize("model", [None, "", 7])
def test_a_missing_model_is_refused(demo, wire, model):
    path, body = request(wire, "hi")
    body["model"] = model
    status, _, answer = post(demo, path, body)
    assert status == 400
    assert "model" in json.loads(answer)["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "word"),
    [
        ("/v1/chat/completions", {"model": "demo"}, "messages"),
        ("/v1/responses", {"model": "demo"}, "input"),
        ("/v1/messages", {"model": "demo", "messages": []}, "max_tokens"),
        ("/v1/messages", {"model": "demo", "max_tokens": 5, "messages": []}, "messages"),
        ("/v1/interactions", {"model": "demo", "input": []}, "input"),
        ("/v1/models/demo:generateContent", {}, "contents"),
        ("/v1/stream", {"model": "demo", "messages": "x"}, "messages"),
        ("/v1/stream", {"model": "demo", "messages": [], "config": 3}, "config"),
        ("/v1/embeddings", {"model": "demo", "input": ["a", ""]}, "input"),
        ("/v1/models/demo:batchEmbedContents", {}, "requests"),
    ],
)
def test_a_missing_field_is_named(demo, path, body, word):
    status, _, answer = post(demo, path, body)
    assert status == 400
    assert word in json.loads(answer)["error"]["message"]


def test_a_key_is_asked_for_only_if_the_server_has_one():
    with DemoServer(api_key="right") as server:
        path, body = request("chat", "hi", stream=False)
        assert post(server.base_url, path, body)[0] == 401
        for headers in ({"Authorization": "Bearer wrong"}, {"Authorization": "Basic right"}, {"x-api-key": "\u00e4"}):
            assert post(server.base_url, path, body, headers)[0] == 401
        for headers in ({"Authorization": "Bearer right"}, {"x-api-key": "right"}, {"x-goog-api-key": "right"}):
            assert post(server.base_url, path, body, headers)[0] == 200
        assert post(server.base_url, f"{path}?key=right", body)[0] == 200
        assert get(server.base_url, "/health") == (200, {"status": "ok"})
        assert get(server.base_url, "/v1/models")[0] == 401


@pytest.mark.parametrize("prompt", ["demo: fail 429", "Hi there.\ndemo: fail 429", "Please. Demo: fail with 429!"])
def test_an_order_may_stand_anywhere(prompt):
    assert faults.ordered(prompt) == faults.Fault("fail", 429)


@pytest.mark.parametrize("prompt", ["what is the demo: a thing?", "say demo", "fail 401", "the demo:fail 401", ""])
def test_talk_of_a_demo_is_no_order(prompt):
    assert faults.ordered(prompt) is None


@pytest.mark.parametrize("prompt", ["demo: nonsense", "demo: fail 200", "demo: fail 999"])
def test_an_unknown_order_lists_the_known_ones(demo, prompt):
    text = "".join(c["delta"].get("content") or "" for e in payloads(ask(demo, "chat", prompt)) for c in e["choices"])
    assert all(f"`demo: {command}`" in text for command in faults.COMMANDS)


def test_every_documented_order_is_known():
    for command in faults.COMMANDS:
        fault = faults.ordered(f"demo: {command}")
        assert command == "help" or fault.kind != "help", command


@pytest.mark.parametrize(
    ("wire", "status", "kind"),
    [
        ("chat", 401, "invalid_request_error"),
        ("chat", 429, "requests"),
        ("responses", 503, "server_error"),
        ("messages", 401, "authentication_error"),
        ("messages", 429, "rate_limit_error"),
        ("messages", 529, "overloaded_error"),
        ("generate", 429, "RESOURCE_EXHAUSTED"),
        ("interactions", 503, "UNAVAILABLE"),
        ("mmsp", 401, "AuthenticationError"),
    ],
)
def test_a_refusal_on_order_has_the_vendors_form(demo, wire, status, kind):
    got, headers, content = post(demo, *request(wire, f"demo: fail {status}"))
    assert (got, headers["content-type"]) == (status, "application/json")
    error = json.loads(content)["error"]
    assert kind in (error.get("type"), error.get("status"))
    assert ("retry-after" in headers) == (status in (429, 503, 529))


def quick():
    return Transport(retries=RetryPolicy(2, base=0.001))


async def collect(client_type, prompt, config=None, transport=None):
    """The done items of an answer of the demo, by way of the package's client."""
    message = {"role": "user", "content_items": [{"type": "text.done", "text": prompt}]}
    items = []
    async with AutoLLMClient("demo", client_type=client_type, transport=transport or quick()) as client:
        async for event in client.streaming_response([message], config or {}):
            items += [item for item in event["content_items"] if item["type"].endswith(".done")]
    return items


@pytest.mark.parametrize("client_type", CLIENT_OF.values())
async def test_an_error_after_200_reaches_the_caller(fresh_local, client_type):
    expected = errors.UpstreamError if client_type == "mmsp" else errors.ProviderStreamError
    with pytest.raises(expected, match="told to"):
        await collect(client_type, "Write 50 words. demo: error after 200")


@pytest.mark.parametrize("client_type", CLIENT_OF.values())
async def test_a_cut_connection_is_noticed(fresh_local, client_type):
    with pytest.raises(errors.ConnectionCutError):
        await collect(client_type, "Write 50 words. demo: cut")


@pytest.mark.parametrize("client_type", [name for name in CLIENT_OF.values() if name != "mmsp"])
async def test_an_empty_answer_is_an_error_for_the_client(fresh_local, client_type):
    with pytest.raises(errors.EmptyResponseError):
        await collect(client_type, "demo: empty")


@pytest.mark.parametrize("client_type", ["openai-chat", "openai-responses", "anthropic-official", "google-genai"])
async def test_missing_usage_and_missing_finish_are_incomplete(fresh_local, client_type):
    with pytest.raises(errors.IncompleteStreamError) as caught:
        await collect(client_type, "hi. demo: no usage")
    assert any("usage" in name for name in caught.value.missing)
    with pytest.raises(errors.IncompleteStreamError) as caught:
        await collect(client_type, "hi. demo: no finish")
    assert any("finish" in name for name in caught.value.missing)


@pytest.mark.parametrize("order", ["demo: html", "demo: broken json"])
async def test_answers_that_are_no_stream_are_format_errors(fresh_local, order):
    with pytest.raises(errors.ResponseFormatError):
        await collect("openai-chat", order)


async def test_a_wrong_key_on_order_is_an_authentication_error(fresh_local):
    with pytest.raises(errors.AuthenticationError) as caught:
        await collect("anthropic-official", "demo: fail 401")
    assert caught.value.status == 401


async def test_once_refused_is_answered_by_the_retry(fresh_local):
    items = await collect("openai-chat", "hi. demo: fail 500 once")
    assert items[-1]["text"].endswith(SIGNATURE)
    items = await collect("openai-chat", "hi. demo: fail 500 twice")
    assert items[-1]["text"].endswith(SIGNATURE)


def test_refusing_once_starts_over_after_the_answer(demo):
    path, body = request("chat", "hi. demo: fail 503 once", stream=False)
    assert [post(demo, path, body)[0] for _ in range(4)] == [503, 200, 503, 200]


async def test_broken_arguments_and_unknown_tools(fresh_local):
    with pytest.raises(errors.ToolCallArgumentParseError):
        await collect("openai-chat", "demo: broken arguments", {"tools": [WEATHER]})
    items = await collect("openai-chat", "demo: unknown tool", {"tools": [WEATHER]})
    assert items == [
        {
            "type": "tool_call.done",
            "name": "no_such_tool",
            "arguments": {"reason": "demo"},
            "tool_call_id": items[0]["tool_call_id"],
        }
    ]


async def test_reasoning_on_order(fresh_local):
    items = await collect("openai-chat", "Why is the sky blue? demo: think")
    assert [item["type"] for item in items] == ["thinking.done", "text.done"]
    assert "Rayleigh" in items[1]["text"]


def test_slow_waits_between_pieces(demo):
    began = time.monotonic()
    content = ask(demo, "chat", "demo: slow 0.01")
    took = time.monotonic() - began
    pieces = len([data for _, data in frames(content) if '"content":"' in data])
    assert took >= 0.01 * (pieces - 1)


def test_a_hanging_answer_says_nothing_more(demo):
    with raw_connection(demo) as connection:
        connection.sendall(raw_request(*request("chat", "hi. demo: hang")))
        received = b""
        while b'"content":"' not in received:
            received += connection.recv(65536)
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            while True:
                assert connection.recv(65536), "the server must not end the answer"


def test_without_streaming_a_fault_is_a_refusal(demo):
    status, _, content = post(demo, *request("chat", "demo: cut", stream=False))
    assert status == 500
    assert json.loads(content)["error"]["type"] == "server_error"
