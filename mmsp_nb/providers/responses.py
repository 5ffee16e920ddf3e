"""Dialect R: OpenAI Responses, spoken by OpenAI, DeepSeek, MiniMax, OpenRouter and some local servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mmsp_nb.protocol.items import Item, UniConfig, UniMessage
from mmsp_nb.providers import mapping
from mmsp_nb.providers.base import Raw, Request
from mmsp_nb.providers.body import Past, entries
from mmsp_nb.providers.images import needs_high_detail
from mmsp_nb.providers.mapping import Draft, fidelity, json_text, models_request, parse_models
from mmsp_nb.providers.stream import (
    Event,
    EventDecoder,
    Handlers,
    call_delta,
    counted,
    detail,
    finished,
    text_delta,
    usage,
    without,
)
from mmsp_nb.providers.vendors import Vendor

__all__ = ["build", "decoder", "models_request", "parse_models"]

FINISH = {"completed": "stop", "incomplete": "length"}

_REPLAYED = ("encrypted_content", "signature", "format")


def build(
    vendor: Vendor, model: str, messages: Sequence[UniMessage], config: UniConfig, past: Past | None = None
) -> list[Request]:
    draft = Draft(vendor, model, config, {"model": model, "stream": True, "store": False})
    draft.apply(_CONFIG)
    draft.body["input"] = entries(past, messages, partial(_entries, draft), None)
    return [draft.request("/responses")]


# Config ---------------------------------------------------------------------------------------------


def _thinking_level(draft: Draft, value: str) -> None:
    draft.put("reasoning.effort", draft.choose("thinking_level", draft.rule("effort"), value))


def _thinking_summary(draft: Draft, value: bool) -> None:
    # comes after the level
    when = draft.rule("summary")
    if value and (when == "always" or (when == "with_level" and "reasoning" in draft.body)):
        draft.put("reasoning.summary", "concise")


def _tools(draft: Draft, value: list[dict[str, Any]]) -> None:
    draft.body["tools"] = [{"type": "function", **tool} for tool in value]


def _tool_choice(draft: Draft, value: str | list[str]) -> None:
    mapping.check_tool_choice(draft, value)
    choice: Any = value
    if not isinstance(value, str):
        named = [{"type": "function", "name": name} for name in value]
        choice = {"type": "allowed_tools", "mode": "required", "tools": named}
    draft.body["tool_choice"] = choice


def _response_format(draft: Draft, value: Mapping[str, Any]) -> None:
    schema = mapping.output_schema(draft, value)
    flat = {"type": value["type"]} if schema is None else {"type": "json_schema", "name": "answer", **schema}
    draft.put("text.format", flat)


_CONFIG: mapping.ConfigTable = {
    "max_tokens": "max_output_tokens",
    "system_prompt": "instructions",
    "temperature": mapping.set_temperature,
    "thinking_level": _thinking_level,
    "thinking_summary": _thinking_summary,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "fast_mode": mapping.set_fast_mode,
    "prompt_caching": mapping.set_caching,
    "top_p": "top_p",
    "parallel_tool_calls": "parallel_tool_calls",
    "response_format": _response_format,
}

# Input ----------------------------------------------------------------------------------------------


def _entries(draft: Draft, index: int, message: UniMessage, state: None) -> list[dict[str, Any]]:
    turn = _Turn(draft, message["role"])
    for item in message["content_items"]:
        draft.maker(_ITEMS, item)(turn, item)
    turn.flush()
    if all(entry["type"] == "reasoning" for entry in turn.entries):
        raise draft.nothing_to_send(index)
    return turn.entries


class _Turn:
    """One universal message on its way to input entries. Text and images gather until something else comes."""

    def __init__(self, draft: Draft, role: str) -> None:
        self.draft = draft
        self.role = role
        self.entries: list[dict[str, Any]] = []
        self.content: list[dict[str, Any]] = []
        self.phase: str | None = None

    def flush(self) -> None:
        if self.content:
            entry = {"type": "message", "role": self.role, "content": self.content}
            if self.phase:
                entry["phase"] = self.phase
            self.entries.append(entry)
            self.content = []

    def text(self, item: Item) -> None:
        user = self.role == "user"
        phase = None if user or not self.draft.rule("phase") else fidelity(item).get("phase")
        if phase and phase != self.phase:
            self.flush()
            self.phase = phase
        self.content.append({"type": "input_text" if user else "output_text", "text": item["text"]})

    def image(self, item: Item) -> None:
        self.content.append(self.image_part(item, item["image_url"]))

    def image_part(self, item: Item, url: str) -> dict[str, Any]:
        self.check_images(item)
        part = {"type": "input_image", "image_url": url}
        if self.draft.rule("image_detail") and needs_high_detail(self.draft.model, url):
            part["detail"] = "high"
        return part

    def check_images(self, item: Item) -> None:
        if not self.draft.vendor.reads_images(self.draft.model):
            raise self.draft.unsupported(item, f"model {self.draft.model!r} reads no images")

    def entry(self, entry: dict[str, Any]) -> None:
        self.flush()
        self.entries.append(entry)

    def thought(self, item: Item) -> None:
        text, kept, replay = item["thinking"], fidelity(item), self.draft.rule("reasoning")
        content = [{"type": "reasoning_text", "text": text}] if text else []
        entry: dict[str, Any] = {"type": "reasoning", "summary": []}
        implicit = self.draft.rule("implicit_summary") and "channel" not in kept and "encrypted_content" in kept
        if replay == "bare":
            entry = {"type": "reasoning", "content": content}
        elif replay == "fidelity" and (kept.get("channel") == "summary" or implicit):
            entry["summary"] = [{"type": "summary_text", "text": text}] if text else []
        elif content:
            entry["content"] = content
        if replay == "fidelity":
            entry.update((key, kept[key]) for key in _REPLAYED if kept.get(key) is not None)
        self.entry(entry)

    def call(self, item: Item) -> None:
        named = {"type": "function_call", "call_id": item["tool_call_id"], "name": item["name"]}
        self.entry({**named, "arguments": json_text(item["arguments"])})

    def result(self, item: Item) -> None:
        call_id, images, output = self.draft.result_id(item), item.get("images"), item["text"]
        if images is not None:
            self.check_images(item)
        if images:
            output = [{"type": "input_text", "text": output}, *(self.image_part(item, url) for url in images)]
        self.entry({"type": "function_call_output", "call_id": call_id, "output": output})


_ITEMS: dict[str, Callable[[_Turn, Item], None]] = {
    "text.done": _Turn.text,
    "image_url.done": _Turn.image,
    "thinking.done": _Turn.thought,
    "tool_call.done": _Turn.call,
    "tool_result.done": _Turn.result,
}

# Stream ---------------------------------------------------------------------------------------------


class ResponsesDecoder(EventDecoder):
    """Events to raw values. Items are told apart by id, by output index where a server sends no ids."""

    def __init__(self, vendor: Vendor, model: str = "", requests: Sequence[Request] = ()) -> None:
        super().__init__(vendor)
        self.handlers = _BY_SOURCE[vendor.rules["thinking_from"]]
        self._running = ""
        # a call's identity by each of its item id, call id and output index; and the calls with arguments
        self._calls: dict[Any, str] = {}
        self._last_call: str | None = None
        self._filled: set[str] = set()

    # items begin

    def item_added(self, event: Event) -> Sequence[Raw]:
        item = event.get("item") or {}
        kind = item.get("type")
        if kind == "function_call":
            return () if self.vendor.rules.get("whole_calls") else self._open_call(event, item)
        if kind not in ("message", "reasoning"):
            return ()
        self._running, identity = kind, _identity(event, item.get("id"))
        if kind == "reasoning":
            return (text_delta("thinking", "", identity),)
        return (
            text_delta("text", "", identity, {"phase": item.get("phase") if self.vendor.rules.get("phase") else None}),
        )

    # items grow

    def text_piece(self, event: Event) -> Sequence[Raw]:
        self._running, identity = "message", _identity(event, event.get("item_id"))
        return (text_delta("text", event.get("delta") or "", identity),)

    def thinking_piece(self, event: Event) -> Sequence[Raw]:
        self._running, identity = "reasoning", _identity(event, event.get("item_id"))
        return (text_delta("thinking", event.get("delta") or "", identity),)

    def arguments_piece(self, event: Event) -> Sequence[Raw]:
        call, piece = self._call_of(event), event.get("delta")
        if call is None or not piece or self.vendor.rules.get("whole_calls"):
            return ()
        self._filled.add(call)
        return (call_delta("", piece, "", call),)

    # items end

    def arguments_done(self, event: Event) -> Sequence[Raw]:
        if self.vendor.rules.get("whole_calls"):
            return ()
        return self._fill(self._call_of(event), event.get("arguments"))

    def item_done(self, event: Event) -> Sequence[Raw]:
        item = event.get("item") or {}
        if item.get("type") == "function_call":
            known = self._calls.get(item.get("id") or item.get("call_id"))
            return self._open_call(event, item) if known is None else self._fill(known, item.get("arguments"))
        if item.get("type") != "reasoning" or self.vendor.rules["reasoning"] != "fidelity":
            return ()
        identity = _identity(event, item.get("id"))
        if identity is None and self._running not in ("", "reasoning"):
            # the next item has begun, and nothing tells the assembler to whom this belongs
            return ()
        channel = next((name for name in self.vendor.rules["channels"] if item.get(name)), None)
        return (
            text_delta("thinking", "", identity, {"channel": channel, **{key: item.get(key) for key in _REPLAYED}}),
        )

    # calls

    def _open_call(self, event: Event, item: dict[str, Any]) -> Sequence[Raw]:
        identity = item.get("id") or item.get("call_id") or _identity(event, None) or f"call_{len(self._calls)}"
        for name in (item.get("id"), item.get("call_id"), event.get("output_index"), identity):
            if name is not None:
                self._calls[name] = identity
        self._running, self._last_call = "function_call", identity
        opening = call_delta(item.get("name"), item.get("arguments"), item.get("call_id") or identity, identity)
        if opening["arguments"]:
            self._filled.add(identity)
        return (opening,)

    def _call_of(self, event: Event) -> str | None:
        """The call an event is about; a server that sends no identity sends one call after the other."""
        names = [name for name in map(event.get, ("item_id", "call_id", "output_index")) if name is not None]
        return next((self._calls[name] for name in names if name in self._calls), None if names else self._last_call)

    def _fill(self, call: str | None, arguments: Any) -> Sequence[Raw]:
        """The whole arguments of a call, unless pieces of them were there before."""
        if call is None or call in self._filled or not arguments:
            return ()
        self._filled.add(call)
        return (call_delta("", arguments, "", call),)

    # the response ends

    def completed(self, event: Event) -> Sequence[Raw]:
        self.over = True
        response = event.get("response") or {}
        out: list[Raw] = []
        if counts := response.get("usage"):
            out.append(_usage(counts))
        if status := response.get("status"):
            out.append(finished({**FINISH, "completed": "tool_call"} if self._calls else FINISH, status))
        return out


_IGNORED = (
    "created in_progress queued output_text.done refusal.done reasoning_summary_part.added reasoning_summary_part.done"
    " reasoning_summary_text.done reasoning_text.done content_part.added content_part.done"
)
_HANDLERS: Handlers = {
    **{f"response.{name}": EventDecoder.nothing for name in _IGNORED.split()},
    "keepalive": EventDecoder.nothing,
    "response.output_item.added": ResponsesDecoder.item_added,
    "response.output_item.done": ResponsesDecoder.item_done,
    "response.output_text.delta": ResponsesDecoder.text_piece,
    "response.refusal.delta": ResponsesDecoder.text_piece,
    "response.reasoning_text.delta": ResponsesDecoder.thinking_piece,
    "response.function_call_arguments.delta": ResponsesDecoder.arguments_piece,
    "response.function_call_arguments.done": ResponsesDecoder.arguments_done,
    "response.completed": ResponsesDecoder.completed,
    "response.incomplete": ResponsesDecoder.completed,
    "response.failed": EventDecoder.failed,
    "error": EventDecoder.failed,
}
_SUMMARY = {"response.reasoning_summary_text.delta": ResponsesDecoder.thinking_piece}
_BY_SOURCE = {("content",): _HANDLERS, ("summary", "content"): {**_HANDLERS, **_SUMMARY}}


def _identity(event: Event, item_id: str | None) -> str | None:
    index = event.get("output_index")
    return item_id or (None if index is None else str(index))


def _usage(counts: dict[str, Any]) -> Raw:
    cached = detail(counts, "input_tokens_details", "cached_tokens")
    thoughts = detail(counts, "output_tokens_details", "reasoning_tokens")
    prompt, output = counted(counts, "input_tokens"), counted(counts, "output_tokens")
    return usage(cached, without(prompt, cached), thoughts, without(output, thoughts))


decoder = ResponsesDecoder
