"""Embeddings, the protocol's own wire, Bedrock, Vertex AI, and model listings."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from provider_helpers import PNG, assistant, attributes, call, dialect, image, inline, requests, route, text, user

from mmsp_nb.protocol.errors import (
    IncompleteStreamError,
    InvalidMessageError,
    ProviderStreamError,
    ResponseFormatError,
    UnsupportedContentError,
    UnsupportedOperationError,
    UnsupportedParameterError,
    UpstreamError,
)
from mmsp_nb.protocol.items import ThinkingLevel
from mmsp_nb.providers import mmsp
from mmsp_nb.providers.base import remote_images, with_inlined
from mmsp_nb.providers.routing import Route, resolve
from mmsp_nb.providers.vendors import VENDORS

EMBED = "gemini-embedding-2"
SERVICE_ACCOUNT = json.dumps({"type": "service_account", "project_id": "proj-1", "private_key": "PEM"})


def embedding_answer(found: Route, messages: Any, *payloads: Any, **config: Any) -> list[dict]:
    """The raw values of the answers to an embedding call."""
    module = dialect(found.vendor)
    decoder = module.decoder(found.vendor, found.model, module.build(found.vendor, found.model, messages, config))
    raws = [raw for payload in payloads for raw in decoder.decode(payload)]
    return [*raws, *decoder.finish()]


def usage(prompt: int | None) -> dict:
    rest = {"cached_tokens": None, "thoughts_tokens": None, "response_tokens": None}
    return {"type": "usage", "prompt_tokens": prompt, **rest}


STOP = {"type": "finish", "finish_reason": "stop"}
TEXTS = [user(text("a"), text("b")), user(text("c"))]


def vector(*values: float) -> dict:
    return {"type": "embedding.delta", "embedding": list(values)}


# OpenAI's form ------------------------------------------------------------------------------------------


def test_openai_embedding_request_holds_one_text_for_each_message() -> None:
    config: Any = {
        "embedding_config": {"dimensions": 3},
        "temperature": 0.2,
        "prompt_caching": "enhance",
        "fast_mode": False,
    }
    (request,) = requests("openai-embedding", None, TEXTS, **config)
    expected = {"input": ["ab", "c"], "dimensions": 3, "encoding_format": "base64", "model": "text-embedding-3-large"}
    assert (request.path, request.body, request.framing) == ("/embeddings", expected, "json")
    (plain,) = requests("openai-embedding", None, TEXTS, embedding_config={})
    assert plain.body is not None
    assert "dimensions" not in plain.body


def test_openai_embedding_takes_text_only() -> None:
    with pytest.raises(UnsupportedContentError) as caught:
        requests("openai-embedding", None, [user(text("a"), image())])
    assert attributes(caught.value) == {"client": "OpenaiEmbeddingClient", "item_type": "image_url"}
    with pytest.raises(InvalidMessageError) as empty:
        requests("openai-embedding", None, [user(text("a")), user(text(""))])
    assert empty.value.message_index == 1
    with pytest.raises(UnsupportedParameterError):
        requests("openai-embedding", None, TEXTS, fast_mode=True)


def test_openai_embedding_answer_is_sorted_and_read_in_both_encodings() -> None:
    coded = base64.b64encode(struct.pack("<2f", 0.5, -1.0)).decode()
    payload = {
        "data": [{"index": 1, "embedding": coded}, {"index": 0, "embedding": [1.5, 2]}],
        "usage": {"prompt_tokens": 4, "total_tokens": 4},
    }
    assert embedding_answer(route("openai-embedding"), TEXTS, payload) == [
        vector(1.5, 2),
        vector(0.5, -1.0),
        usage(4),
        STOP,
    ]
    del payload["usage"]
    assert embedding_answer(route("openai-embedding"), TEXTS, payload)[-2:] == [usage(None), STOP]


@pytest.mark.parametrize("coded", ["%%%", "AAA=", "AAAAAAA="])
def test_embedding_that_is_no_vector_is_reported(coded: str) -> None:
    with pytest.raises(ResponseFormatError):
        embedding_answer(route("openai-embedding"), TEXTS[:1], {"data": [{"index": 0, "embedding": coded}]})


# Gemini's form ------------------------------------------------------------------------------------------

MIXED = [user(text("a"), image(PNG), inline()), assistant(text("b"))]
CONTENTS = [
    {
        "role": "user",
        "parts": [
            {"text": "a"},
            {"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}},
            {"inline_data": {"mime_type": "image/png", "data": "-_8A"}},
        ],
    },
    {"role": "model", "parts": [{"text": "b"}]},
]


def test_gemini_embeddings_are_one_batch_officially_and_one_call_a_message_with_genai() -> None:
    rows = [{"model": f"models/{EMBED}", "content": content, "outputDimensionality": 3} for content in CONTENTS]
    size: Any = {"embedding_config": {"dimensions": 3}, "temperature": 1.0, "fast_mode": True}
    batch = requests("google-official", EMBED, MIXED, **size)
    each = requests("google-genai", EMBED, MIXED, **size)
    assert [request.body for request in batch] == [{"requests": rows}]
    assert [request.body for request in each] == [{"requests": [row]} for row in rows]
    paths = {(request.path, request.framing) for request in [*batch, *each]}
    assert paths == {(f"/v1/models/{EMBED}:batchEmbedContents", "json")}
    (prefixed,) = requests("google-official", f"tunedModels/{EMBED}", TEXTS[:1])
    assert prefixed.path == f"/v1/tunedModels/{EMBED}:batchEmbedContents"
    assert prefixed.body is not None
    assert prefixed.body["requests"][0]["model"] == f"tunedModels/{EMBED}"


@pytest.mark.parametrize("item", [call("f", "c1"), {"type": "thinking.done", "thinking": "t"}])
def test_gemini_embeddings_refuse_what_is_no_content(item: dict) -> None:
    with pytest.raises(InvalidMessageError) as caught:
        requests("google-official", EMBED, [user(item)])
    assert caught.value.item_type == item["type"].removesuffix(".done")
    with pytest.raises(InvalidMessageError) as empty:
        requests("google-official", EMBED, [user()])
    assert empty.value.message_index == 0


def test_gemini_embedding_answers() -> None:
    def values(number: float, tokens: int | None = None) -> dict:
        return {"values": [number], **({"statistics": {"tokenCount": tokens}} if tokens else {})}

    batch = {"embeddings": [values(1), values(2)], "metadata": {"billableCharacterCount": 9}}
    official = route("google-official", EMBED)
    assert embedding_answer(official, TEXTS, batch) == [vector(1), vector(2), usage(9), STOP]
    genai = route("google-genai", EMBED)
    answers = [{"embeddings": [values(1, 3)]}, {"embeddings": [{}], "metadata": {"billableCharacterCount": 2}}]
    assert embedding_answer(genai, TEXTS, *answers) == [vector(1), vector(), usage(5), STOP]


@pytest.mark.parametrize("client_type", ["google-official", "openai-embedding"])
def test_missing_vectors_are_an_error_and_no_shift(client_type: str) -> None:
    found = route(client_type, EMBED if "google" in client_type else None)
    for payload in ({"embeddings": [{"values": [1]}]}, {"data": [{"index": 0, "embedding": [1]}]}, {}):
        with pytest.raises(ResponseFormatError, match="asked for 2 embeddings"):
            embedding_answer(found, TEXTS, payload)


def test_error_in_an_embedding_answer_is_raised() -> None:
    with pytest.raises(ProviderStreamError, match="no"):
        embedding_answer(route("openai-embedding"), TEXTS, {"error": {"message": "no"}})


# Vertex AI ----------------------------------------------------------------------------------------------


def vertex(model: str) -> Route:
    return resolve(model, SERVICE_ACCOUNT, client_type="google-genai", environ={})


def test_vertex_paths_name_project_and_publisher() -> None:
    home = "https://aiplatform.googleapis.com/v1beta1/projects/proj-1/locations/global/publishers/google/models"
    found = vertex("gemini-3.8-flash")
    (request,) = dialect(found.vendor).build(found.vendor, found.model, [user(text("a"))], {})
    assert found.url(request) == f"{home}/gemini-3.8-flash:streamGenerateContent?alt=sse"
    embed = vertex(EMBED)
    built = dialect(embed.vendor).build(embed.vendor, embed.model, TEXTS, {"embedding_config": {"dimensions": 2}})
    assert [embed.url(request) for request in built] == [f"{home}/{EMBED}:embedContent"] * 2
    assert built[1].body == {"content": {"role": "user", "parts": [{"text": "c"}]}, "outputDimensionality": 2}
    answers = [{"embedding": {"values": [1.0]}}, {"embedding": {"values": [2.0], "statistics": {"tokenCount": 4}}}]
    assert embedding_answer(embed, TEXTS, *answers) == [vector(1.0), vector(2.0), usage(4), STOP]


# Bedrock ------------------------------------------------------------------------------------------------


def bedrock_request(model: str = "global.anthropic.claude-opus-5", messages: Any = None, **config: Any) -> Any:
    found = resolve(model, "AKID,SECRET", "bedrock://us-east-1", "anthropic-official", environ={})
    (request,) = dialect(found.vendor).build(found.vendor, model, messages or [user(text("a"))], config)
    return request


def test_bedrock_body_has_a_version_and_neither_model_nor_stream() -> None:
    request = bedrock_request(max_tokens=9)
    assert request.path == "/model/global.anthropic.claude-opus-5/invoke-with-response-stream"
    assert request.framing == "aws"
    assert "anthropic-version" not in request.headers
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "5m"}}
    assert request.body == {
        "anthropic_version": "2026-10-21",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [marked]}],
    }
    older = bedrock_request("anthropic.claude-sonnet-4-6-v1:0")
    assert older.body["anthropic_version"] == "bedrock-2023-05-31"
    assert older.path == "/model/anthropic.claude-sonnet-4-6-v1%3A0/invoke-with-response-stream"


@pytest.mark.parametrize(("caching", "ttl"), [(None, "5m"), ("enable", "5m"), ("enhance", "1h"), ("disable", None)])
def test_bedrock_cache_mark_sits_on_the_last_block_of_the_last_user_message(
    caching: str | None, ttl: str | None
) -> None:
    messages = [user(text("a")), user(text("b"), image(PNG)), assistant(text("c"))]
    body = bedrock_request(messages=messages, prompt_caching=caching).body
    marks = [block.get("cache_control") for message in body["messages"] for block in message["content"]]
    assert marks == [None, None, {"type": "ephemeral", "ttl": ttl} if ttl else None, None]
    assert "cache_control" not in body


def test_bedrock_has_no_fast_mode_no_remote_images_and_no_listing() -> None:
    with pytest.raises(UnsupportedParameterError):
        bedrock_request(fast_mode=True)
    with pytest.raises(InvalidMessageError):
        bedrock_request(messages=[user(image("https://example.com/a.png"))])
    found = resolve("x", "A,B", "bedrock://us-east-1", "anthropic-official", environ={})
    with pytest.raises(UnsupportedOperationError) as caught:
        dialect(found.vendor).models_request(found.vendor)
    assert attributes(caught.value) == {"client": "AnthropicOfficialClient", "operation": "list_models"}


# The protocol's own wire --------------------------------------------------------------------------------


def test_mmsp_body_is_what_was_given_with_bytes_as_base64() -> None:
    messages = [
        {"role": "user", "content_items": [inline(data=b"\xfb\xff\x00"), {"type": "weird"}], "x": (b"a", {"y": b"b"})}
    ]
    config: Any = {"thinking_level": ThinkingLevel.HIGH, "unknown": [1], "trace_id": "t", "extra_headers": {"X-A": "1"}}
    (request,) = requests("mmsp", "fast", messages, **config)
    assert (request.path, request.headers["X-A"]) == ("/stream", "1")
    assert json.loads(json.dumps(request.body)) == {
        "model": "fast",
        "messages": [
            {
                "role": "user",
                "content_items": [
                    {"type": "inline_data.done", "data": "+/8A", "mime_type": "image/png"},
                    {"type": "weird"},
                ],
                "x": ["YQ==", {"y": "Yg=="}],
            }
        ],
        "config": {"thinking_level": "high", "unknown": [1], "trace_id": "t"},
    }
    assert messages[0]["content_items"][0]["data"] == b"\xfb\xff\x00"  # type: ignore[index]


def public(event_type: str, *items: Any) -> dict:
    return {"role": "assistant", "event_type": event_type, "content_items": list(items)}


def test_mmsp_events_pass_through_with_inline_data_as_bytes() -> None:
    decoder = mmsp.decoder(VENDORS["mmsp"])
    fidelity = {"signature": "AAEC"}
    coded = {"type": "inline_data.delta", "data": "AAEC", "mime_type": "image/png", "fidelity": fidelity}
    other = {"type": "weird.delta", "data": "AAEC"}
    (first,) = decoder.decode(public("delta", coded, {**coded, "type": "inline_thinking.done"}, other))
    whole = {**coded, "data": b"\0\1\2"}
    assert first == {"type": "event", "event": public("delta", whole, {**whole, "type": "inline_thinking.done"}, other)}
    (odd,) = decoder.decode({"anything": 1})
    assert odd == {"type": "event", "event": {"anything": 1}}
    with pytest.raises(IncompleteStreamError) as caught:
        decoder.finish()
    assert attributes(caught.value) == {"client": "MmspClient", "missing": ("usage_metadata", "finish_reason")}
    decoder.decode(public("stop"))
    assert list(decoder.finish()) == []


def test_mmsp_error_frame_is_an_upstream_error() -> None:
    error = {"type": "RateLimitError", "message": "slow down", "status": 429, "client": "X"}
    with pytest.raises(UpstreamError) as caught:
        mmsp.decoder(VENDORS["mmsp"]).decode({"error": error})
    expected = {"client": "MmspClient", "status": 429, "error_type": "RateLimitError", "error": error}
    assert attributes(caught.value) == expected
    assert str(caught.value) == "slow down. Wait a little, or look at the account's limits and credit"


@pytest.mark.parametrize(
    ("payload", "error", "message"),
    [
        ({"error": {"type": "NotFoundError", "message": "m"}}, {"type": "NotFoundError", "message": "m"}, "m"),
        ("x" * 500, {"type": "HTTPError", "message": "x" * 200}, "x" * 200),
        ({"detail": 1}, {"type": "HTTPError", "message": "HTTP 404"}, "HTTP 404"),
        ({"error": {"type": "Odd"}}, {"type": "Odd"}, "Odd"),
    ],
)
def test_mmsp_answer_with_another_status_is_an_upstream_error(payload: Any, error: dict, message: str) -> None:
    found = mmsp.upstream_error("MmspClient", 404, payload)
    assert (found.status, found.error, found.error_type) == (404, error, error["type"])
    assert str(found) == f"{message}. Check the model id and base_url"


# Listings and remote images -----------------------------------------------------------------------------


def test_listings_are_asked_for_where_the_vendor_has_them() -> None:
    paths = {name: dialect(vendor).models_request(vendor).path for name, vendor in VENDORS.items()}
    versioned = {"anthropic-official", "ant-messages", "google-official", "google-genai"}
    assert {name for name, path in paths.items() if path == "/v1/models"} == versioned
    assert all(paths[name] == "/models" for name in VENDORS if name not in versioned)
    for vendor in VENDORS.values():
        request = dialect(vendor).models_request(vendor)
        assert (request.method, request.framing, request.body) == ("GET", "json", None)
    assert dialect(VENDORS["ant-messages"]).models_request(VENDORS["ant-messages"]).headers["anthropic-version"]
    found = vertex("gemini-3.8-flash")
    assert dialect(found.vendor).models_request(found.vendor).path == "/v1beta1/publishers/google/models"


@pytest.mark.parametrize(
    ("client_type", "payload", "ids", "following"),
    [
        ("openai-chat", {"object": "list", "data": [{"id": "a"}, {"id": "b"}, {}, None]}, ["a", "b"], None),
        ("openai-chat", [{"id": "a"}], ["a"], None),
        ("openai-chat", {"data": None}, [], None),
        (
            "anthropic-official",
            {"data": [{"id": "a"}], "has_more": True, "last_id": "a&b"},
            ["a"],
            "/v1/models?after_id=a%26b",
        ),
        ("anthropic-official", {"data": [{"id": "a"}], "has_more": False, "last_id": "a"}, ["a"], None),
        (
            "google-official",
            {"models": [{"name": "models/a"}, {"name": "tunedModels/b"}], "nextPageToken": "x/="},
            ["a", "b"],
            "/v1/models?pageToken=x%2F%3D",
        ),
        (
            "google-genai",
            {"publisherModels": [{"name": "publishers/google/models/a"}], "nextPageToken": "n"},
            ["a"],
            "/v1beta1/publishers/google/models?pageToken=n",
        ),
    ],
)
def test_pages_of_a_listing(client_type: str, payload: Any, ids: list, following: str | None) -> None:
    page = dialect(VENDORS[client_type]).parse_models(payload)
    assert (page.ids, page.next) == (ids, following)


def test_remote_images_are_found_and_replaced_in_copies() -> None:
    web, other = "https://example.com/a.png", "HTTP://example.com/b.png"
    result = {"type": "tool_result.done", "text": "r", "tool_call_id": "t", "images": [other, PNG, web]}
    messages = [user(image(web), image(PNG), text("a")), user(result, {**result, "images": None})]
    assert remote_images(messages) == [web, other]
    inlined = with_inlined(messages, {web: PNG, other: PNG})
    assert remote_images(inlined) == []
    assert inlined[1]["content_items"][0]["images"] == [PNG, PNG, PNG]
    assert inlined[0]["content_items"][2] is messages[0]["content_items"][2]
    assert messages[0]["content_items"][0]["image_url"] == web
