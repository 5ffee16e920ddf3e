"""Checks of the messages that users pass in, before anything is sent. `check_config` is in `configs`.

The shapes are those of `items`, checked by pydantic; what it finds is turned into one line that names
the place and says what would be right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic_core import ValidationError
from typing_extensions import TypedDict

from mmsp_nb.protocol import items as shapes
from mmsp_nb.protocol.configs import check_config, check_trace_id
from mmsp_nb.protocol.dataurls import media_type_fault, picture_url_fault
from mmsp_nb.protocol.errors import InvalidMessageError
from mmsp_nb.protocol.suggestions import did_you_mean, nearest, shown

__all__ = ["DoneItem", "check_config", "check_messages", "check_trace_id", "item_kind"]

DoneItem = (
    shapes.TextDone
    | shapes.ThinkingDone
    | shapes.InlineDataDone
    | shapes.InlineThinkingDone
    | shapes.ToolCallDone
    | shapes.ToolResultDone
    | shapes.ImageURLDone
    | shapes.EmbeddingDone
)

_KINDS = ("text", "thinking", "inline_data", "inline_thinking", "tool_call", "tool_result", "image_url", "embedding")
_DONE = {f"{kind}.done": kind for kind in _KINDS}

_PLAIN = frozenset({"text.done", "thinking.done", "embedding.done"})
"""Items that are right when their fields have the right types."""
_EXAMPLE = '{"role": "user", "content_items": [{"type": "text.done", "text": "..."}]}'

_WORDS = {
    "data": "bytes (decode base64 text first)",
    "arguments": "a dict (parse JSON text with json.loads first)",
    "embedding": "a list of numbers",
    "fidelity": "a dict or None",
    "images": "a list of image URLs",
    "image_url": "an http(s) or data: URL",
    "name": "a non-empty string",
    "tool_call_id": "a non-empty string",
}
_ROLE_HINTS = {
    "system": "; put it into the config as 'system_prompt'",
    "developer": "; put it into the config as 'system_prompt'",
    "tool": "; tool results go into a user message, as tool_result.done items",
    "model": "; did you mean 'assistant'?",
}


def check_messages(messages: Sequence[Mapping[str, Any]], *, client: str = "", first: int = 0) -> None:
    """Check messages that are to be sent: roles, and the fields of every item. Extra keys pass.

    Args:
        messages: those not checked before. Legacy item names must be normalised already.
        client: the adapter's class name, for the error.
        first: the index of ``messages[0]`` in the list that is to be sent.

    Raises:
        InvalidMessageError: with ``message_index`` for a message that is none or holds nothing, else
            with ``item_type``: the kind (``"tool_result"``), or the type as given when it is unknown.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise InvalidMessageError(f"messages must be a list of messages, not {shown(messages)}", client=client)
    for index, message in enumerate(messages, first):
        if fault := _hollow(message):
            raise InvalidMessageError(f"message {index}{fault}", client=client, message_index=index)
    validate = _validate()
    for index, message in enumerate(messages, first):
        try:
            validate(message, strict=True)
        except ValidationError as error:
            raise _translated(error, message, index, client) from None
        for number, item in enumerate(message["content_items"]):
            if item["type"] not in _PLAIN and (fault := _fault(item, message["role"])):
                raise _item_error(item, f"message {index}, item {number}", fault, client)


def item_kind(item: Any) -> str | None:
    """How errors name an item: its kind, or its type as given if that is unknown; None without a type."""
    kind = item.get("type") if isinstance(item, Mapping) else None
    return None if kind is None else _DONE.get(str(kind), str(kind))


@cache
def _validate() -> Callable[..., Any]:
    # pydantic's larger half takes longer to import than the whole client: it waits for the first message
    from pydantic import Field, TypeAdapter

    item = Annotated[DoneItem, Field(discriminator="type")]
    # not as a class: its annotations would be text, in which a local name means nothing
    message = TypedDict("message", {"role": Literal["user", "assistant"], "content_items": list[item]})  # noqa: UP013
    return TypeAdapter(message).validator.validate_python  # without the adapter's own layer, once a message


def _hollow(message: Any) -> str:
    """What makes ``message`` no message at all, or an empty one; nothing if it is one."""
    if not isinstance(message, dict):
        return f" must be a dict like {_EXAMPLE}, not {shown(message)}"
    if "content_items" not in message:
        return f" has no 'content_items'; write {_EXAMPLE}"
    items = message["content_items"]
    if not isinstance(items, list):
        return f": 'content_items' must be a list of items, not {shown(items)}"
    return "" if items else " is empty: 'content_items' must hold at least one item"


def _fault(item: dict[str, Any], role: str) -> str:
    """What is wrong with an item whose fields have the right types; mostly nothing."""
    kind = item["type"]
    if kind == "tool_call.done":
        for key in ("name", "tool_call_id"):
            if not item[key]:
                return f"{key!r} must not be empty"
        try:
            json.dumps(item["arguments"])
        except (TypeError, ValueError, RecursionError) as error:
            return f"'arguments' must be JSON values ({str(error)[:80]})"
    elif kind == "tool_result.done":
        if not item["tool_call_id"]:
            return "'tool_call_id' must not be empty: repeat that of the call"
        for url in item.get("images") or ():
            if fault := picture_url_fault(url):
                return f"a URL in 'images' {fault}"
    elif kind == "image_url.done":
        if fault := picture_url_fault(item["image_url"]):
            return f"'image_url' {fault}"
    elif kind == "inline_data.done" and role == "user" and (fault := media_type_fault(item["mime_type"])):
        return f"'mime_type' {fault}"  # what a model has sent may go back as it came
    return ""


def _item_error(item: Any, place: str, fault: str, client: str) -> InvalidMessageError:
    kind = item_kind(item)
    return InvalidMessageError(f"{place} ({kind or 'no type'}): {fault}", client=client, item_type=kind)


def _translated(error: ValidationError, message: Any, index: int, client: str) -> InvalidMessageError:
    found = error.errors(include_url=False, include_input=False)[0]
    place, *inner = found["loc"]
    if place != "content_items":
        role = message.get("role")
        fault = f"'role' must be 'user' or 'assistant', not {shown(role)}" if "role" in message else "'role' is missing"
        hint = _ROLE_HINTS.get(str(role)) or (did_you_mean(role, ("user", "assistant")) if role else "")
        return InvalidMessageError(f"message {index}: {fault}{hint}", client=client, message_index=index)
    number = int(inner[0])
    item = message["content_items"][number]
    return _item_error(item, f"message {index}, item {number}", _item_fault(item, found["type"], inner[2:]), client)


def _item_fault(item: Any, problem: str, path: list[int | str]) -> str:
    if not isinstance(item, dict):
        return f"an item must be a dict with a 'type', not {shown(item)}"
    kind = item.get("type")
    if not path:
        if "type" not in item:
            return "'type' is missing, for instance 'text.done'"
        if isinstance(kind, str) and kind.endswith(".delta") and f"{kind[:-6]}.done" in _DONE:
            return f"a delta is only a fragment; messages hold done items; did you mean '{kind[:-6]}.done'?"
        near = nearest(str(kind).partition(".")[0], _KINDS)
        return "no such item type" + (f"; did you mean '{near}.done'?" if near else "; there are " + ", ".join(_DONE))
    key = str(path[0])
    if problem == "missing":
        return f"{key!r} is missing"
    return f"{key!r} must be {_WORDS.get(key, 'a string')}, not {_shown_at(item, path)}"


def _shown_at(value: Any, path: list[int | str]) -> str:
    """The value that is wrong; for an entry of a list with its position."""
    for step in path:
        value = value[step]
    return shown(value) + (f" at position {path[-1]}" if len(path) > 1 else "")
