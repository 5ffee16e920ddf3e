"""Checks of the options of a call, before anything is sent.

Every key has a rule. A rule looks at a value and says in one line what is wrong with it, or returns
nothing. What a vendor or a model makes of a legal value is the dialect's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from operator import index
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

from pydantic_core import ValidationError

from mmsp_nb.protocol.errors import UnsupportedParameterError
from mmsp_nb.protocol.items import AspectRatio, ImageSize, PromptCaching, ThinkingLevel, UniConfig
from mmsp_nb.protocol.suggestions import did_you_mean, shown

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["check_config", "check_trace_id", "with_note"]

Rule = Callable[[str, Any], str]
"""``rule(place, value)``: what is wrong with ``value``, which stands at ``place``; empty if nothing is."""

_SEGMENT = re.compile(r"[\w. -]+")
_DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³]) *(\.|$)", re.IGNORECASE)
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def with_note(system: Any, note: str) -> Any:
    """A system prompt with ``note`` below it. What is no text stays as it is, for `check_config` to refuse."""
    return (f"{system}\n\n{note}" if isinstance(system, str) else system) if system else note


def check_config(config: Mapping[str, Any] | None, *, client: str = "") -> UniConfig:
    """A config that is fit to be mapped: a new dict without None values, enum members as strings.

    ``config`` is not modified; the result may share values with it.

    Raises:
        UnsupportedParameterError: ``parameter`` is the key that is unknown, or whose value has the
            wrong type or lies outside of what the protocol allows.
    """
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise UnsupportedParameterError(f"the config must be a dict, not {shown(config)}", client=client)
    checked: dict[str, Any] = {}
    for key, given in config.items():
        rule = _RULES.get(key)
        if rule is None:
            hint = _ELSEWHERE.get(key, "") or did_you_mean(key, _RULES)
            raise UnsupportedParameterError(f"the config has no key {key!r}{hint}", client=client, parameter=key)
        if given is not None:
            value = checked[key] = given if key in _VERBATIM else _plain(given)
            if fault := rule(f"config[{key!r}]", value):
                raise UnsupportedParameterError(fault, client=client, parameter=key)
    if fault := _unknown_tool(checked):
        raise UnsupportedParameterError(fault, client=client, parameter="tool_choice")
    return cast("UniConfig", checked)


def check_trace_id(trace_id: str, *, client: str = "") -> None:
    """Refuse a trace id that could not safely name a file.

    It consists of segments joined by ``/``, each of letters, digits, ``.``, ``_``, ``-`` and spaces, of
    at most 200 bytes, and none of them ``.``, ``..`` or the name of a Windows device.

    Raises:
        UnsupportedParameterError: ``parameter`` is ``"trace_id"``.
    """
    if fault := _trace_id("trace_id", trace_id):
        raise UnsupportedParameterError(fault, client=client, parameter="trace_id")


def _plain(value: Any) -> Any:
    """``value`` in plain types: no enum members, tuples, NumPy numbers, and no None in the dicts of the protocol."""
    if isinstance(value, Enum):
        return _plain(value.value)
    for kind in (bool, str, int, float):
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: inner for key, inner in value.items() if inner is not None}
    return index(value) if hasattr(type(value), "__index__") else value


# Rules ------------------------------------------------------------------------------------------------


def _typed(kind: Any, words: str, **limits: Any) -> Rule:
    """A value of ``kind`` within pydantic's ``limits``, taken strictly: True is no number and "1" is none either."""

    @cache
    def adapter() -> TypeAdapter[Any]:
        # pydantic's larger half takes longer to import than the whole client: it waits for the first value
        from pydantic import Field, TypeAdapter

        return TypeAdapter(Annotated[kind, Field(**limits)])

    def rule(place: str, value: Any) -> str:
        try:
            adapter().validate_python(value, strict=True)
        except ValidationError:
            return f"{place} must be {words}, not {shown(value)}"
        return ""

    return rule


def _one_of(*allowed: str) -> Rule:
    def rule(place: str, value: Any) -> str:
        if value in allowed:
            return ""
        return f"{place} must be one of {', '.join(allowed)}, not {shown(value)}{did_you_mean(value, allowed)}"

    return rule


def _record(words: str, required: Mapping[str, Rule], optional: Mapping[str, Rule], *, others: bool = False) -> Rule:
    """A dict with these keys; others are refused unless ``others``."""
    rules = {**required, **optional}

    def rule(place: str, value: Any) -> str:
        if not isinstance(value, dict):
            return f"{place} must be {words}, not {shown(value)}"
        for key, inner in value.items():
            if key in rules:
                if fault := rules[key](f"{place}[{key!r}]", inner):
                    return fault
            elif not others:
                return f"{place} has no key {key!r}{did_you_mean(key, rules)}"
        for key in required:
            if key not in value:
                return f"{place} lacks {key!r}; it must be {words}"
        return ""

    return rule


def _list_of(rule: Rule, words: str) -> Rule:
    def check(place: str, value: Any) -> str:
        if not isinstance(value, list):
            return f"{place} must be {words}, not {shown(value)}"
        return next((fault for i, entry in enumerate(value) if (fault := rule(f"{place}[{i}]", entry))), "")

    return check


_text = _typed(str, "a string")
_name = _typed(str, "a non-empty string", min_length=1)
_switch = _typed(bool, "True or False")
_whole = _typed(int, "a whole number")
_positive = _typed(int, "a whole number above 0", gt=0)


def _parameters(place: str, value: Any) -> str:
    example = "{'type': 'object', 'properties': {...}}"
    if not isinstance(value, dict):
        return f"{place} must be a JSON Schema such as {example}, not {shown(value)}"
    if value.get("type", "object") != "object":
        return f"{place} must describe an object, such as {example}, not {shown(value['type'])}"
    if not isinstance(value.get("properties", {}), dict):
        return f"{place}['properties'] must be a dict, not {shown(value['properties'])}"
    return ""


_tool_list = _list_of(
    _record(
        "a dict with 'name', 'description' and 'parameters'",
        {"name": _name},
        {"description": _text, "parameters": _parameters},
        others=True,
    ),
    "a list of tool schemas",
)


def _tools(place: str, value: Any) -> str:
    if fault := _tool_list(place, value):
        return fault
    names: set[str] = set()
    for tool in value:
        if tool["name"] in names:
            return f"{place} holds two tools named {tool['name']!r}; each needs a name of its own"
        names.add(tool["name"])
    return ""


def _tool_choice(place: str, value: Any) -> str:
    choices = ("auto", "required", "none")
    if isinstance(value, list) and value:
        return _list_of(_name, "")(place, value)
    if isinstance(value, str) and value in choices:
        return ""
    near = did_you_mean(value, choices) if isinstance(value, str) else ""
    return f"{place} must be one of {', '.join(choices)} or a list of tool names, not {shown(value)}{near}"


def _unknown_tool(config: dict[str, Any]) -> str:
    """What is wrong with a ``tool_choice`` that names tools, given the tools."""
    choice = config.get("tool_choice")
    if not isinstance(choice, list):
        return ""
    names = [tool["name"] for tool in config.get("tools", ())]
    for name in choice:
        if name not in names:
            there = f"the tools are {', '.join(names)}" if names else "the config has no tools"
            return f"config['tool_choice'] names {name!r}, but {there}{did_you_mean(name, names)}"
    return ""


_voice_list = _list_of(_record("a dict with 'voice'", {"voice": _name}, {"speaker": _name}), "a list of voices")


def _voices(place: str, value: Any) -> str:
    if fault := _voice_list(place, value):
        return fault
    if len(value) > 2:
        return f"{place} must hold one or two voices, not {len(value)}"
    if len(value) == 2 and not all("speaker" in voice for voice in value):
        return f"{place} with two voices needs a 'speaker' in each"
    return ""


def _stop(place: str, value: Any) -> str:
    return _list_of(_name, "")(place, value) if isinstance(value, list) else _name(place, value)


def _trace_id(place: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        return _text(place, value)  # an empty id means "no trace"
    for segment in value.split("/"):
        if not segment:
            why = "it has an empty segment"
        elif segment in (".", ".."):
            why = f"the segment {segment!r} would leave the trace directory"
        elif not _SEGMENT.fullmatch(segment):
            bad = next(char for char in segment if not _SEGMENT.fullmatch(char))
            why = f"it holds {bad!r}; letters, digits, spaces and '._-' may stand between slashes"
        elif len(segment.encode()) > 200:
            why = "a segment of it is longer than 200 bytes"
        elif _DEVICE.match(segment):
            why = f"{segment!r} is the name of a Windows device"
        else:
            continue
        return f"{place} {shown(value)} cannot name a file: {why}"
    return ""


def _response_format(place: str, value: Any) -> str:
    if fault := _record(
        "a dict with a 'type'", {"type": _one_of("text", "json_object", "json_schema")}, {}, others=True
    )(place, value):
        return fault
    if value["type"] == "json_schema" and not isinstance((value.get("json_schema") or value).get("schema"), dict):
        return f"{place} of type 'json_schema' lacks a 'schema', which must be a dict"
    return ""


def _extra_body(place: str, value: Any) -> str:
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return ""
    return f"{place} must be a dict with string keys"  # never the value: it may hold a secret


def _extra_headers(place: str, value: Any) -> str:
    if not isinstance(value, dict):
        return f"{place} must be a dict of strings"
    for name, content in value.items():
        if not isinstance(name, str) or not _HEADER.fullmatch(name):
            return f"{place} has a key that is no header name"
        if not isinstance(content, str) or any(char in content for char in "\r\n\0"):
            return f"{place}[{name!r}] must be a string on one line"
    return ""


_RULES: dict[str, Rule] = {
    "max_tokens": _positive,
    "temperature": _typed(float, "a finite number", allow_inf_nan=False),
    "tools": _tools,
    "tool_choice": _tool_choice,
    "thinking_level": _one_of(*map(str, ThinkingLevel)),
    "thinking_summary": _switch,
    "system_prompt": _text,
    "prompt_caching": _one_of(*map(str, PromptCaching)),
    "fast_mode": _switch,
    "image_config": _record(
        "a dict with 'aspect_ratio' or 'image_size'",
        {},
        {"aspect_ratio": _one_of(*get_args(AspectRatio)), "image_size": _one_of(*get_args(ImageSize))},
    ),
    "tts_config": _voices,
    "embedding_config": _record("a dict with 'dimensions'", {}, {"dimensions": _positive}),
    "trace_id": _trace_id,
    "top_p": _typed(float, "a number from 0 to 1", ge=0, le=1),
    "stop": _stop,
    "seed": _whole,
    "parallel_tool_calls": _switch,
    "response_format": _response_format,
    "extra_body": _extra_body,
    "extra_headers": _extra_headers,
}
_VERBATIM = ("response_format", "extra_body")  # the vendor's own vocabulary, in which null may mean something
_ELSEWHERE = {
    "model": "; the model is chosen where the client is made",
    "api_key": "; the key is given where the client is made",
    "base_url": "; the endpoint is given where the client is made",
    "messages": "; the messages are an argument of their own",
    "stream": "; every answer is streamed",
    "system": "; did you mean 'system_prompt'?",
    "instructions": "; did you mean 'system_prompt'?",
    "max_completion_tokens": "; did you mean 'max_tokens'?",
    "max_output_tokens": "; did you mean 'max_tokens'?",
    "reasoning_effort": "; did you mean 'thinking_level'?",
    "stop_sequences": "; did you mean 'stop'?",
}
