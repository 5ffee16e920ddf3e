"""What the streams of the vendors become, with their vices."""

from __future__ import annotations

import base64
import json
from typing import Any

import provider_recordings as recorded
import pytest
from provider_helpers import answer, attributes, decode
from provider_items import FULL, call, check, counts, text, thinking
from provider_recordings import (
    added,
    call_item,
    calls,
    chunk,
    completed,
    delta,
    done,
    ended,
    grown,
    piece,
    start,
    tool_use,
)

from mmsp_nb.protocol.errors import (
    EmptyResponseError,
    IncompleteStreamError,
    ProviderStreamError,
    StreamProtocolError,
)
from mmsp_nb.providers import chat, messages
from mmsp_nb.providers.vendors import VENDORS, bedrock

SIGNED = {"signature": "c2ln"}


FEW = counts(None, 3, None, 2)

CHAT = {
    "text": ([text("Ebb until 14:20.")], "stop", FULL),
    "llama.cpp": ([text("Hello")], "stop", counts(0, 37, None, 12)),
    "vllm text with the finish reason": ([text("Hi!")], "stop", FEW),
    "reasoning_content": (
        [thinking("Need a table.", reasoning_field="reasoning_content"), text("Ebb")],
        "length",
        FULL,
    ),
    "reasoning": ([thinking("Hm", reasoning_field="reasoning"), text("Ebb")], "stop", FULL),
    "both reasoning fields": ([thinking("Hm"), text("Ebb")], "stop", FULL),
    "reasoning details": (
        [thinking("Hm ok", encrypted_content="ENC", format="x-v1", reasoning_id="rs_1"), text("Ebb")],
        "stop",
        FULL,
    ),
    "call in pieces": ([call("tide_table", "t-1", port="Brest")], "tool_call", FEW),
    "two calls, one after the other": (
        [call("tide_table", "t-1", port="Brest"), call("tide_table", "t-2", port="Dover")],
        "tool_call",
        FEW,
    ),
    "text, then a whole call": ([text("Let me look."), call("tide_table", "t-1", port="Brést")], "tool_call", FEW),
}


@pytest.mark.parametrize("name", recorded.CHAT)
def test_chat_streams(name: str) -> None:
    check("openai-chat", recorded.CHAT[name], CHAT[name])
    check("openai-chat-vllm-adapter", recorded.CHAT[name], CHAT[name])
    if name != "reasoning details":
        check("zai-official", recorded.CHAT[name], CHAT[name])
        check("moonshot-official", recorded.CHAT[name], CHAT[name])


def test_chat_reasoning_details_are_read_where_they_are_replayed() -> None:
    items = answer("moonshot-official", recorded.CHAT["reasoning details"])["content_items"]
    assert items == [thinking("Hm", reasoning_field="reasoning"), text("Ebb")]


@pytest.mark.parametrize("name", recorded.CHAT_VICES)
def test_chat_calls_are_told_apart_however_they_are_sent(name: str) -> None:
    found = answer("openai-chat", recorded.CHAT_VICES[name])
    assert found["content_items"] == [call("tide", "t-1", port="Brest"), call("zone", "t-2", city="Paris")]
    assert found["finish_reason"] == "tool_call"


def test_chat_call_deltas_carry_the_identity_of_their_call() -> None:
    raws = [
        raw for raw in decode("openai-chat", recorded.CHAT_VICES["interleaved"]) if raw["type"] == "tool_call.delta"
    ]
    by_call: dict[str, str] = {}
    for raw in raws:
        by_call[raw["fidelity"]["item_id"]] = by_call.get(raw["fidelity"]["item_id"], "") + raw["arguments"]
    assert list(by_call.values()) == ['{"port":"Brest"}', '{"city":"Paris"}']


def test_chat_calls_without_ids_get_numbered_ones_where_the_vendor_allows_it() -> None:
    events = [
        calls(piece(0, '{"a":1}', "", "f")),
        calls(piece(0, '{"a":2}', None, "f")),  # the first is complete, so the same name again is a second call
        calls(piece(1, '{"a":', None, "f"), piece(1, "3}", None, "f")),
        chunk({}, "tool_calls", usage={"prompt_tokens": 3, "completion_tokens": 2}),
    ]
    expected = [call("f", "call_0", a=1), call("f", "call_1", a=2), call("f", "call_2", a=3)]
    assert answer("openai-chat", events)["content_items"] == expected
    assert answer("openai-chat-vllm-adapter", events)["content_items"] == expected
    with pytest.raises(StreamProtocolError):
        answer("zai-official", events)


def test_chat_call_that_never_gets_a_name_is_no_call() -> None:
    with pytest.raises(StreamProtocolError):
        answer("openai-chat", [calls(piece(0, "{}", "t-1")), chunk({}, "tool_calls"), recorded.CHAT_USAGE])


def test_chat_tolerates_what_is_missing() -> None:
    events: list[Any] = [
        {},
        {"choices": None},
        {"choices": [], "prompt_filter_results": []},
        {"choices": [{}]},
        {"choices": [{"delta": None, "finish_reason": None}]},
        {"choices": [{"delta": {"tool_calls": None, "content": None}}]},
        calls({"index": 0}),
        {"choices": [{"delta": {"content": [{"type": "text", "text": "E"}, "bb"]}}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"finish_reason": "content_filter"}]},
        {"usage": {"prompt_tokens": None, "completion_tokens": None, "prompt_tokens_details": None}},
    ]
    check("openai-chat", events, ([text("Ebb5")], "stop", counts(None, None, None, None)))


def test_chat_reads_usage_wherever_it_is_and_the_last_one_wins() -> None:
    first = {"prompt_tokens": 1, "completion_tokens": 1}
    inside = chunk({"content": "E"}, "odd")
    inside["choices"][0]["usage"] = {"prompt_tokens": 9, "completion_tokens": 4}
    events = [chunk({"content": "x"}, usage=first), inside]
    check("openai-chat", events, ([text("xE")], "unknown", counts(None, 9, None, 4)))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, counts(9, 5, None, None)),
        ({"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 9}}, counts(None, None, 9, 5)),
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 9}}, counts(None, None, 9, 0)),
    ],
)
def test_gateways_that_count_parts_outside_the_total_give_no_negative_tokens(usage: dict, expected: dict) -> None:
    (raw,) = [raw for raw in decode("openai-chat", [{"usage": usage}]) if raw["type"] == "usage"]
    assert raw == {"type": "usage", **expected}


def test_refusals_are_text() -> None:
    events = [chunk({"refusal": "I "}), chunk({"refusal": "won't."}), chunk({}, "stop"), recorded.CHAT_USAGE]
    assert answer("openai-chat", events)["content_items"] == [text("I won't.")]
    events = [
        added(0, {"id": "msg_1", "type": "message"}),
        grown("refusal", 0, "msg_1", "I won't."),
        {"type": "response.refusal.done", "item_id": "msg_1", "refusal": "I won't."},
        completed(),
    ]
    assert answer("openai-official", events)["content_items"] == [text("I won't.")]


def test_second_encrypted_block_begins_an_item_of_its_own() -> None:
    def block(data: str) -> dict:
        return chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": data, "format": "f"}]})

    events = [block("A"), block("A"), block("B"), chunk({"content": "x"}, "stop"), recorded.CHAT_USAGE]
    assert answer("openai-chat", events)["content_items"] == [
        thinking("", encrypted_content="A", format="f"),
        thinking("", encrypted_content="B", format="f"),
        text("x"),
    ]


# Responses ----------------------------------------------------------------------------------------------

TWO_CALLS = [call("tide", "call_1", port="Brest"), call("tide", "call_2")]
RESPONSES = {
    "text": ([text("Ebb until.")], "stop"),
    "phases": ([text("Looking.", phase="commentary"), text("Ebb.", phase="final_answer")], "length"),
    "summary": ([thinking("Need a table.", channel="summary", encrypted_content="ENC"), text("Ebb.")], "stop"),
    "encrypted only": ([thinking("", encrypted_content="ENC", format="f1"), text("Ebb.")], "stop"),
    "reasoning text": ([thinking("Need it.", channel="content"), text("Ebb.")], "stop"),
    "calls": (TWO_CALLS, "tool_call"),
    "keepalive and tools that run there": ([text("Ebb.")], "stop"),
}
CONTENT_ONLY = RESPONSES | {
    "phases": ([text("Looking."), text("Ebb.")], "length"),
    "summary": ([text("Ebb.")], "stop"),
    "encrypted only": ([text("Ebb.")], "stop"),
    "reasoning text": ([thinking("Need it."), text("Ebb.")], "stop"),
}


@pytest.mark.parametrize("name", recorded.RESPONSES)
def test_responses_streams(name: str) -> None:
    events = recorded.RESPONSES[name]
    check("openai-official", events, (*RESPONSES[name], FULL))
    items, reason = RESPONSES[name]
    plain = [thinking("Need it."), text("Ebb.")] if name == "reasoning text" else items
    check("openai-responses", events, (plain, reason, FULL))
    check("deepseek-official", events, (*CONTENT_ONLY[name], FULL))
    check("minimax-official", events, (*CONTENT_ONLY[name], FULL))


def bare(event: dict[str, Any]) -> dict[str, Any]:
    """An event as some local servers send it: without ids, indices and sequence numbers."""
    return {key: value for key, value in event.items() if key not in ("item_id", "output_index", "content_index")}


def test_responses_without_ids_and_indices() -> None:
    for name in ("text", "summary", "reasoning text", "calls"):
        events = [bare(event) for event in recorded.RESPONSES[name]]
        check("openai-official", events, (*RESPONSES[name], FULL))
    nameless = [{**event, "item": {**event["item"], "id": None}} if "item" in event else event for event in events]
    check("openai-official", nameless, (*RESPONSES["calls"], FULL))


def test_responses_interleaved_calls_are_told_apart_by_item_or_output_index() -> None:
    def events(by: str) -> list:
        def grow(number: int, text: str) -> dict:
            whole = grown("function_call_arguments", number, f"fc_{number}", text)
            return {key: value for key, value in whole.items() if key in ("type", "delta", by)}

        opened = [added(number, call_item(number)) for number in (1, 2)]
        return [*opened, grow(2, '{"b":'), grow(1, '{"a":1}'), grow(2, "2}"), completed()]

    for by in ("item_id", "output_index"):
        found = answer("openai-official", events(by))["content_items"]
        assert found == [call("tide", "call_1", a=1), call("tide", "call_2", b=2)]


def test_responses_arguments_are_read_once_wherever_they_come() -> None:
    whole = '{"a":1}'
    ways = [
        [added(0, call_item(1, whole)), done(0, call_item(1, whole))],
        [
            added(0, call_item(1)),
            {"type": "response.function_call_arguments.done", "item_id": "fc_1", "arguments": whole},
        ],
        [added(0, call_item(1)), done(0, call_item(1, whole))],
        [done(0, call_item(1, whole))],
        [done(0, {**call_item(1), "arguments": {"a": 1}})],
        [grown("function_call_arguments", 0, "fc_1", whole), done(0, call_item(1, whole))],
    ]
    for events in ways:
        assert answer("openai-official", [*events, completed()])["content_items"] == [call("tide", "call_1", a=1)]
    nothing = {**call_item(1), "arguments": None}
    assert answer("minimax-official", [done(0, nothing), completed()])["content_items"] == [call("tide", "call_1")]


def test_late_signature_of_a_reasoning_item_does_not_split_the_text() -> None:
    late = done(0, {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "ENC"})
    events = [
        added(0, {"id": "rs_1", "type": "reasoning"}),
        grown("reasoning_summary_text", 0, "rs_1", "Hm"),
        added(1, {"id": "msg_1", "type": "message"}),
        grown("output_text", 1, "msg_1", "Ebb "),
        late,
        grown("output_text", 1, "msg_1", "until."),
        completed(),
    ]
    assert answer("openai-official", events)["content_items"] == [thinking("Hm"), text("Ebb until.")]
    nameless = [bare(event) for event in events]
    nameless = [{**e, "item": {**e["item"], "id": None}} if "item" in e else e for e in nameless]
    assert answer("openai-official", nameless)["content_items"] == [thinking("Hm"), text("Ebb until.")]


def test_responses_usage_and_status_may_lack_parts() -> None:
    usage = {"input_tokens": 3, "output_tokens": 2, "input_tokens_details": None}
    events = [grown("output_text", 0, "m", "Ebb")]
    check("openai-official", [*events, completed(usage=usage)], ([text("Ebb")], "stop", FEW))
    check("openai-official", [*events, completed("cancelled", usage)], ([text("Ebb")], "unknown", FEW))
    with pytest.raises(IncompleteStreamError) as caught:
        answer("openai-official", [*events, {"type": "response.completed", "response": {"usage": None}}])
    assert caught.value.missing == ("usage_metadata", "finish_reason")
    with pytest.raises(EmptyResponseError):
        answer("openai-official", [completed()])


# Messages -----------------------------------------------------------------------------------------------

REDACTED = thinking("_REDACTED_THINKING", signature="UkVE")
MESSAGES = {
    "text": ([text("Ebb until.")], "stop"),
    "thinking and a call": (
        [thinking("Need it.", **SIGNED), text("Looking."), call("tide", "toolu_1", port="Brest")],
        "tool_call",
    ),
    "withheld thinking": ([thinking("", **SIGNED), REDACTED, text("Ebb.")], "length"),
    "details of usage": ([text("Ebb.")], "unknown"),
}


@pytest.mark.parametrize("name", recorded.MESSAGES)
def test_messages_streams(name: str) -> None:
    check("anthropic-official", recorded.MESSAGES[name], (*MESSAGES[name], counts(10, 24, None, 12)))
    usage = counts(1, 5, 7, 5) if name == "details of usage" else counts(10, 24, None, 12)
    check("ant-messages", recorded.MESSAGES[name], (*MESSAGES[name], usage))


def test_messages_vices() -> None:
    def items(name: str) -> list:
        return answer("ant-messages", recorded.MESSAGES_VICES[name])["content_items"]

    both = [call("tide", "toolu_1", port="Brest"), call("zone", "toolu_2", city="Paris")]
    assert items("server tools") == [text("Ebb.")]
    assert items("whole input at the start") == both
    assert items("interleaved blocks") == both


def test_messages_input_at_the_start_counts_only_when_no_pieces_follow() -> None:
    events = [
        start(0, tool_use(1, port="old")),
        delta(0, "input_json_delta", partial_json=""),
        delta(0, "input_json_delta", partial_json='{"port":"new"}'),
        start(1, tool_use(2, port="kept")),
        delta(1, "input_json_delta", partial_json=""),
        *ended("tool_use"),
    ]
    assert answer("ant-messages", events)["content_items"] == [
        call("tide", "toolu_1", port="new"),
        call("tide", "toolu_2", port="kept"),
    ]


def test_messages_takes_the_type_from_the_event_name_and_tolerates_what_is_missing() -> None:
    decoder = messages.decoder(VENDORS["ant-messages"], "m")
    nameless = {"index": 0, "delta": {"type": "text_delta", "text": "x"}}
    assert decoder.decode(nameless, "content_block_delta")[0]["text"] == "x"
    for event in [
        {"type": "message_start"},
        {"type": "content_block_delta"},
        {"type": "content_block_start"},
        {"type": "message_delta"},
    ]:
        assert list(decoder.decode(event)) == []
    (usage,) = decoder.decode({"type": "message_start", "message": {"usage": {"input_tokens": None}}})
    assert usage["prompt_tokens"] is None


def bedrock_answer(*events: Any) -> list:
    decoder = messages.decoder(bedrock("us-east-1"), "m")
    wrapped = [{"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abc"} for event in events]
    return [raw for event in wrapped for raw in decoder.decode(event, "chunk")]


def test_bedrock_unwraps_the_events_and_reads_its_exceptions() -> None:
    plain = [raw for event in recorded.MESSAGES["text"] for raw in messages.decoder(bedrock("x"), "m").decode(event)]
    assert bedrock_answer(*recorded.MESSAGES["text"]) == plain
    with pytest.raises(ProviderStreamError) as caught:
        messages.decoder(bedrock("x"), "m").decode({"message": "Too many requests"}, "throttlingException")
    error = {"client": "AnthropicOfficialClient", "code": "throttlingException", "status": 429}
    assert str(caught.value).startswith("Too many requests. Wait a little")
    assert attributes(caught.value) == error


def test_chat_calls_without_ids_are_unique_in_the_conversation() -> None:
    sent = [call("f", "call_0", a=1), call("f", "call_2", a=1)]
    results = [{"type": "tool_result.done", "text": "", "tool_call_id": one["tool_call_id"]} for one in sent]
    history = [
        {"role": "user", "content_items": [text("go")]},
        {"role": "assistant", "content_items": sent},
        {"role": "user", "content_items": results},
    ]
    vendor = VENDORS["openai-chat"]
    decoder = chat.decoder(vendor, "m", chat.build(vendor, "m", history, {}))
    pieces = [calls(piece(0, "{}", None, "f")), calls(piece(1, "{}", "own", "f")), calls(piece(2, "{}", None, "f"))]
    raws = [raw for event in pieces for raw in decoder.decode(event)]
    assert [raw["tool_call_id"] for raw in raws] == ["call_1", "own", "call_3"]
