"""Anthropic Messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmsp_nb.testing.parts import USAGE, Call, Part, Step, Text, Thinking, Usage, steps
from mmsp_nb.testing.sse import Frame

__all__ = ["error", "frames", "models", "refusal"]

FINISH = {"stop": "end_turn", "length": "max_tokens", "tool_call": "tool_use", "filter": "refusal"}


def frames(
    parts: Sequence[Part],
    *,
    usage: Usage | None = USAGE,
    cache_creation: int = 0,
    finish: str | None = "auto",
    interleave: bool = False,
    input_in_start: bool = False,
    ping: bool = True,
    message_stop: bool = True,
    unknown_blocks: bool = False,
    model: str = "fake-model",
) -> list[Frame | bytes]:
    """The events of one answer.

    usage: None = no usage anywhere. ``cache_creation`` tokens are taken out of the usage's prompt tokens.
    finish: a protocol finish reason, ``"filter"``, any vendor value, ``"auto"`` (by the parts) or None for none.
    interleave: deltas of parallel calls come mixed, told apart by block index.
    input_in_start: a call's whole input comes in its ``content_block_start``, no deltas follow.
    unknown_blocks: a server tool's blocks first, which a client has to skip.
    """
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    if usage is not None:
        before = {
            "input_tokens": usage.prompt - cache_creation,
            "cache_creation_input_tokens": cache_creation,
            "cache_read_input_tokens": usage.cached,
            "output_tokens": 1,
        }
        after = {
            **before,
            "output_tokens": usage.output,
            "output_tokens_details": {"thinking_tokens": usage.thoughts},
        }
    message: dict[str, Any] = {"id": "msg_fake", "type": "message", "role": "assistant", "model": model, "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": before}
    found = [_named({"type": "message_start", "message": message})]
    if ping:
        found.append(_named({"type": "ping"}))
    shift = 0
    if unknown_blocks:
        found += _server_tool()
        shift = 2
    for step in steps(parts, interleave):
        found += map(_named, _events(step, step.index + shift, input_in_start))
    has_calls = any(isinstance(part, Call) for part in parts)
    reason = ("tool_call" if has_calls else "stop") if finish == "auto" else finish
    delta = {"stop_reason": None if reason is None else FINISH.get(reason, reason), "stop_sequence": None}
    found.append(_named({"type": "message_delta", "delta": delta, "usage": after}))
    if message_stop:
        found.append(_named({"type": "message_stop"}))
    return list(found)


def _named(payload: dict[str, Any]) -> Frame:
    return Frame(payload, payload["type"])


def _events(step: Step, index: int, input_in_start: bool) -> list[dict[str, Any]]:
    part = step.part
    if step.kind == "start":
        return [{"type": "content_block_start", "index": index, "content_block": _block(part, input_in_start)}]
    if step.kind == "end":
        signed = isinstance(part, Thinking) and not part.redacted and part.signature is not None
        ending = [_delta(index, {"type": "signature_delta", "signature": part.signature})] if signed else []
        return [*ending, {"type": "content_block_stop", "index": index}]
    if isinstance(part, Text):
        return [_delta(index, {"type": "text_delta", "text": step.piece})]
    if isinstance(part, Thinking):
        return [] if part.redacted else [_delta(index, {"type": "thinking_delta", "thinking": step.piece})]
    return [] if input_in_start else [_delta(index, {"type": "input_json_delta", "partial_json": step.piece})]


def _block(part: Part, input_in_start: bool) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": ""}
    if isinstance(part, Thinking):
        if part.redacted:
            return {"type": "redacted_thinking", "data": part.signature}
        return {"type": "thinking", "thinking": "", "signature": ""}
    if not isinstance(part, Call):
        raise TypeError("Messages answers carry no media")
    return {
        "type": "tool_use",
        "id": part.id,
        "name": part.name,
        "input": part.arguments if input_in_start else {},
    }


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _server_tool() -> list[Frame]:
    use = {"type": "server_tool_use", "id": "srvtoolu_fake", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_fake", "content": []}
    payloads: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": use},
        _delta(0, {"type": "input_json_delta", "partial_json": '{"query": "tides"}'}),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": result},
        {"type": "content_block_stop", "index": 1},
    ]
    return [_named(payload) for payload in payloads]


def error(message: str = "the fake provider gave up", code: str = "overloaded_error") -> Frame:
    """An error in the middle of a stream, after the 200."""
    return Frame({"type": "error", "error": {"type": code, "message": message}}, "error")


def refusal(status: int, message: str, code: str) -> dict[str, Any]:
    """The body of a refused request."""
    return {"type": "error", "error": {"type": code, "message": message}, "request_id": "req_fake"}


def models(ids: Sequence[str], has_more: bool = False) -> dict[str, Any]:
    """One page of a model listing."""
    data = [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in ids]
    return {
        "data": data,
        "has_more": has_more,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }
