"""Gemini generateContent. The model and the wish to stream are in the path, not in the body."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from .base import budget, effort, mapping, need, records, tool
from .neutral import (
    Ask,
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
from .pieces import dumps, frame

NAME = "generate"


def pick(value: Any, *names: str) -> Any:
    """The first of these fields that is there: the API takes camel case and snake case alike."""
    value = mapping(value)
    return next((value[name] for name in names if value.get(name) is not None), None)


def _part(part: Mapping[str, Any]) -> Part | None:
    call = pick(part, "functionCall", "function_call")
    answer = pick(part, "functionResponse", "function_response")
    blob = pick(part, "inlineData", "inline_data", "fileData", "file_data")
    if call is not None:
        name = str(mapping(call).get("name") or "")
        return Call(name, arguments_of(mapping(call).get("args")), str(mapping(call).get("id") or name))
    if answer is not None:
        answer = mapping(answer)
        name = str(answer.get("name") or "")
        response = mapping(answer.get("response"))
        plain = next((response[key] for key in ("result", "output", "error") if key in response), response)
        shown = plain if isinstance(plain, str) else dumps(plain)
        return Result(str(answer.get("id") or name), shown, name, images=len(records(answer.get("parts"))))
    if blob is not None:
        uri = pick(blob, "fileUri", "file_uri")
        mime = pick(blob, "mimeType", "mime_type")
        data = str(mapping(blob).get("data")).replace("-", "+").replace("_", "/")  # either alphabet comes here
        return Image(str(uri) if uri else f"data:{mime};base64,{data}")
    text = part.get("text")
    if isinstance(text, str):
        return Thinking(text) if part.get("thought") else Text(text)
    return None


def parts_of(value: Any) -> list[Part]:
    """The parts of one content."""
    found = [_part(part) for part in records(mapping(value).get("parts"))]
    return [part for part in found if part is not None]


def _turns(contents: list[Mapping[str, Any]]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for entry in contents:
        parts = parts_of(entry)
        if entry.get("role") != "model":
            add_user(turns, parts)
        elif turns and turns[-1].role == "assistant":
            turns[-1] = Turn("assistant", (*turns[-1].parts, *parts))
        else:
            turns.append(Turn("assistant", tuple(parts)))
    return name_results(turns)


def _lower(schema: Any) -> Any:
    """A schema with its type names in lower case, as JSON Schema spells them."""
    if isinstance(schema, list):
        return [_lower(entry) for entry in schema]
    if not isinstance(schema, Mapping):
        return schema
    names = {"any_of": "anyOf", "additional_properties": "additionalProperties"}
    return {
        names.get(key, key): value.lower() if key == "type" and isinstance(value, str) else _lower(value)
        for key, value in schema.items()
    }


def _choice(value: Any) -> str | tuple[str, ...]:
    config = pick(value, "functionCallingConfig", "function_calling_config")
    names = pick(config, "allowedFunctionNames", "allowed_function_names") or []
    mode = str(pick(config, "mode") or "AUTO").upper()
    return tuple(map(str, names)) or {"ANY": "required", "NONE": "none"}.get(mode, "auto")


def read(body: Mapping[str, Any], model: str = "", stream: bool | None = None) -> Ask:
    contents = need(body, "contents", list, "* GenerateContentRequest.contents: contents is not specified")
    config = pick(body, "generationConfig", "generation_config")
    thinking = pick(config, "thinkingConfig", "thinking_config")
    thoughts = pick(thinking, "includeThoughts", "include_thoughts") is True
    declared = [
        entry
        for group in records(body.get("tools"))
        for entry in records(pick(group, "functionDeclarations", "function_declarations"))
    ]
    mime = pick(config, "responseMimeType", "response_mime_type")
    schema = pick(config, "responseJsonSchema", "response_json_schema", "responseSchema", "response_schema")
    system = parts_of(pick(body, "systemInstruction", "system_instruction"))
    return Ask(
        model=model,
        turns=_turns(records(contents)),
        system="\n".join(part.text for part in system if isinstance(part, Text)),
        tools=tuple(tool(_lower(entry)) for entry in declared),
        tool_choice=_choice(pick(body, "toolConfig", "tool_config")),
        think=effort(pick(thinking, "thinkingLevel", "thinking_level")) or thoughts,
        show_thoughts=thoughts,
        max_tokens=budget(pick(config, "maxOutputTokens", "max_output_tokens")),
        schema=mapping(_lower(schema)) if schema or mime == "application/json" else None,
        stream=bool(stream),
        digest=digest({**body, "model": model}),
    )


def _usage(usage: Usage) -> dict[str, Any]:
    fields = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.input + usage.output + usage.thoughts,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input}],
    }
    if usage.cached:
        fields["cachedContentTokenCount"] = usage.cached
    if usage.thoughts:
        fields["thoughtsTokenCount"] = usage.thoughts
    return fields


def _signature(ask: Ask) -> str:
    return base64.b64encode(ask.ident("thought-", 0, 48).encode()).decode()


class GenerateEncoder:
    """Whole chunks with parts. A call cannot be streamed in pieces here, so it is held back until complete."""

    def __init__(self, ask: Ask, usage: Usage | None = None) -> None:
        self.ask, self.usage = ask, usage
        self.call: Call | None = None
        self.arguments = ""
        self.signed = self.spoke = False

    def _chunk(self, parts: list[dict[str, Any]], finish: str | None = None, usage: Usage | None = None) -> bytes:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        chunk: dict[str, Any] = {"candidates": [candidate]}
        if usage:
            chunk["usageMetadata"] = _usage(usage)
        return frame({**chunk, "modelVersion": self.ask.model, "responseId": self.ask.ident("", length=22)}, end="\r\n")

    def _flush(self) -> Iterable[bytes]:
        if self.call:
            part = call_part(Call(self.call.name, arguments_of(self.arguments or "{}"), self.call.id))
            if not self.signed:
                part["thoughtSignature"] = _signature(self.ask)
            self.call, self.arguments, self.signed = None, "", True
            yield self._chunk([part])

    def start(self) -> Iterable[bytes]:
        return ()

    def push(self, delta: Delta) -> Iterable[bytes]:
        if delta.kind == "arguments":
            self.arguments += delta.text
            return
        yield from self._flush()
        self.spoke = True
        if delta.call:
            self.call = delta.call
        elif delta.kind == "text":
            yield self._chunk([{"text": delta.text}])
        elif self.ask.show_thoughts:
            yield self._chunk([{"text": delta.text, "thought": True}])

    def finish(self, finish: Finish, usage: Usage | None) -> Iterable[bytes]:
        yield from self._flush()
        last = {"text": "", "thoughtSignature": _signature(self.ask)}
        yield self._chunk(
            [last] if self.spoke and not self.signed else [{"text": ""}],
            "MAX_TOKENS" if finish == "length" else "STOP",
            usage,
        )

    def fail(self, status: int, message: str) -> Iterable[bytes]:
        yield frame(error(status, message), end="\r\n")


def call_part(call: Call) -> dict[str, Any]:
    """A call as a part; its id is sent unless it only repeats the name."""
    function: dict[str, Any] = {"name": call.name, "args": dict(call.arguments)}
    if call.id and call.id != call.name:
        function["id"] = call.id
    return {"functionCall": function}


def encoder(ask: Ask, usage: Usage | None = None) -> GenerateEncoder:
    return GenerateEncoder(ask, usage)


def document(ask: Ask, says: list[Say], finish: Finish, usage: Usage) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for say in says:
        match say:
            case Text(text=text):
                parts.append({"text": text})
            case Thinking(text=text) if ask.show_thoughts:
                parts.append({"text": text, "thought": True})
            case Call():
                parts.append(call_part(say))
    signed = next((part for part in parts if "functionCall" in part), parts[-1] if parts else None)
    if signed is not None and not signed.get("thought"):
        signed["thoughtSignature"] = _signature(ask)
    reason = "MAX_TOKENS" if finish == "length" else "STOP"
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0}
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(usage),
        "modelVersion": ask.model,
        "responseId": ask.ident("", length=22),
    }


_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def status_name(status: int) -> str:
    """The name Google gives to an HTTP status."""
    return _STATUS.get(status) or ("UNAVAILABLE" if status >= 500 else "INVALID_ARGUMENT")


def error(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": status_name(status)}}
