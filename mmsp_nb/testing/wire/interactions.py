"""Gemini Interactions."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from mmsp_nb.testing.parts import USAGE, Call, Media, Part, Step, Text, Thinking, Usage, steps
from mmsp_nb.testing.sse import Frame

__all__ = ["error", "frames", "models", "refusal"]

STATUS = {"stop": "completed", "length": "incomplete", "tool_call": "requires_action"}


def frames(
    parts: Sequence[Part],
    *,
    usage: Usage | None = USAGE,
    finish: str | None = "auto",
    interleave: bool = False,
    arguments_in_start: bool = False,
    completed: bool = True,
    unknown_steps: bool = False,
    done: bool = True,
    model: str = "fake-model",
) -> list[Frame | bytes]:
    """The events of one answer.

    usage: None = the final event has none. ``completed``: whether there is a final event at all.
    finish: a protocol finish reason, any vendor status, ``"auto"`` (by the parts) or None for no status.
    interleave: argument deltas of parallel calls come mixed, told apart by step index.
    arguments_in_start: a call's arguments come whole in its ``step.start``.
    unknown_steps: a search step first, which a client has to skip.
    """
    interaction: dict[str, Any] = {"id": "int_fake", "object": "interaction", "model": model, "role": "model"}
    created = "2026-01-01T00:00:00Z"
    interaction |= {"created": created, "updated": created}
    found: list[dict[str, Any]] = [
        {"event_type": "interaction.created", "interaction": {**interaction, "status": "in_progress"}},
        {"event_type": "interaction.status_update", "interaction_id": "int_fake", "status": "in_progress"},
    ]
    shift = 0
    if unknown_steps:
        search = {"type": "google_search_call", "id": "search_fake", "arguments": {"queries": ["tides"]}}
        found += [
            {"event_type": "step.start", "index": 0, "step": search},
            {"event_type": "step.stop", "index": 0},
        ]
        shift = 1
    for step in steps(parts, interleave):
        found += _events(step, step.index + shift, arguments_in_start)
    if completed:
        has_calls = any(isinstance(part, Call) for part in parts)
        reason = ("tool_call" if has_calls else "stop") if finish == "auto" else finish
        final = dict(interaction)
        if reason is not None:
            final["status"] = STATUS.get(reason, reason)
        if usage is not None:
            final["usage"] = {
                "total_input_tokens": usage.input,
                "total_cached_tokens": usage.cached,
                "total_output_tokens": usage.response,
                "total_thought_tokens": usage.thoughts,
                "total_tool_use_tokens": 0,
                "total_tokens": usage.input + usage.output,
            }
        found.append({"event_type": "interaction.completed", "interaction": final})
    named = [Frame(payload, payload["event_type"]) for payload in found]
    return [*named, *([Frame("[DONE]", "done")] if done else [])]


def _events(step: Step, index: int, arguments_in_start: bool) -> list[dict[str, Any]]:
    part = step.part
    if step.kind == "start":
        start = {"event_type": "step.start", "index": index, "step": _step(part, arguments_in_start)}
        return [start, *([_delta(index, _media(part))] if isinstance(part, Media) else [])]
    if step.kind == "end":
        signature = {"type": "thought_signature", "signature": part.signature}
        ending = [] if part.signature is None else [_delta(index, signature)]
        return [*ending, {"event_type": "step.stop", "index": index}]
    if isinstance(part, Text):
        return [_delta(index, {"type": "text", "text": step.piece})]
    if isinstance(part, Thinking):
        return [_delta(index, {"type": "thought_summary", "content": {"type": "text", "text": step.piece}})]
    return [] if arguments_in_start else [_delta(index, {"type": "arguments_delta", "arguments": step.piece})]


def _step(part: Part, arguments_in_start: bool) -> dict[str, Any]:
    if isinstance(part, Call):
        arguments = part.arguments if arguments_in_start else {}
        return {"type": "function_call", "id": part.id, "name": part.name, "arguments": arguments}
    is_thought = isinstance(part, Thinking) or (isinstance(part, Media) and part.thought)
    return {"type": "thought"} if is_thought else {"type": "model_output"}


def _media(part: Media) -> dict[str, Any]:
    kind = part.mime_type.split("/")[0]
    media = {"type": kind, "data": base64.b64encode(part.data).decode(), "mime_type": part.mime_type}
    if part.thought:
        return {"type": "thought_summary", "content": media}
    return {**media, "sample_rate": 24000, "channels": 1} if kind == "audio" else media


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": delta}


def error(message: str = "the fake provider gave up", code: str = "internal_error") -> Frame:
    """An error in the middle of a stream, after the 200."""
    return Frame({"event_type": "error", "error": {"code": code, "message": message}}, "error")


def refusal(status: int, message: str, code: str) -> dict[str, Any]:
    """The body of a refused request."""
    return {"error": {"code": status, "message": message, "status": code.upper()}}


def models(ids: Sequence[str], next_page: str | None = None) -> dict[str, Any]:
    """One page of a model listing."""
    page: dict[str, Any] = {"models": [{"name": f"models/{name}", "displayName": name} for name in ids]}
    return {**page, "nextPageToken": next_page} if next_page else page
