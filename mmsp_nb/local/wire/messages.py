"""Anthropic Messages."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from .base import budget, content, mapping, need, records, tool
from .neutral import (
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
    arguments_of,
    digest,
    name_results,
)
from .pieces import frame

NAME = "messages"
_STOP: dict[Finish, str] = {"stop": "end_turn", "length": "max_tokens", "tool_call": "tool_use"}


def _parts(value: Any) -> list[Part]:
    if isinstance(value, str):
        return [Text(value)]
    parts: list[Part] = []
    for block in records(value):
        kind = block.get("type")
        if kind == "tool_use":
            parts.append(
                Call(str(block.get("name") or ""), arguments_of(block.get("input")), str(block.get("id") or ""))
            )
        elif kind == "tool_result":
            inner = content(block.get("content"))
            text = "\n".join(part.text for part in inner if isinstance(part, Text))
            images = sum(not isinstance(part, Text) for part in inner)
            parts.append(Result(str(block.get("tool_use_id") or ""), text, images=images))
        elif kind == "thinking":
            parts.append(Thinking(str(block.get("thinking") or "")))
        else:
            parts.extend(content([block]))
    return parts


def _choice(value: Any) -> str | tuple[str, ...]:
    value = mapping(value)
    if value.get("name"):
        return (str(value["name"]),)
    return {"any": "required", "none": "none"}.get(str(value.get("type")), "auto")


def read(body: Mapping[str, Any], model: str = "", stream: bool | None = None) -> Ask:
    model = need(body, "model", str, "model: Field required")
    messages = need(body, "messages", list, "messages: Field required")
    if budget(body.get("max_tokens")) is None:
        raise BadRequest("max_tokens: Field required" if "max_tokens" not in body else "max_tokens: must be positive")
    if not messages:
        raise BadRequest("messages: at least one message is required")
    system = "\n".join(part.text for part in content(body.get("system")) if isinstance(part, Text))
    turns = [
        Turn("assistant" if message.get("role") == "assistant" else "user", tuple(_parts(message.get("content"))))
        for message in records(messages)
    ]
    thinking = mapping(body.get("thinking"))
    output = mapping(body.get("output_config"))
    wanted = mapping(output.get("format") or body.get("output_format"))
    return Ask(
        model=model,
        turns=name_results(turns),
        system=system,
        tools=tuple(tool(entry, "input_schema") for entry in records(body.get("tools"))),
        tool_choice=_choice(body.get("tool_choice")),
        parallel=mapping(body.get("tool_choice")).get("disable_parallel_tool_use") is not True,
        think=thinking.get("type") in ("enabled", "adaptive"),
        show_thoughts=thinking.get("display") != "omitted",
        max_tokens=budget(body.get("max_tokens")),
        schema=mapping(wanted.get("schema")) if wanted.get("type") == "json_schema" else None,
        stream=body.get("stream") is True,
        digest=digest(body),
        options={"caches": "cache_control" in body},
    )


def _input(ask: Ask, usage: Usage) -> dict[str, Any]:
    """What was read: from the cache, into the cache, and past it."""
    fresh = usage.input - usage.cached
    written = fresh if ask.options.get("caches") else 0
    return {
        "input_tokens": fresh - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": usage.cached,
    }


def _seal(ask: Ask, number: int) -> str:
    return base64.b64encode(ask.ident("seal-", number, 48).encode()).decode()


class MessagesEncoder:
    """``message_start``, content blocks one after the other, ``message_delta``, ``message_stop``.

    The usage of the input belongs to the first frame, so the encoder wants it before it starts.
    """

    def __init__(self, ask: Ask, usage: Usage | None = None) -> None:
        self.ask, self.usage = ask, usage
        self.index = -1
        self.kind = ""

    @staticmethod
    def _event(kind: str, **fields: Any) -> bytes:
        return frame({"type": kind, **fields}, kind)

    def start(self) -> Iterable[bytes]:
        message: dict[str, Any] = {
            "id": self.ask.ident("msg_01", length=22),
            "type": "message",
            "role": "assistant",
            "model": self.ask.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        if self.usage:
            message["usage"] = {**_input(self.ask, self.usage), "output_tokens": 1, "service_tier": "standard"}
        yield self._event("message_start", message=message)
        yield self._event("ping")

    def _stop(self) -> Iterable[bytes]:
        if not self.kind:
            return
        if self.kind == "thinking":
            seal = {"type": "signature_delta", "signature": _seal(self.ask, self.index)}
            yield self._event("content_block_delta", index=self.index, delta=seal)
        yield self._event("content_block_stop", index=self.index)
        self.kind = ""

    def push(self, delta: Delta) -> Iterable[bytes]:
        kind = {"text": "text", "thinking": "thinking"}.get(delta.kind, "tool_use")
        if delta.call or kind != self.kind:
            yield from self._stop()
            self.kind, self.index = kind, self.index + 1
            block: dict[str, Any] = {"type": kind, kind: ""}
            if delta.call:
                block = {"type": kind, "id": delta.call.id, "name": delta.call.name, "input": {}}
            elif kind == "thinking":
                block["signature"] = ""
            yield self._event("content_block_start", index=self.index, content_block=block)
        if not delta.text or (kind == "thinking" and not self.ask.show_thoughts):
            return
        name, key = {
            "text": ("text_delta", "text"),
            "thinking": ("thinking_delta", "thinking"),
            "tool_use": ("input_json_delta", "partial_json"),
        }[kind]
        yield self._event("content_block_delta", index=self.index, delta={"type": name, key: delta.text})

    def finish(self, finish: Finish, usage: Usage | None) -> Iterable[bytes]:
        yield from self._stop()
        fields: dict[str, Any] = {"delta": {"stop_reason": _STOP[finish], "stop_sequence": None}}
        if usage:
            made: dict[str, Any] = {"output_tokens": usage.output + usage.thoughts}
            if usage.thoughts:
                made["output_tokens_details"] = {"thinking_tokens": usage.thoughts}
            fields["usage"] = {**_input(self.ask, usage), **made}
        yield self._event("message_delta", **fields)
        yield self._event("message_stop")

    def fail(self, status: int, message: str) -> Iterable[bytes]:
        yield frame(error(status, message), "error")


def encoder(ask: Ask, usage: Usage | None = None) -> MessagesEncoder:
    return MessagesEncoder(ask, usage)


def document(ask: Ask, says: list[Say], finish: Finish, usage: Usage) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for number, say in enumerate(says):
        match say:
            case Text(text=text):
                blocks.append({"type": "text", "text": text})
            case Thinking(text=text):
                shown = text if ask.show_thoughts else ""
                blocks.append({"type": "thinking", "thinking": shown, "signature": _seal(ask, number)})
            case Call():
                blocks.append({"type": "tool_use", "id": say.id, "name": say.name, "input": dict(say.arguments)})
    return {
        "id": ask.ident("msg_01", length=22),
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": blocks,
        "stop_reason": _STOP[finish],
        "stop_sequence": None,
        "usage": {
            **_input(ask, usage),
            "output_tokens": usage.output + usage.thoughts,
            "service_tier": "standard",
        },
    }


_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    kind = _TYPES.get(status) or ("api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011demo"}
