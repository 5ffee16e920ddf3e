"""Gemini Interactions: an answer is a list of steps."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from . import generate
from .base import budget, content, effort, mapping, need, records, tool
from .neutral import (
    Ask,
    BadRequest,
    Call,
    Delta,
    Finish,
    Image,
    Part,
    Result,
    Say,
    Text,
    Thinking,
    Turn,
    Usage,
    add_user,
    arguments_of,
    digest,
    name_results,
)
from .pieces import frame

NAME = "interactions"
error = generate.error
_STATUS: dict[Finish, str] = {"stop": "completed", "length": "incomplete", "tool_call": "requires_action"}


def _blocks(value: Any) -> list[Part]:
    parts: list[Part] = []
    for block in [{"type": "text", "text": value}] if isinstance(value, str) else records(value):
        if "data" in block:
            parts.append(Image(f"data:{block.get('mime_type')};base64,{block.get('data')}"))
        elif block.get("uri"):
            parts.append(Image(str(block["uri"])))
        else:
            parts.extend(content([block]))
    return parts


def _turns(steps: Any) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    plain = isinstance(steps, str) or any(step.get("type") in ("text", "image") for step in records(steps))
    if plain:
        return (Turn("user", tuple(_blocks(steps))),)
    for step in records(steps):
        kind, parts = step.get("type"), list[Part]()
        if kind == "user_input":
            add_user(turns, _blocks(step.get("content")))
            continue
        if kind == "function_result":
            inner = _blocks(step.get("result"))
            text = "\n".join(part.text for part in inner if isinstance(part, Text))
            name = str(step.get("name") or "")
            images = sum(isinstance(part, Image) for part in inner)
            add_user(turns, [Result(str(step.get("call_id") or name), text, name, images=images)])
            continue
        if kind == "model_output":
            parts = _blocks(step.get("content"))
        elif kind == "thought":
            parts = [Thinking("".join(str(block.get("text") or "") for block in records(step.get("summary"))))]
        elif kind == "function_call":
            name = str(step.get("name") or "")
            parts = [Call(name, arguments_of(step.get("arguments")), str(step.get("id") or name))]
        if turns and turns[-1].role == "assistant":
            turns[-1] = Turn("assistant", (*turns[-1].parts, *parts))
        else:
            turns.append(Turn("assistant", tuple(parts)))
    return name_results(turns)


def _choice(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return {"any": "required"}.get(value, value)
    names = mapping(mapping(value).get("allowed_tools")).get("tools") or []
    return tuple(str(name) for name in names) or "auto"


def _schema(value: Any) -> Mapping[str, Any] | None:
    for entry in records(value) or [mapping(value)]:
        if entry.get("mime_type") == "application/json" or "schema" in entry:
            return mapping(entry.get("schema"))
    return None


def read(body: Mapping[str, Any], model: str = "", stream: bool | None = None) -> Ask:
    model = need(body, "model", str, "The request must name a model or an agent.")
    if not isinstance(body.get("input"), str | list) or not body["input"]:
        raise BadRequest("The request has no input.", param="input")
    config = mapping(body.get("generation_config"))
    summaries = config.get("thinking_summaries")
    return Ask(
        model=model,
        turns=_turns(body["input"]),
        system=str(body.get("system_instruction") or ""),
        tools=tuple(tool(entry) for entry in records(body.get("tools")) if entry.get("type") == "function"),
        tool_choice=_choice(config.get("tool_choice", "auto")),
        think=effort(config.get("thinking_level")) or summaries == "auto",
        show_thoughts=summaries == "auto",
        max_tokens=budget(config.get("max_output_tokens")),
        schema=_schema(body.get("response_format")),
        stream=body.get("stream") is True,
        digest=digest(body),
    )


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "total_tokens": usage.input + usage.output + usage.thoughts,
        "total_input_tokens": usage.input,
        "input_tokens_by_modality": [{"modality": "text", "tokens": usage.input}],
        "total_cached_tokens": usage.cached,
        "total_output_tokens": usage.output,
        "total_tool_use_tokens": 0,
        "total_thought_tokens": usage.thoughts,
    }


def _interaction(ask: Ask, status: str, usage: Usage | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": ask.ident("v1_", length=48), "status": status}
    if usage:
        fields["usage"] = _usage(usage)
    if status != "in_progress":
        fields |= {"created": "2026-01-01T00:00:00Z", "updated": "2026-01-01T00:00:00Z", "service_tier": "standard"}
    return {**fields, "object": "interaction", "model": ask.model}


def _signature(ask: Ask, number: int) -> str:
    return base64.b64encode(ask.ident("thought-", number, 48).encode()).decode()


class InteractionsEncoder:
    """``step.start``, ``step.delta``, ``step.stop`` for each step; every answer opens with a signed thought."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.index = -1
        self.kind = ""

    @staticmethod
    def _event(kind: str, **fields: Any) -> bytes:
        return frame({**fields, "event_type": kind}, kind)

    def start(self) -> Iterable[bytes]:
        interaction = _interaction(self.ask, "in_progress")
        yield self._event("interaction.created", interaction=interaction)
        yield self._event("interaction.status_update", interaction_id=interaction["id"], status="in_progress")

    def _begin(self, step: dict[str, Any]) -> Iterable[bytes]:
        yield from self._stop()
        self.kind, self.index = step["type"], self.index + 1
        yield self._event("step.start", index=self.index, step=step)

    def _delta(self, **delta: Any) -> bytes:
        return self._event("step.delta", index=self.index, delta=delta)

    def _stop(self) -> Iterable[bytes]:
        if self.kind == "thought":
            yield self._delta(type="thought_signature", signature=_signature(self.ask, self.index))
        if self.kind:
            yield self._event("step.stop", index=self.index)
        self.kind = ""

    def push(self, delta: Delta) -> Iterable[bytes]:
        kind = {"text": "model_output", "thinking": "thought"}.get(delta.kind, "function_call")
        if self.index < 0 and kind != "thought":
            yield from self._begin({"type": "thought"})
        if delta.call:
            step = {"type": kind, "id": delta.call.id, "name": delta.call.name, "arguments": {}}
            yield from self._begin(step)
        elif kind != self.kind:
            yield from self._begin({"type": kind})
        if not delta.text:
            return
        if kind == "model_output":
            yield self._delta(type="text", text=delta.text)
        elif kind == "function_call":
            yield self._delta(type="arguments_delta", arguments=delta.text)
        elif self.ask.show_thoughts:
            yield self._delta(type="thought_summary", content={"type": "text", "text": delta.text})

    def finish(self, finish: Finish, usage: Usage | None) -> Iterable[bytes]:
        yield from self._stop()
        yield self._event("interaction.completed", interaction=_interaction(self.ask, _STATUS[finish], usage))
        yield frame("[DONE]", "done")

    def fail(self, status: int, message: str) -> Iterable[bytes]:
        code = generate.status_name(status).lower()
        yield self._event("error", error={"code": code, "message": message})


def encoder(ask: Ask, usage: Usage | None = None) -> InteractionsEncoder:
    return InteractionsEncoder(ask)


def document(ask: Ask, says: list[Say], finish: Finish, usage: Usage) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if not says or not isinstance(says[0], Thinking):
        steps.append({"type": "thought", "signature": _signature(ask, 0)})
    for say in says:
        match say:
            case Text(text=text):
                steps.append({"type": "model_output", "content": [{"type": "text", "text": text}]})
            case Thinking(text=text):
                summary = [{"type": "text", "text": text}] if ask.show_thoughts else []
                steps.append({"type": "thought", "summary": summary, "signature": _signature(ask, len(steps))})
            case Call():
                call = {"type": "function_call", "id": say.id, "name": say.name, "arguments": dict(say.arguments)}
                steps.append(call)
    return {**_interaction(ask, _STATUS[finish], usage), "steps": steps}
