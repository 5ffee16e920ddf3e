"""OpenAI Responses."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from . import chat
from .base import budget, content, effort, mapping, need, records, tool
from .neutral import (
    CREATED,
    Ask,
    BadRequest,
    Call,
    Delta,
    Finish,
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

NAME = "responses"
error = chat.error


def _turns(entries: Any) -> tuple[str, tuple[Turn, ...]]:
    if isinstance(entries, str):
        return "", (Turn("user", (Text(entries),)),)
    system: list[str] = []
    turns: list[Turn] = []

    def add(role: str, parts: Iterable[Part]) -> None:
        if role != "assistant":
            add_user(turns, parts)
        elif turns and turns[-1].role == "assistant":
            turns[-1] = Turn("assistant", (*turns[-1].parts, *parts))
        else:
            turns.append(Turn("assistant", tuple(parts)))

    for entry in records(entries):
        kind, role = entry.get("type", "message"), str(entry.get("role") or "user")
        if kind == "message" and role in ("system", "developer"):
            system.extend(part.text for part in content(entry.get("content")) if isinstance(part, Text))
        elif kind == "message":
            add(role, content(entry.get("content")))
        elif kind == "reasoning":
            texts = [*records(entry.get("summary")), *records(entry.get("content"))]
            add("assistant", [Thinking("".join(str(text.get("text") or "") for text in texts))])
        elif kind == "function_call":
            arguments = arguments_of(entry.get("arguments"))
            add("assistant", [Call(str(entry.get("name") or ""), arguments, str(entry.get("call_id") or ""))])
        elif kind == "function_call_output":
            parts = content(entry.get("output"))
            text = "\n".join(part.text for part in parts if isinstance(part, Text))
            images = sum(not isinstance(part, Text) for part in parts)
            add("user", [Result(str(entry.get("call_id") or ""), text, images=images)])
    return "\n".join(system), name_results(turns)


def _choice(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return value
    value = mapping(value)
    names = [entry.get("name") for entry in records(value.get("tools"))] or [value.get("name")]
    return tuple(str(name) for name in names if name) or "auto"


def _schema(value: Any) -> Mapping[str, Any] | None:
    value = mapping(mapping(value).get("format"))
    if value.get("type") == "json_schema":
        return mapping(value.get("schema"))
    return {} if value.get("type") == "json_object" else None


def read(body: Mapping[str, Any], model: str = "", stream: bool | None = None) -> Ask:
    model = need(body, "model", str, "Missing required parameter: 'model'.", code="missing_required_parameter")
    if not isinstance(body.get("input"), str | list):
        raise BadRequest("Missing required parameter: 'input'.", code="missing_required_parameter", param="input")
    system, turns = _turns(body["input"])
    instructions = body.get("instructions")
    reasoning = mapping(body.get("reasoning"))
    summary = reasoning.get("summary")
    encrypted = "reasoning.encrypted_content" in (body.get("include") or [])
    # a vendor of open weights streams the reasoning itself; OpenAI a summary, or nothing readable
    open_weights = model.lower().startswith(("deepseek", "minimax"))
    readable = "content" if open_weights or not (summary or encrypted) else "summary" if summary else ""
    return Ask(
        model=model,
        turns=turns,
        system="\n".join(filter(None, [instructions if isinstance(instructions, str) else "", system])),
        tools=tuple(tool(entry) for entry in records(body.get("tools")) if entry.get("type") == "function"),
        tool_choice=_choice(body.get("tool_choice", "auto")),
        parallel=body.get("parallel_tool_calls") is not False,
        think=effort(reasoning.get("effort")) or bool(summary),
        show_thoughts=bool(readable),
        max_tokens=budget(body.get("max_output_tokens")),
        schema=_schema(body.get("text")),
        stream=body.get("stream") is True,
        digest=digest(body),
        options={"readable": readable, "encrypted": encrypted and not open_weights, "body": body},
    )


def _usage(usage: Usage) -> dict[str, Any]:
    made = usage.output + usage.thoughts
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": usage.thoughts},
        "total_tokens": usage.input + made,
    }


def _response(ask: Ask, status: str, output: list[Any], usage: Usage | None) -> dict[str, Any]:
    body = mapping(ask.options.get("body"))
    return {
        "id": ask.ident("resp_", length=48),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": ask.max_tokens,
        "model": ask.model,
        "output": output,
        "parallel_tool_calls": ask.parallel,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None, **mapping(body.get("reasoning"))},
        "service_tier": "default",
        "store": bool(body.get("store", True)),
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": _usage(usage) if usage else None,
        "user": None,
        "metadata": {},
    }


class ResponsesEncoder:
    """Named events with a running ``sequence_number``; each output item is opened, filled and closed."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.number = -1
        self.output: list[dict[str, Any]] = []
        self.item: dict[str, Any] | None = None
        self.text = ""

    def _event(self, kind: str, **fields: Any) -> bytes:
        self.number += 1
        return frame({"type": kind, "sequence_number": self.number, **fields}, kind)

    def _here(self, **index: int) -> dict[str, Any]:
        assert self.item is not None
        return {"item_id": self.item["id"], "output_index": len(self.output), **index}

    def start(self) -> Iterable[bytes]:
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=_response(self.ask, "in_progress", [], None))

    def _open(self, delta: Delta) -> Iterable[bytes]:
        number = len(self.output)
        if delta.call:
            self.item = {
                "id": self.ask.ident("fc_", number, 48),
                "type": "function_call",
                "status": "in_progress",
                "arguments": "",
                "call_id": delta.call.id,
                "name": delta.call.name,
            }
        elif delta.kind == "thinking":
            self.item = {"id": self.ask.ident("rs_", number, 48), "type": "reasoning", "summary": []}
        else:
            ident = self.ask.ident("msg_", number, 48)
            self.item = {"id": ident, "type": "message", "status": "in_progress", "content": [], "role": "assistant"}
        self.text = ""
        yield self._event("response.output_item.added", output_index=number, item=self.item)
        if self.item["type"] == "message":
            yield self._event("response.content_part.added", **self._here(content_index=0), part=_part(""))
        elif self.item["type"] == "reasoning" and self.ask.options.get("readable") == "summary":
            part = {"type": "summary_text", "text": ""}
            yield self._event("response.reasoning_summary_part.added", **self._here(summary_index=0), part=part)

    def push(self, delta: Delta) -> Iterable[bytes]:
        kind = {"text": "message", "thinking": "reasoning"}.get(delta.kind, "function_call")
        if delta.call or self.item is None or self.item["type"] != kind:
            yield from self._close()
            yield from self._open(delta)
        self.text += delta.text
        if not delta.text:
            return
        if kind == "message":
            here = self._here(content_index=0)
            yield self._event("response.output_text.delta", **here, delta=delta.text, logprobs=[])
        elif kind == "function_call":
            yield self._event("response.function_call_arguments.delta", **self._here(), delta=delta.text)
        elif self.ask.options.get("readable") == "summary":
            here = self._here(summary_index=0)
            yield self._event("response.reasoning_summary_text.delta", **here, delta=delta.text)
        elif self.ask.options.get("readable") == "content":
            yield self._event("response.reasoning_text.delta", **self._here(content_index=0), delta=delta.text)

    def _close(self, status: str = "completed") -> Iterable[bytes]:
        item, text = self.item, self.text
        if item is None:
            return
        if item["type"] == "message":
            here = self._here(content_index=0)
            yield self._event("response.output_text.done", **here, text=text, logprobs=[])
            yield self._event("response.content_part.done", **here, part=_part(text))
            item = {**item, "status": status, "content": [_part(text)]}
        elif item["type"] == "function_call":
            yield self._event("response.function_call_arguments.done", **self._here(), arguments=text)
            item = {**item, "status": status, "arguments": text}
        else:
            readable = self.ask.options.get("readable")
            if readable == "summary":
                here, part = self._here(summary_index=0), {"type": "summary_text", "text": text}
                yield self._event("response.reasoning_summary_text.done", **here, text=text)
                yield self._event("response.reasoning_summary_part.done", **here, part=part)
            elif readable == "content":
                yield self._event("response.reasoning_text.done", **self._here(content_index=0), text=text)
            item = _reasoning(self.ask, item, text)
        yield self._event("response.output_item.done", output_index=len(self.output), item=item)
        self.output.append(item)
        self.item = None

    def finish(self, finish: Finish, usage: Usage | None) -> Iterable[bytes]:
        status = "incomplete" if finish == "length" else "completed"
        yield from self._close(status)
        yield self._event(f"response.{status}", response=_response(self.ask, status, self.output, usage))

    def fail(self, status: int, message: str) -> Iterable[bytes]:
        code = "rate_limit_exceeded" if status == 429 else "server_error"
        response = _response(self.ask, "failed", self.output, None)
        yield self._event("response.failed", response={**response, "error": {"code": code, "message": message}})


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _reasoning(ask: Ask, item: dict[str, Any], text: str) -> dict[str, Any]:
    """A finished reasoning item: readable as summary, as content or not at all, sealed if that was asked for."""
    item = dict(item)
    if ask.options.get("readable") == "summary":
        item["summary"] = [{"type": "summary_text", "text": text}]
    elif ask.options.get("readable") == "content":
        item["content"] = [{"type": "reasoning_text", "text": text}]
    if ask.options.get("encrypted"):
        item["encrypted_content"] = base64.b64encode(ask.ident("sealed-", length=48).encode()).decode()
    return item


def encoder(ask: Ask, usage: Usage | None = None) -> ResponsesEncoder:
    return ResponsesEncoder(ask)


def document(ask: Ask, says: list[Say], finish: Finish, usage: Usage) -> dict[str, Any]:
    writer = ResponsesEncoder(ask)
    for say in says:
        match say:
            case Call():
                deltas = [Delta("call", "", say), Delta("arguments", say.json)]
            case Thinking(text=text):
                deltas = [Delta("thinking", text)]
            case Text(text=text):
                deltas = [Delta("text", text)]
        for delta in deltas:
            list(writer.push(delta))
    list(writer.finish(finish, usage))
    return _response(ask, "incomplete" if finish == "length" else "completed", writer.output, usage)
