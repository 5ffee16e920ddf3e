"""OpenAI Chat Completions, as OpenAI and the many servers that follow it write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from mmsp_nb.testing.parts import USAGE, Call, Part, Step, Text, Thinking, Usage, steps
from mmsp_nb.testing.sse import Frame

__all__ = ["error", "frames", "models", "refusal", "usage_payload"]

FINISH = {"stop": "stop", "length": "length", "tool_call": "tool_calls", "filter": "content_filter"}
Reasoning = Literal["reasoning_content", "reasoning", "both", "details"]


def frames(
    parts: Sequence[Part],
    *,
    usage: Usage | dict[str, Any] | None = USAGE,
    usage_on: Literal["last", "finish", "every"] = "last",
    finish: str | None = "auto",
    reasoning: Reasoning = "reasoning_content",
    calls: Literal["pieces", "whole", "name-in-every-chunk"] = "pieces",
    interleave: bool = False,
    shared_index: bool = False,
    one_chunk: bool = False,
    role: Literal["first", "every", "never"] = "first",
    null_content: bool = False,
    empty_choices: bool = False,
    done: bool = True,
    envelope: bool = True,
    model: str = "fake-model",
) -> list[Frame | bytes]:
    """The chunks of one answer.

    usage: None = the server never reports it; a dict goes out as it is. ``usage_on``: a last chunk without choices,
        together with the finish reason, or on every chunk.
    finish: a protocol finish reason, ``"filter"``, any vendor value, ``"auto"`` (by the parts) or None for none.
    calls: arguments in pieces, each call whole in one chunk, or the name and id repeated in every chunk.
    shared_index: all parallel calls carry index 0 and are told apart by id. ``interleave`` mixes their pieces.
    one_chunk: all parallel calls in the same chunk (with ``calls="whole"``).
    role: which chunks carry the role. ``null_content``: ``content: null`` beside everything else.
    empty_choices: a heartbeat chunk without choices first. ``done``: whether ``[DONE]`` comes last.
    envelope: id, object, created and model on each chunk; some servers leave them out.
    """
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None if null_content else ""}]
    if role == "never":
        deltas = []
    numbers = {index: n for n, index in enumerate(i for i, part in enumerate(parts) if isinstance(part, Call))}
    for step in steps(parts, interleave):
        number = 0 if shared_index else numbers.get(step.index, 0)
        deltas.extend(_deltas(step, number, reasoning, calls))
    if one_chunk:
        deltas = _merged(deltas)
    if role == "every":
        deltas = [{"role": "assistant", **({} if "content" in delta else {"content": ""}), **delta} for delta in deltas]
    elif null_content:
        deltas = [{"content": None, **delta} for delta in deltas]

    base: dict[str, Any] = {}
    if envelope:
        base = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1790000000, "model": model}
    chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if empty_choices:
        chunks.insert(0, {**base, "choices": []})
    reason = ("tool_call" if numbers else "stop") if finish == "auto" else finish
    if reason is not None:
        chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": FINISH.get(reason, reason)}]})
    payload = usage_payload(usage) if isinstance(usage, Usage) else usage
    if payload is not None and usage_on == "last":
        chunks.append({**base, "choices": [], "usage": payload})
    elif payload is not None:
        for chunk in chunks if usage_on == "every" else chunks[-1:]:
            chunk["usage"] = payload
    return [*map(Frame, chunks), *([Frame("[DONE]")] if done else [])]


def _deltas(step: Step, number: int, reasoning: Reasoning, calls: str) -> list[dict[str, Any]]:
    part = step.part
    if isinstance(part, Text):
        return [{"content": step.piece}] if step.kind == "piece" else []
    if isinstance(part, Thinking):
        return _reasoning_deltas(step, part, reasoning)
    if not isinstance(part, Call):
        raise TypeError("Chat Completions answers carry no media")
    lead = {"index": number, "id": part.id, "type": "function"}
    if calls == "whole":
        whole = {**lead, "function": {"name": part.name, "arguments": "".join(part.pieces)}}
        return [{"tool_calls": [whole]}] if step.kind == "end" else []
    if calls == "name-in-every-chunk":
        again = {**lead, "function": {"name": part.name, "arguments": step.piece}}
        return [{"tool_calls": [again]}] if step.kind == "piece" else []
    if step.kind == "start":
        return [{"tool_calls": [{**lead, "function": {"name": part.name, "arguments": ""}}]}]
    if step.kind == "piece":
        return [{"tool_calls": [{"index": number, "function": {"arguments": step.piece}}]}]
    return []


def _reasoning_deltas(step: Step, part: Thinking, reasoning: Reasoning) -> list[dict[str, Any]]:
    if reasoning == "details":
        if step.kind == "piece":
            return [{"reasoning_details": [{"type": "reasoning.text", "text": step.piece, "index": 0}]}]
        if step.kind == "end" and part.encrypted is not None:
            block = {"type": "reasoning.encrypted", "data": part.encrypted, "format": "fake-v1", "id": "rs_fake"}
            return [{"reasoning_details": [{**block, "index": 0}]}]
        return []
    if step.kind != "piece":
        return []
    names = ("reasoning_content", "reasoning") if reasoning == "both" else (reasoning,)
    return [dict.fromkeys(names, step.piece)]


def _merged(deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    merged: list[dict[str, Any]] = []
    for delta in deltas:
        if merged and delta.keys() == merged[-1].keys() == {"tool_calls"}:
            merged[-1] = {"tool_calls": merged[-1]["tool_calls"] + delta["tool_calls"]}
        else:
            merged.append(delta)
    return merged


def usage_payload(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.thoughts},
    }


def error(message: str = "the fake provider gave up", code: str = "server_error") -> Frame:
    """An error in the middle of a stream, after the 200."""
    return Frame({"error": {"message": message, "type": code, "code": code, "param": None}})


def refusal(status: int, message: str, code: str) -> dict[str, Any]:
    """The body of a refused request."""
    return {"error": {"message": message, "type": code, "code": code, "param": None}}


def models(ids: Sequence[str]) -> dict[str, Any]:
    """A model listing, always one page."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 1790000000, "owned_by": "fake"} for name in ids],
    }
