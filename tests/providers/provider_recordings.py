"""Streams as the vendors send them, shortened: lists of the events' JSON, by what they show."""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]


def chunk(delta: Event | None = None, finish: str | None = None, **extra: Any) -> Event:
    """One Chat Completions chunk with a single choice."""
    choice: Event = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **extra,
    }


def piece(index: int | None, arguments: Any = None, call_id: str | None = None, name: str | None = None) -> Event:
    """One entry of ``tool_calls``, holding only what is given."""
    function = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    entry = {"index": index, "id": call_id, "type": "function" if name else None}
    return {**{key: value for key, value in entry.items() if value is not None}, "function": function}


def calls(*pieces: Event, finish: str | None = None) -> Event:
    return chunk({"tool_calls": list(pieces)}, finish)


CHAT_USAGE: Event = {
    "id": "chatcmpl-1",
    "choices": [],
    "usage": {
        "prompt_tokens": 30,
        "completion_tokens": 12,
        "total_tokens": 42,
        "prompt_tokens_details": {"cached_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5},
    },
}
_PLAIN_USAGE: Event = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
_DONE = [chunk({}, "tool_calls"), _PLAIN_USAGE]

CHAT: dict[str, list[Event]] = {
    "text": [
        chunk({"role": "assistant", "content": "", "refusal": None}),
        chunk({"content": "Ebb "}),
        chunk({"content": "until 14:20."}),
        chunk({}, "stop"),
        CHAT_USAGE,
    ],
    "llama.cpp": [
        {"choices": [{"finish_reason": None, "index": 0, "delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"finish_reason": None, "index": 0, "delta": {"content": "Hello"}}]},
        {"choices": [{"finish_reason": "stop", "index": 0, "delta": {}}]},
        {
            "choices": [],
            "usage": {"completion_tokens": 12, "prompt_tokens": 37, "prompt_tokens_details": {"cached_tokens": 0}},
            "timings": {"predicted_ms": 1.5},
        },
    ],
    "vllm text with the finish reason": [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hi", "reasoning": None}),
        chunk({"content": "!"}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 2}),
    ],
    "reasoning_content": [
        chunk({"role": "assistant", "reasoning_content": "Need "}),
        chunk({"reasoning_content": "a table."}),
        chunk({"content": "Ebb", "reasoning_content": None}),
        chunk({}, "length"),
        CHAT_USAGE,
    ],
    "reasoning": [chunk({"reasoning": "Hm", "content": ""}), chunk({"content": "Ebb"}), chunk({}, "stop"), CHAT_USAGE],
    "both reasoning fields": [
        chunk({"reasoning": "Hm", "reasoning_content": "Hm"}),
        chunk({"content": "Ebb"}),
        chunk({}, "stop"),
        CHAT_USAGE,
    ],
    "reasoning details": [
        chunk(
            {"reasoning": "Hm", "reasoning_details": [{"type": "reasoning.summary", "summary": "Hm", "format": "x"}]}
        ),
        chunk({"reasoning_details": [{"type": "reasoning.text", "text": " ok"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "ENC", "format": "x-v1", "id": "rs_1"}]}),
        chunk({"content": "Ebb"}),
        chunk({}, "stop"),
        CHAT_USAGE,
    ],
    "call in pieces": [
        chunk({"role": "assistant", "content": None}),
        calls(piece(0, "", "t-1", "tide_table")),
        calls(piece(0, '{"port":')),
        calls(piece(0, '"Brest"}')),
        *_DONE,
    ],
    "two calls, one after the other": [
        calls(piece(0, "", "t-1", "tide_table")),
        calls(piece(0, '{"port":"Brest"}')),
        calls(piece(1, "", "t-2", "tide_table")),
        calls(piece(1, '{"port":"Dover"}')),
        *_DONE,
    ],
    "text, then a whole call": [
        chunk({"content": "Let me look."}),
        calls(piece(0, '{"port": "Brést"}', "t-1", "tide_table"), finish="tool_calls"),
        _PLAIN_USAGE,
    ],
}

CHAT_VICES: dict[str, list[Event]] = {
    "interleaved": [
        calls(piece(0, "", "t-1", "tide"), piece(1, "", "t-2", "zone")),
        calls(piece(0, '{"port":')),
        calls(piece(1, '{"city":')),
        calls(piece(0, '"Brest"}'), piece(1, '"Paris"}')),
        *_DONE,
    ],
    "all calls at index 0": [
        calls(piece(0, '{"port":"Brest"}', "t-1", "tide")),
        calls(piece(0, '{"city":"Paris"}', "t-2", "zone")),
        *_DONE,
    ],
    "name on every chunk": [
        calls(piece(0, '{"port":', "t-1", "tide")),
        calls(piece(0, '"Brest"}', "t-1", "tide")),
        calls(piece(1, '{"city":', "t-2", "zone")),
        calls(piece(1, '"Paris"}', None, "zone")),
        *_DONE,
    ],
    "no index": [
        calls(piece(None, '{"port":', "t-1", "tide")),
        calls(piece(None, '"Brest"}')),
        calls(piece(None, '{"city":"Paris"}', "t-2", "zone")),
        *_DONE,
    ],
    "arguments as objects": [
        calls(piece(0, {"port": "Brest"}, "t-1", "tide"), piece(1, {"city": "Paris"}, "t-2", "zone")),
        *_DONE,
    ],
    "name after the id": [
        calls(piece(0, "", "t-1")),
        calls(piece(0, None, None, "tide")),
        calls(piece(0, '{"port":"Brest"}')),
        calls(piece(1, '{"city":', "t-2")),
        calls(piece(1, '"Paris"}', None, "zone")),
        *_DONE,
    ],
    "an id on every chunk": [
        calls(piece(0, '{"port":', "t-1", "tide")),
        calls(piece(0, '"Brest"}', "t-1")),
        calls(piece(1, '{"city":', "t-2", "zone")),
        calls(piece(1, '"Paris"}', "t-9")),
        *_DONE,
    ],
}


def _response(status: str, usage: Event | None, **extra: Any) -> Event:
    return {"id": "resp_1", "object": "response", "status": status, "usage": usage, "error": None, **extra}


RESPONSES_USAGE: Event = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 10},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 42,
}


def completed(status: str = "completed", usage: Event | None = RESPONSES_USAGE) -> Event:
    kind = "incomplete" if status == "incomplete" else "completed"
    return {"type": f"response.{kind}", "response": _response(status, usage), "sequence_number": 99}


def added(index: int, item: Event) -> Event:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: Event) -> Event:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def grown(kind: str, index: int, item_id: str, text: str) -> Event:
    return {
        "type": f"response.{kind}.delta",
        "item_id": item_id,
        "output_index": index,
        "content_index": 0,
        "delta": text,
    }


def call_item(number: int, arguments: str = "", name: str = "tide") -> Event:
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    return {"type": "function_call", "status": "in_progress", **ids, "name": name, "arguments": arguments}


_CREATED = [
    {"type": "response.created", "response": _response("in_progress", None), "sequence_number": 0},
    {"type": "response.in_progress", "response": _response("in_progress", None), "sequence_number": 1},
]
_PART: Event = {"item_id": "msg_1", "output_index": 0, "content_index": 0}

RESPONSES: dict[str, list[Event]] = {
    "text": [
        *_CREATED,
        added(0, {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}),
        {"type": "response.content_part.added", **_PART, "part": {"type": "output_text", "text": ""}},
        grown("output_text", 0, "msg_1", "Ebb "),
        grown("output_text", 0, "msg_1", "until."),
        {"type": "response.output_text.done", **_PART, "text": "Ebb until."},
        {"type": "response.content_part.done", **_PART, "part": {"type": "output_text", "text": "Ebb until."}},
        done(0, {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": []}),
        completed(),
    ],
    "phases": [
        added(0, {"id": "msg_1", "type": "message", "phase": "commentary"}),
        grown("output_text", 0, "msg_1", "Looking."),
        done(0, {"id": "msg_1", "type": "message", "phase": "commentary"}),
        added(1, {"id": "msg_2", "type": "message", "phase": "final_answer"}),
        grown("output_text", 1, "msg_2", "Ebb."),
        completed("incomplete"),
    ],
    "summary": [
        added(0, {"id": "rs_1", "type": "reasoning", "summary": []}),
        {"type": "response.reasoning_summary_part.added", "item_id": "rs_1", "output_index": 0, "summary_index": 0},
        grown("reasoning_summary_text", 0, "rs_1", "Need "),
        grown("reasoning_summary_text", 0, "rs_1", "a table."),
        {"type": "response.reasoning_summary_text.done", "item_id": "rs_1", "output_index": 0, "text": "Need a table."},
        done(
            0,
            {
                "id": "rs_1",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "Need a table."}],
                "encrypted_content": "ENC",
            },
        ),
        added(1, {"id": "msg_1", "type": "message"}),
        grown("output_text", 1, "msg_1", "Ebb."),
        completed(),
    ],
    "encrypted only": [
        added(0, {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "START"}),
        done(0, {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "ENC", "format": "f1"}),
        added(1, {"id": "msg_1", "type": "message"}),
        grown("output_text", 1, "msg_1", "Ebb."),
        completed(),
    ],
    "reasoning text": [
        added(0, {"id": "rs_1", "type": "reasoning", "content": []}),
        grown("reasoning_text", 0, "rs_1", "Need it."),
        done(0, {"id": "rs_1", "type": "reasoning", "content": [{"type": "reasoning_text", "text": "Need it."}]}),
        grown("output_text", 1, "msg_1", "Ebb."),
        completed(),
    ],
    "calls": [
        added(0, call_item(1)),
        grown("function_call_arguments", 0, "fc_1", '{"port":'),
        grown("function_call_arguments", 0, "fc_1", '"Brest"}'),
        {"type": "response.function_call_arguments.done", "item_id": "fc_1", "arguments": '{"port":"Brest"}'},
        done(0, call_item(1, '{"port":"Brest"}')),
        added(1, call_item(2)),
        grown("function_call_arguments", 1, "fc_2", "{}"),
        done(1, call_item(2, "{}")),
        completed(),
    ],
    "keepalive and tools that run there": [
        {"type": "keepalive"},
        added(0, {"id": "ws_1", "type": "web_search_call", "status": "in_progress"}),
        {"type": "response.web_search_call.searching", "item_id": "ws_1", "output_index": 0},
        done(0, {"id": "ws_1", "type": "web_search_call", "status": "completed"}),
        grown("output_text", 1, "msg_1", "Ebb."),
        completed(),
    ],
}


def start(index: int, block: Event) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def tool_use(number: int, name: str = "tide", **given: Any) -> Event:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}


def ended(reason: str = "end_turn", **usage: Any) -> list[Event]:
    counts = {"output_tokens": 12, **usage}
    end = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": counts}
    return [end, {"type": "message_stop"}]


MESSAGE_START: Event = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "usage": {
            "input_tokens": 20,
            "cache_creation_input_tokens": 4,
            "cache_read_input_tokens": 10,
            "output_tokens": 1,
        },
    },
}

MESSAGES: dict[str, list[Event]] = {
    "text": [
        MESSAGE_START,
        {"type": "ping"},
        start(0, {"type": "text", "text": ""}),
        delta(0, "text_delta", text="Ebb "),
        delta(0, "text_delta", text="until."),
        stop(0),
        *ended(),
    ],
    "thinking and a call": [
        MESSAGE_START,
        start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, "thinking_delta", thinking="Need "),
        delta(0, "thinking_delta", thinking="it."),
        delta(0, "signature_delta", signature="c2ln"),
        stop(0),
        start(1, {"type": "text", "text": ""}),
        delta(1, "text_delta", text="Looking."),
        stop(1),
        start(2, tool_use(1)),
        delta(2, "input_json_delta", partial_json=""),
        delta(2, "input_json_delta", partial_json='{"port":'),
        delta(2, "input_json_delta", partial_json='"Brest"}'),
        stop(2),
        *ended("tool_use"),
    ],
    "withheld thinking": [
        MESSAGE_START,
        start(0, {"type": "thinking", "thinking": ""}),
        delta(0, "signature_delta", signature="c2ln"),
        stop(0),
        start(1, {"type": "redacted_thinking", "data": "UkVE"}),
        stop(1),
        start(2, {"type": "text", "text": ""}),
        delta(2, "text_delta", text="Ebb."),
        stop(2),
        *ended("max_tokens"),
    ],
    "details of usage": [
        MESSAGE_START,
        start(0, {"type": "text", "text": ""}),
        delta(0, "text_delta", text="Ebb."),
        delta(0, "citations_delta", citation={"type": "x"}),
        stop(0),
        *ended("refusal", input_tokens=5, cache_read_input_tokens=1, output_tokens_details={"thinking_tokens": 7}),
    ],
}

MESSAGES_VICES: dict[str, list[Event]] = {
    "server tools": [
        MESSAGE_START,
        start(0, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        delta(0, "input_json_delta", partial_json='{"query":"tide"}'),
        stop(0),
        start(1, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
        stop(1),
        start(2, {"type": "text", "text": ""}),
        delta(2, "text_delta", text="Ebb."),
        stop(2),
        *ended(),
    ],
    "whole input at the start": [
        MESSAGE_START,
        start(0, tool_use(1, port="Brest")),
        stop(0),
        start(1, tool_use(2, "zone", city="Paris")),
        *ended("tool_use"),
    ],
    "interleaved blocks": [
        MESSAGE_START,
        start(0, tool_use(1)),
        start(1, tool_use(2, "zone")),
        delta(1, "input_json_delta", partial_json='{"city":'),
        delta(0, "input_json_delta", partial_json='{"port":"Brest"}'),
        delta(1, "input_json_delta", partial_json='"Paris"}'),
        stop(0),
        stop(1),
        *ended("tool_use"),
    ],
}
