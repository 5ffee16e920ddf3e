"""The Model Message Stream Protocol itself: the stream already has the public form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .base import budget, effort, mapping, need, records, tool
from .neutral import (
    CREATED,
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

NAME = "mmsp"


def _part(item: Mapping[str, Any]) -> Part | None:
    match item.get("type"):
        case "text.done":
            return Text(str(item.get("text") or ""))
        case "thinking.done":
            return Thinking(str(item.get("thinking") or ""))
        case "image_url.done":
            return Image(str(item.get("image_url") or ""))
        case "inline_data.done":
            return Image(f"data:{item.get('mime_type')};base64,{item.get('data')}")
        case "tool_call.done":
            ident = str(item.get("tool_call_id") or "")
            return Call(str(item.get("name") or ""), arguments_of(item.get("arguments")), ident)
        case "tool_result.done":
            ident, images = str(item.get("tool_call_id") or ""), len(item.get("images") or [])
            return Result(ident, str(item.get("text") or ""), images=images)
    return None


def read(body: Mapping[str, Any], model: str = "", stream: bool | None = None) -> Ask:
    model = need(body, "model", str, "'model' must be a non-empty string")
    messages = need(body, "messages", list, "'messages' must be a list")
    config = body.get("config") if body.get("config") is not None else {}
    if not isinstance(config, Mapping):
        raise BadRequest("'config' must be an object", param="config")
    turns: list[Turn] = []
    for message in records(messages):
        parts = [part for item in records(message.get("content_items")) if (part := _part(item)) is not None]
        if message.get("role") == "assistant":
            turns.append(Turn("assistant", tuple(parts)))
        else:
            add_user(turns, parts)
    choice = config.get("tool_choice")
    form = mapping(config.get("response_format"))
    schema = mapping(form.get("json_schema"))
    return Ask(
        model=model,
        turns=name_results(turns),
        system=str(config.get("system_prompt") or ""),
        tools=tuple(tool(entry) for entry in records(config.get("tools"))),
        tool_choice=tuple(map(str, choice)) if isinstance(choice, list) else str(choice or "auto"),
        parallel=config.get("parallel_tool_calls") is not False,
        think=effort(config.get("thinking_level")) or config.get("thinking_summary") is True,
        show_thoughts=config.get("thinking_summary") is not False,
        max_tokens=budget(config.get("max_tokens")),
        schema=mapping(schema.get("schema", schema or form.get("schema"))) if form else None,
        stream=True,
        digest=digest(body),
    )


class MmspEncoder:
    """Delta events, a done event at the end of each item, one stop event."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.kind = ""
        self.first: Call | None = None
        self.text = ""

    @staticmethod
    def _event(item: dict[str, Any] | None, usage: Any = None, finish: str | None = None) -> bytes:
        return frame(
            {
                "role": "assistant",
                "event_type": "delta" if item else "stop",
                "content_items": [item] if item else [],
                "usage_metadata": usage,
                "finish_reason": finish,
                "created_at": CREATED * 1000,
            }
        )

    def start(self) -> Iterable[bytes]:
        return ()

    def _close(self) -> Iterable[bytes]:
        if self.kind == "tool_call" and self.first:
            ident, arguments = self.first.id, arguments_of(self.text or "{}")
            item = {"type": "tool_call.done", "name": self.first.name, "arguments": arguments, "tool_call_id": ident}
            yield self._event(item)
        elif self.kind:
            yield self._event({"type": f"{self.kind}.done", self.kind: self.text})
        self.kind, self.text, self.first = "", "", None

    def push(self, delta: Delta) -> Iterable[bytes]:
        kind = delta.kind if delta.kind in ("text", "thinking") else "tool_call"
        if delta.call or kind != self.kind:
            yield from self._close()
            self.kind, self.first = kind, delta.call
        self.text += delta.text
        if kind == "tool_call":
            name, ident = (delta.call.name, delta.call.id) if delta.call else ("", "")
            item = {"type": "tool_call.delta", "name": name, "arguments": delta.text, "tool_call_id": ident}
            yield self._event(item)
        else:
            yield self._event({"type": f"{kind}.delta", kind: delta.text})

    def finish(self, finish: Finish, usage: Usage | None) -> Iterable[bytes]:
        yield from self._close()
        counts = {
            "cached_tokens": usage.cached if usage else None,
            "prompt_tokens": usage.input - usage.cached if usage else None,
            "thoughts_tokens": usage.thoughts if usage else None,
            "response_tokens": usage.output if usage else None,
        }
        yield self._event(None, counts, finish)
        yield frame("[DONE]")

    def fail(self, status: int, message: str) -> Iterable[bytes]:
        yield frame(error(status, message))
        yield frame("[DONE]")


def encoder(ask: Ask, usage: Usage | None = None) -> MmspEncoder:
    return MmspEncoder(ask)


def document(ask: Ask, says: list[Say], finish: Finish, usage: Usage) -> dict[str, Any]:
    """Never asked for: this protocol always streams."""
    raise BadRequest("this protocol always streams")


_TYPES = {401: "AuthenticationError", 404: "NotFoundError"}


def error(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    kind = _TYPES.get(status) or ("InvalidRequestError" if status < 500 and status != 429 else "UpstreamError")
    return {"error": {"type": kind, "message": message, "status": status}}
