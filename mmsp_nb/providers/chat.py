"""Dialect C: OpenAI Chat Completions, spoken by vLLM, Z.AI, Moonshot and most gateways and local servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mmsp_nb.protocol.items import Item, UniConfig, UniMessage
from mmsp_nb.providers import mapping
from mmsp_nb.providers.base import Raw, Request
from mmsp_nb.providers.body import Past, entries
from mmsp_nb.providers.errors import stream_error
from mmsp_nb.providers.images import needs_high_detail
from mmsp_nb.providers.mapping import Draft, fidelity, json_text, models_request, parse_models
from mmsp_nb.providers.stream import call_delta, counted, detail, finished, text_delta, usage, without
from mmsp_nb.providers.vendors import Vendor

__all__ = ["build", "decoder", "models_request", "parse_models"]

FINISH = {"stop": "stop", "length": "length", "tool_calls": "tool_call", "content_filter": "stop"}

_REASONING_FIELDS = ("reasoning_content", "reasoning")
_ENCRYPTED = {"encrypted_content": "data", "format": "format", "reasoning_id": "id"}


def build(
    vendor: Vendor, model: str, messages: Sequence[UniMessage], config: UniConfig, past: Past | None = None
) -> list[Request]:
    draft = Draft(vendor, model, config, {"model": model, "stream": True})
    draft.apply(_CONFIG)
    system = draft.config.get("system_prompt")
    head = [{"role": "system", "content": system}] if system else []
    seen: set[str | None] = set()  # reasoning fields
    draft.body["messages"] = entries(past, messages, partial(_entries, draft), seen, head)
    return [draft.request("/chat/completions")]


# Config ---------------------------------------------------------------------------------------------


def _tools(draft: Draft, value: list[dict[str, Any]]) -> None:
    draft.body["tools"] = [{"type": "function", "function": dict(tool)} for tool in value]


def _tool_choice(draft: Draft, value: str | list[str]) -> None:
    mapping.check_tool_choice(draft, value)
    choice: Any = value
    if not isinstance(value, str):
        # a list forces one of the named tools, as it does with every other vendor
        named = [{"type": "function", "function": {"name": name}} for name in value]
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": named}}
    draft.body["tool_choice"] = choice


def _response_format(draft: Draft, value: Mapping[str, Any]) -> None:
    schema = mapping.output_schema(draft, value)
    whole = {"type": "json_schema", "json_schema": {"name": "answer", **(schema or {})}}
    draft.body["response_format"] = dict(value) if schema is None else whole


def _trace_id(draft: Draft, value: str) -> None:
    if (field := draft.rule("trace_id")) and value:
        draft.body[field] = value


_CONFIG: mapping.ConfigTable = {
    "max_tokens": lambda draft, value: draft.put(draft.rule("max_tokens"), value),
    "temperature": mapping.set_temperature,
    "thinking_level": mapping.set_thinking,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "fast_mode": mapping.set_fast_mode,
    "prompt_caching": mapping.set_caching,
    "trace_id": _trace_id,
    "top_p": "top_p",
    "stop": "stop",
    "seed": "seed",
    "parallel_tool_calls": "parallel_tool_calls",
    "response_format": _response_format,
}

# Messages -------------------------------------------------------------------------------------------


def _entries(draft: Draft, index: int, message: UniMessage, seen: set[str | None]) -> list[dict[str, Any]]:
    turn = _Turn(draft, message["role"])
    for item in message["content_items"]:
        draft.maker(_ITEMS, item)(turn, item)
    return turn.finished(index, seen)


class _Turn:
    """One universal message on its way to tool messages and at most one message with its role."""

    def __init__(self, draft: Draft, role: str) -> None:
        self.draft = draft
        self.role = role
        self.results: list[dict[str, Any]] = []
        self.parts: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.details: list[Any] = []
        self.thinking: list[tuple[str, str | None]] = []

    def text(self, item: Item) -> None:
        self.parts.append({"type": "text", "text": item["text"]})

    def image(self, item: Item) -> None:
        self.image_part(item, item["image_url"])

    def image_part(self, item: Item, url: str) -> None:
        if not self.draft.vendor.reads_images(self.draft.model):
            raise self.draft.unsupported(item, f"model {self.draft.model!r} reads no images")
        image: dict[str, Any] = {"url": url}
        if self.draft.rule("image_detail") and needs_high_detail(self.draft.model, url):
            image["detail"] = "high"
        self.parts.append({"type": "image_url", "image_url": image})

    def call(self, item: Item) -> None:
        function = {"name": item["name"], "arguments": json_text(item["arguments"])}
        self.calls.append({"id": item["tool_call_id"], "type": "function", "function": function})

    def result(self, item: Item) -> None:
        call_id = self.draft.result_id(item)
        self.results.append({"role": "tool", "tool_call_id": call_id, "content": item["text"]})
        for url in item.get("images") or ():
            self.image_part(item, url)

    def thought(self, item: Item) -> None:
        kept = fidelity(item)
        self.thinking.append((item["thinking"], kept.get("reasoning_field")))
        if self.draft.rule("reasoning_details"):
            block = {field: kept[key] for key, field in _ENCRYPTED.items() if kept.get(key) is not None}
            if "data" in block and "format" in block:
                self.details.append({"type": "reasoning.encrypted", **block})
            self.details += kept.get("reasoning_details") or ()

    def finished(self, index: int, seen: set[str | None]) -> list[dict[str, Any]]:
        """The wire messages. ``seen`` gathers the reasoning fields of the whole conversation."""
        if not (self.parts or self.calls or self.results):
            raise self.draft.nothing_to_send(index)
        text = ""
        fields: set[str | None] = set()
        if self.thinking:
            text = "".join(thinking for thinking, _ in self.thinking)
            seen.update(field for thinking, field in self.thinking if thinking)
            fields = {field for _, field in self.thinking} if text else set()
        if not text and self.calls and self.draft.rule("empty_reasoning"):
            # servers that want the field back want it on every turn with calls
            fields = seen
        message: dict[str, Any] = {"role": self.role}
        if self.parts:
            message["content"] = self.parts
        if self.calls:
            message["tool_calls"] = self.calls
        if self.details:
            message["reasoning_details"] = self.details
        if fields:
            # a single known origin goes back where it came from, anything else into both fields
            names: Any = fields if len(fields) == 1 and None not in fields else _REASONING_FIELDS
            message.update(dict.fromkeys(names, text))
        return [*self.results, message] if len(message) > 1 else self.results


_ITEMS: dict[str, Callable[[_Turn, Item], None]] = {
    "text.done": _Turn.text,
    "image_url.done": _Turn.image,
    "thinking.done": _Turn.thought,
    "tool_call.done": _Turn.call,
    "tool_result.done": _Turn.result,
}

# Stream ---------------------------------------------------------------------------------------------


class ChatDecoder:
    """Chunks to raw values. Tool call pieces are joined by id first and by index second."""

    over = False  # usage may follow the finish reason, and then anything but ``[DONE]``

    def __init__(self, vendor: Vendor, model: str = "", requests: Sequence[Request] = ()) -> None:
        self._client = vendor.client
        self._read_details = vendor.rules.get("reasoning_details")
        self._generate_ids = vendor.rules.get("generate_ids")
        self._requests = requests
        self._taken: set[str] | None = None  # ids of the calls that were sent, when one has to be made up
        self._encrypted: dict[str, Any] | None = None
        self._encrypted_items = 0
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[Any, _Call] = {}

    def decode(self, event: Any, name: str | None = None) -> Sequence[Raw]:
        if event.get("error") or name == "error":
            raise stream_error(self._client, event)
        out: list[Raw] = []
        choices = event.get("choices")
        counts = event.get("usage")
        if choices:
            choice = choices[0]
            delta = choice.get("delta")
            if delta:
                self._delta(delta, out)
            reason = choice.get("finish_reason")
            if reason:
                out.append(finished(FINISH, reason))
                counts = counts or choice.get("usage")
        if counts:
            out.append(_usage(counts))
        return out

    def finish(self) -> Sequence[Raw]:
        # a call that never got its name: the assembler says what is wrong with it
        return [call.opening() for call in self._calls if not call.name and (call.id or call.arguments)]

    def _delta(self, delta: dict[str, Any], out: list[Raw]) -> None:
        if self._read_details and (blocks := delta.get("reasoning_details")):
            for block in blocks:
                self._reasoning_block(block, out)
        else:
            content, plain = delta.get("reasoning_content"), delta.get("reasoning")
            if content:
                known = None if plain else {"reasoning_field": "reasoning_content"}
                out.append(text_delta("thinking", content, "reasoning_content", known))
            elif plain:
                out.append(text_delta("thinking", plain, "reasoning", {"reasoning_field": "reasoning"}))
        text = delta.get("content")
        if text:
            out.append(text_delta("text", text if text.__class__ is str else _joined(text), "content"))
        if refusal := delta.get("refusal"):
            out.append(text_delta("text", refusal, "refusal"))
        if calls := delta.get("tool_calls"):
            for entry in calls:
                self._call(entry, out)

    def _reasoning_block(self, block: dict[str, Any], out: list[Raw]) -> None:
        kept = {}
        if block.get("type") == "reasoning.encrypted":
            kept = {key: block[field] for key, field in _ENCRYPTED.items() if block.get(field) is not None}
            if self._encrypted not in (None, kept):
                # an item holds one encrypted block: the next one begins an item of its own
                self._encrypted_items += 1
            self._encrypted = kept
        item_id = f"reasoning_details.{self._encrypted_items}"
        out.append(text_delta("thinking", block.get("summary") or block.get("text") or "", item_id, kept))

    def _call(self, entry: dict[str, Any], out: list[Raw]) -> None:
        function = entry.get("function") or {}
        name, arguments = function.get("name") or "", json_text(function.get("arguments"))
        call_id, index = entry.get("id"), entry.get("index")
        call = self._find(call_id, index, name, arguments)
        if call is None:
            generated = "" if call_id or not self._generate_ids else self._new_id()
            call = _Call(f"tool_calls.{len(self._calls)}", generated)
            self._calls.append(call)
        if call_id:
            call.id = call.id or call_id
            self._by_id[call_id] = call
        self._by_index[index] = call
        if arguments:
            call.arguments.append(arguments)
        if not call.name and name:
            call.name = name
            out.append(call.opening())
        elif call.name and arguments:
            out.append(call_delta("", arguments, call_id, call.key))

    def _new_id(self) -> str:
        """An id for a call that came without one, which no other call of the conversation has."""
        if self._taken is None:
            messages = [message for request in self._requests for message in (request.body or {}).get("messages", ())]
            self._taken = {call["id"] for message in messages for call in message.get("tool_calls") or ()}
        number = len(self._calls)
        while (new := f"call_{number}") in self._taken:
            number += 1
        self._taken.add(new)
        return new

    def _find(self, call_id: str | None, index: Any, name: str, arguments: str) -> _Call | None:
        """The call that a piece continues, or None when it begins one."""
        if call_id and (known := self._by_id.get(call_id)):
            return known
        current = self._by_index.get(index) or (self._calls[-1] if self._calls and index is None else None)
        if current is None or not name:
            return current
        if not current.name:
            return None if call_id and current.id else current
        if call_id:
            # a name under a new id is a new call, although the index was used before
            return None
        repeated = name == current.name and not (arguments and _is_object("".join(current.arguments)))
        return current if repeated else None


class _Call:
    """One tool call: its identity in this response, and what is known of it so far."""

    def __init__(self, key: str, generated_id: str) -> None:
        self.key, self.generated_id = key, generated_id
        self.id = self.name = ""
        self.arguments: list[str] = []

    def opening(self) -> Raw:
        return call_delta(self.name, "".join(self.arguments), self.id or self.generated_id, self.key)


def _joined(parts: Any) -> str:
    """Content that comes as a list of parts, or as something else that is no text."""
    if isinstance(parts, list):
        return "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in parts if part)
    return str(parts)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _usage(counts: dict[str, Any]) -> Raw:
    cached = detail(counts, "prompt_tokens_details", "cached_tokens")
    thoughts = detail(counts, "completion_tokens_details", "reasoning_tokens")
    prompt, completion = counted(counts, "prompt_tokens"), counted(counts, "completion_tokens")
    return usage(cached, without(prompt, cached), thoughts, without(completion, thoughts))


decoder = ChatDecoder
