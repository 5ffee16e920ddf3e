"""Config keys beyond the protocol's, and what holds for all keys."""

from __future__ import annotations

from typing import Any

import pytest
from provider_helpers import MODELS, body, changes, requests, user

from mmsp_nb.protocol.errors import InvalidMessageError, UnsupportedParameterError
from mmsp_nb.providers.vendors import VENDORS

CHAT_TYPES = [name for name in VENDORS if name not in ("openai-embedding", "mmsp")]
TOOL = {"name": "tide", "description": "é", "parameters": {"type": "object", "properties": {}}}
ENABLED = {"type": "enabled", "clear_thinking": False}

# Our own keys -----------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
FLAT = {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}
OWN = {"top_p": 0.9, "stop": ["END"], "seed": 7, "parallel_tool_calls": False, "response_format": FORMAT}
OWN_ON_THE_WIRE: dict[str, dict[str, Any]] = {
    "openai-chat": {key: {key: value} for key, value in OWN.items()},
    "openai-responses": {
        "top_p": {"top_p": 0.9},
        "parallel_tool_calls": {"parallel_tool_calls": False},
        "response_format": {"text": {"format": FLAT}},
    },
    "ant-messages": {
        "top_p": {"top_p": 0.9},
        "stop": {"stop_sequences": ["END"]},
        "parallel_tool_calls": {},
        "response_format": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    },
    "anthropic-official": {
        "stop": {"stop_sequences": ["END"]},
        "parallel_tool_calls": {},
        "response_format": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    },
    "google-official": {
        "stop": {"generation_config": {"stop_sequences": ["END"]}},
        "seed": {"generation_config": {"seed": 7}},
        "response_format": {"response_format": [{"type": "text", "mime_type": "application/json", "schema": SCHEMA}]},
    },
    "google-genai": {
        "top_p": {"generationConfig": {"topP": 0.9}},
        "stop": {"generationConfig": {"stopSequences": ["END"]}},
        "seed": {"generationConfig": {"seed": 7}},
        "response_format": {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
    },
    "openai-embedding": {},
}


@pytest.mark.parametrize("client_type", OWN_ON_THE_WIRE)
@pytest.mark.parametrize("key", OWN)
def test_own_keys_are_mapped_or_refused_but_never_ignored(client_type: str, key: str) -> None:
    wire = OWN_ON_THE_WIRE[client_type]
    if key in wire:
        assert changes(client_type, **{key: OWN[key]}) == wire[key]
    else:
        with pytest.raises(UnsupportedParameterError) as caught:
            body(client_type, **{key: OWN[key]})
        assert caught.value.parameter == key


def test_one_stop_text_becomes_a_list_where_the_wire_has_only_lists() -> None:
    assert changes("ant-messages", stop="END") == {"stop_sequences": ["END"]}
    assert changes("google-official", stop="END") == {"generation_config": {"stop_sequences": ["END"]}}
    assert changes("openai-chat", stop="END") == {"stop": "END"}


def test_parallel_tool_calls_of_messages_lives_in_the_tool_choice() -> None:
    def choice(**config: Any) -> Any:
        return body("ant-messages", tools=[TOOL], **config).get("tool_choice")

    assert choice(parallel_tool_calls=False) == {"type": "auto", "disable_parallel_tool_use": True}
    assert choice(parallel_tool_calls=False, tool_choice="required") == {
        "type": "any",
        "disable_parallel_tool_use": True,
    }
    assert choice(parallel_tool_calls=False, tool_choice="none") == {"type": "none"}
    assert choice(parallel_tool_calls=True) is None


def test_response_format_is_read_flat_too_and_json_object_where_the_wire_has_it() -> None:
    flat = {"type": "json_schema", "schema": SCHEMA}
    assert changes("openai-chat", response_format=flat) == {
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    }
    assert changes("openai-responses", response_format=flat) == {"text": {"format": {"name": "answer", **flat}}}
    json_object = {"type": "json_object"}
    assert changes("openai-chat", response_format=json_object) == {"response_format": json_object}
    assert changes("openai-responses", response_format=json_object) == {"text": {"format": json_object}}
    assert changes("google-genai", response_format=json_object) == {
        "generationConfig": {"responseMimeType": "application/json"}
    }
    for client_type, value in [
        ("ant-messages", json_object),
        ("openai-chat", {"type": "xml"}),
        ("openai-chat", {"type": "json_schema"}),
    ]:
        with pytest.raises(UnsupportedParameterError) as caught:
            body(client_type, response_format=value)
        assert caught.value.parameter == "response_format"


@pytest.mark.parametrize("client_type", list(VENDORS))
def test_extra_body_is_merged_last_and_extra_headers_are_sent(client_type: str) -> None:
    extra = {"metadata": {"a": 1}, "model": "other", "generationConfig": {"topK": 3}}
    config = {"extra_body": extra, "extra_headers": {"X-Title": "t", "accept": "text/x"}, "max_tokens": 9}
    if client_type == "openai-embedding":
        config.pop("max_tokens")
    (request,) = requests(client_type, **config)
    assert request.body is not None
    assert request.body["metadata"] == {"a": 1}
    assert request.body["model"] == "other"
    assert request.headers["X-Title"] == "t"
    assert [value for name, value in request.headers.items() if name.lower() == "accept"] == ["text/x"]
    if client_type == "google-genai":
        assert request.body["generationConfig"] == {"maxOutputTokens": 9, "topK": 3}
    assert extra == {"metadata": {"a": 1}, "model": "other", "generationConfig": {"topK": 3}}


def test_tables_of_the_vendors_are_not_changed_by_what_is_done_to_a_body() -> None:
    first = body("anthropic-official", thinking_level="high", thinking_summary=True)
    (request,) = requests("zai-official", thinking_level="high", extra_body={"thinking": {"x": 1}})
    assert request.body is not None
    assert request.body["thinking"] == {**ENABLED, "x": 1}
    assert body("zai-official", thinking_level="high")["thinking"] == ENABLED
    assert body("anthropic-official", thinking_level="high", thinking_summary=True) == first


@pytest.mark.parametrize("client_type", CHAT_TYPES)
def test_unknown_values_are_refused_by_name_even_without_the_check_before(client_type: str) -> None:
    for key, value in {"thinking_level": "hihg", "tool_choice": "any"}.items():
        if client_type == "openai-chat" and key == "thinking_level":
            continue
        with pytest.raises(UnsupportedParameterError) as caught:
            body(client_type, tools=[TOOL], **{key: value})
        assert caught.value.parameter == key


@pytest.mark.parametrize("client_type", [name for name in CHAT_TYPES if name != "ant-messages"])
def test_config_is_rejected_before_items(client_type: str) -> None:
    bad_items = [user({"type": "weird.done"})]
    with pytest.raises(UnsupportedParameterError):
        body(client_type, MODELS[client_type], bad_items, prompt_caching="sometimes")
    with pytest.raises(InvalidMessageError):
        body(client_type, MODELS[client_type], bad_items)
