"""Dialect R: OpenAI Responses, spoken by OpenAI, DeepSeek, MiniMax, OpenRouter and some local servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mmsp_nb.protocol.items import Item, UniConfig, UniMessage
from mmsp_nb.providers import mapping
from mmsp_nb.providers.base import ModelPage, Raw, Request
from mmsp_nb.providers.errors import stream_error, unknown_event
from mmsp_nb.providers.images import needs_high_detail
from mmsp_nb.providers.mapping import Draft, fidelity, json_text, subtract
from mmsp_nb.providers.vendors import Vendor

FINISH = {"completed": "stop", "incomplete": "length"}

_REPLAYED = ("encrypted_content", "signature", "format")


def build(vendor: Vendor, model: str, messages: Sequence[UniMessage], config: UniConfig) -> list[Request]:
    body = {"model": model, "stream": True, "store": False, **vendor.rules.get("body", {})}
    draft = Draft(vendor, model, config, body)
    draft.apply(_CONFIG)
    entries: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        turn = _Turn(draft, message["role"])
        for item in message["content_items"]:
            turn.add(item)
        turn.flush()
        if all(entry["type"] == "reasoning" for entry in turn.entries):
            raise draft.nothing_to_send(index)
        entries += turn.entries
    draft.body["input"] = entries
    return [draft.request("/responses")]


def decoder(vendor: Vendor, model: str, requests: Sequence[Request] = ()) -> ResponsesDecoder:
    return ResponsesDecoder(vendor)


def models_request(vendor: Vendor) -> Request:
    return Request("/models", headers=mapping.JSON_HEADERS, method="GET", framing="json")


def parse_models(payload: Any) -> ModelPage:
    return mapping.page_of_data(payload)


# Config ---------------------------------------------------------------------------------------------


def _thinking_level(draft: Draft, value: str) -> None:
    draft.put("reasoning", "effort", draft.choose("thinking_level", draft.rule("effort"), value))


def _thinking_summary(draft: Draft, value: bool) -> None:
    # comes after the level
    when = draft.rule("summary")
    if value and (when == "always" or (when == "with_level" and "reasoning" in draft.body)):
        draft.put("reasoning", "summary", "concise")


def _tools(draft: Draft, value: list[dict[str, Any]]) -> None:
    draft.body["tools"] = [{"type": "function", **tool} for tool in value]


def _tool_choice(draft: Draft, value: str | list[str]) -> None:
    mapping.check_tool_choice(draft, value)
    if not isinstance(value, str):
        named = [{"type": "function", "name": name} for name in value]
        draft.body["tool_choice"] = {"type": "allowed_tools", "mode": "required", "tools": named}
    else:
        draft.body["tool_choice"] = value


def _response_format(draft: Draft, value: Mapping[str, Any]) -> None:
    schema = mapping.output_schema(draft, value)
    flat = {"type": value["type"]} if schema is None else {"type": "json_schema", "name": "answer", **schema}
    draft.put("text", "format", flat)


_CONFIG: dict[str, str | mapping.Setter] = {
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


class _Turn:
    """One universal message on its way to input entries. Text and images gather until something else comes."""

    def __init__(self, draft: Draft, role: str) -> None:
        self.draft = draft
        self.role = role
        self.entries: list[dict[str, Any]] = []
        self.content: list[dict[str, Any]] = []
        self.phase: str | None = None

    def add(self, item: Item) -> None:
        kind = item.get("type", "")
        part = _PARTS.get(kind)
        if part is not None:
            part(self, item)
            return
        entry = _ENTRIES.get(kind)
        if entry is None:
            raise self.draft.invalid(item)
        self.flush()
        self.entries.append(entry(self, item))

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
        text_only = self.draft.rule("text_models")
        if text_only and text_only.fullmatch(self.draft.model.rsplit("/", 1)[-1].lower()):
            raise self.draft.unsupported(item, f"model {self.draft.model!r} reads no images")

    def thought(self, item: Item) -> dict[str, Any]:
        text, kept, replay = item["thinking"], fidelity(item), self.draft.rule("reasoning")
        content = [{"type": "reasoning_text", "text": text}] if text else []
        if replay == "bare":
            return {"type": "reasoning", "content": content}
        entry: dict[str, Any] = {"type": "reasoning", "summary": []}
        implicit = self.draft.rule("implicit_summary") and "channel" not in kept and "encrypted_content" in kept
        if replay == "fidelity" and (kept.get("channel") == "summary" or implicit):
            if text:
                entry["summary"] = [{"type": "summary_text", "text": text}]
        elif content:
            entry["content"] = content
        if replay == "fidelity":
            entry.update((key, kept[key]) for key in _REPLAYED if kept.get(key) is not None)
        return entry

    def call(self, item: Item) -> dict[str, Any]:
        arguments = json.dumps(item["arguments"], ensure_ascii=False)
        return {"type": "function_call", "call_id": item["tool_call_id"], "name": item["name"], "arguments": arguments}

    def result(self, item: Item) -> dict[str, Any]:
        call_id = self.draft.result_id(item)
        images = item.get("images")
        if images is not None:
            self.check_images(item)
        output: Any = item["text"]
        if images:
            output = [{"type": "input_text", "text": output}, *(self.image_part(item, url) for url in images)]
        return {"type": "function_call_output", "call_id": call_id, "output": output}


_PARTS: dict[str, Callable[[_Turn, Item], None]] = {"text.done": _Turn.text, "image_url.done": _Turn.image}
_ENTRIES: dict[str, Callable[[_Turn, Item], dict[str, Any]]] = {
    "thinking.done": _Turn.thought,
    "tool_call.done": _Turn.call,
    "tool_result.done": _Turn.result,
}

# Stream ---------------------------------------------------------------------------------------------


class ResponsesDecoder:
    """Events to raw values. Items are told apart by id, by output index where a server sends no ids."""

    def __init__(self, vendor: Vendor) -> None:
        rules = vendor.rules
        self._client = vendor.client
        self._phase = rules.get("phase")
        self._channels = rules.get("channels", ())
        self._reasoning = rules["reasoning"] == "fidelity"
        self._whole_calls = rules.get("whole_calls")
        self._events = _EVENTS_BY_SOURCE[rules["thinking_from"]]
        self._running: str | None = None
        self._begun: set[str] = set()
        # a call's identity by any of its item id, call id and output index; and the calls with arguments
        self._calls: dict[Any, str] = {}
        self._last_call: str | None = None
        self._filled: set[str] = set()

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        handler = self._events.get(event.get("type") or name)
        if handler is not None:
            return handler(self, event)
        if event.get("error"):
            raise stream_error(self._client, event)
        unknown_event(self._client, event)
        return ()

    def finish(self) -> Sequence[Raw]:
        return ()

    # items begin

    def _item_added(self, event: dict[str, Any]) -> Sequence[Raw]:
        item = event.get("item") or {}
        handler = _ADDED.get(item.get("type"))
        return handler(self, event, item) if handler is not None else ()

    def _message_added(self, event: dict[str, Any], item: dict[str, Any]) -> Sequence[Raw]:
        kept = {"phase": item["phase"]} if self._phase and item.get("phase") is not None else {}
        return (_delta("text", "", self._begin(event, item), kept),)

    def _reasoning_added(self, event: dict[str, Any], item: dict[str, Any]) -> Sequence[Raw]:
        return (_delta("thinking", "", self._begin(event, item)),)

    def _call_added(self, event: dict[str, Any], item: dict[str, Any]) -> Sequence[Raw]:
        return () if self._whole_calls else (self._open_call(event, item, item.get("arguments")),)

    def _begin(self, event: dict[str, Any], item: dict[str, Any]) -> str | None:
        identity = item.get("id") or _index(event)
        self._running = identity
        if identity:
            self._begun.add(identity)
        return identity

    # items grow

    def _text_delta(self, event: dict[str, Any]) -> Sequence[Raw]:
        identity = self._running = event.get("item_id") or _index(event)
        return (_delta("text", event.get("delta") or "", identity),)

    def _thinking_delta(self, event: dict[str, Any]) -> Sequence[Raw]:
        identity = self._running = event.get("item_id") or _index(event)
        return (_delta("thinking", event.get("delta") or "", identity),)

    def _arguments_delta(self, event: dict[str, Any]) -> Sequence[Raw]:
        call, piece = self._call_of(event), json_text(event.get("delta"))
        if call is None or not piece:
            return ()
        self._filled.add(call)
        return (_tool("", piece, "", call),)

    # items end

    def _arguments_done(self, event: dict[str, Any]) -> Sequence[Raw]:
        return self._fill(self._call_of(event), event.get("arguments"))

    def _item_done(self, event: dict[str, Any]) -> Sequence[Raw]:
        item = event.get("item") or {}
        handler = _DONE.get(item.get("type"))
        return handler(self, event, item) if handler is not None else ()

    def _call_done(self, event: dict[str, Any], item: dict[str, Any]) -> Sequence[Raw]:
        known = self._calls.get(item.get("id") or item.get("call_id"))
        if known is None:
            return (self._open_call(event, item, item.get("arguments")),)
        return self._fill(known, item.get("arguments"))

    def _reasoning_done(self, event: dict[str, Any], item: dict[str, Any]) -> Sequence[Raw]:
        if not self._reasoning:
            return ()
        identity = item.get("id") or _index(event)
        if identity in self._begun and self._running != identity:
            # too late: the next item has begun, and this one's thinking is done and delivered
            return ()
        channel = next((c for c in self._channels if item.get(c)), None)
        kept = {"channel": channel, **{key: item.get(key) for key in _REPLAYED}}
        return (_delta("thinking", "", identity, {key: value for key, value in kept.items() if value is not None}),)

    # calls

    def _open_call(self, event: dict[str, Any], item: dict[str, Any], arguments: Any) -> Raw:
        text = json_text(arguments)
        call_id = item.get("call_id") or item.get("id") or ""
        identity = item.get("id") or call_id
        names = (item.get("id"), item.get("call_id"), event.get("output_index"))
        self._calls.update((name, identity) for name in names if name not in (None, ""))
        self._running = self._last_call = identity
        if text:
            self._filled.add(identity)
        return _tool(item.get("name") or "", text, call_id, identity)

    def _call_of(self, event: dict[str, Any]) -> str | None:
        for key in ("item_id", "call_id", "output_index"):
            if (known := self._calls.get(event.get(key))) is not None:
                return known
        # a server without any of them sends one call after the other
        nameless = event.get("item_id") is None and event.get("output_index") is None
        return self._last_call if nameless else None

    def _fill(self, call: str | None, arguments: Any) -> Sequence[Raw]:
        """The whole arguments of a call, unless pieces of them were there before."""
        text = json_text(arguments)
        if call is None or call in self._filled or not text:
            return ()
        self._filled.add(call)
        return (_tool("", text, "", call),)

    # the response ends

    def _completed(self, event: dict[str, Any]) -> Sequence[Raw]:
        response = event.get("response") or {}
        out: list[Raw] = []
        if usage := response.get("usage"):
            out.append(_usage(usage))
        if status := response.get("status"):
            reason = FINISH.get(status, "unknown")
            out.append({"type": "finish", "finish_reason": "tool_call" if reason == "stop" and self._calls else reason})
        return out

    def _failed(self, event: dict[str, Any]) -> Sequence[Raw]:
        raise stream_error(self._client, event)

    def _nothing(self, event: dict[str, Any]) -> Sequence[Raw]:
        return ()


_Handler = Callable[[ResponsesDecoder, dict[str, Any]], Sequence[Raw]]
_ItemHandler = Callable[[ResponsesDecoder, dict[str, Any], dict[str, Any]], Sequence[Raw]]

_IGNORED = (
    "created in_progress queued output_text.done refusal.done reasoning_summary_part.added reasoning_summary_part.done"
    " reasoning_summary_text.done reasoning_text.done content_part.added content_part.done"
)
_EVENTS: dict[Any, _Handler] = {
    **{f"response.{name}": ResponsesDecoder._nothing for name in _IGNORED.split()},
    "keepalive": ResponsesDecoder._nothing,
    "response.output_item.added": ResponsesDecoder._item_added,
    "response.output_item.done": ResponsesDecoder._item_done,
    "response.output_text.delta": ResponsesDecoder._text_delta,
    "response.refusal.delta": ResponsesDecoder._text_delta,
    "response.function_call_arguments.delta": ResponsesDecoder._arguments_delta,
    "response.function_call_arguments.done": ResponsesDecoder._arguments_done,
    "response.completed": ResponsesDecoder._completed,
    "response.incomplete": ResponsesDecoder._completed,
    "response.failed": ResponsesDecoder._failed,
    "error": ResponsesDecoder._failed,
}
_SUMMARY: dict[Any, _Handler] = {"response.reasoning_summary_text.delta": ResponsesDecoder._thinking_delta}
_CONTENT: dict[Any, _Handler] = {"response.reasoning_text.delta": ResponsesDecoder._thinking_delta}
_EVENTS_BY_SOURCE: dict[tuple[str, ...], dict[Any, _Handler]] = {
    ("summary", "content"): {**_EVENTS, **_SUMMARY, **_CONTENT},
    ("content",): {**_EVENTS, **_CONTENT},
}
_ADDED: dict[Any, _ItemHandler] = {
    "message": ResponsesDecoder._message_added,
    "reasoning": ResponsesDecoder._reasoning_added,
    "function_call": ResponsesDecoder._call_added,
}
_DONE: dict[Any, _ItemHandler] = {
    "reasoning": ResponsesDecoder._reasoning_done,
    "function_call": ResponsesDecoder._call_done,
}


def _index(event: dict[str, Any]) -> str | None:
    index = event.get("output_index")
    return None if index is None else str(index)


def _delta(kind: str, text: str, identity: str | None, kept: dict[str, Any] | None = None) -> Raw:
    return {"type": f"{kind}.delta", kind: text, "fidelity": {**(kept or {}), "item_id": identity}}


def _tool(name: str, arguments: str, call_id: str, identity: str) -> Raw:
    return {
        "type": "tool_call.delta",
        "name": name,
        "arguments": arguments,
        "tool_call_id": call_id,
        "fidelity": {"item_id": identity},
    }


def _usage(usage: dict[str, Any]) -> Raw:
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens")
    thoughts = (usage.get("output_tokens_details") or {}).get("reasoning_tokens")
    return {
        "type": "usage",
        "cached_tokens": cached,
        "prompt_tokens": subtract(usage.get("input_tokens"), cached),
        "thoughts_tokens": thoughts,
        "response_tokens": subtract(usage.get("output_tokens"), thoughts),
    }
