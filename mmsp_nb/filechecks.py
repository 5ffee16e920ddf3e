"""What the records of saved conversations and the messages of traces must be, so that what is read can be used.

Fields that are not known here pass: a later version may have written them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Required

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from mmsp_nb.protocol.items import PAYLOAD_FIELD
from mmsp_nb.protocol.validation import DoneItem

__all__ = ["item_fault", "record_fault"]

_Item = Annotated[DoneItem, Field(discriminator="type")]


class _Head(TypedDict, total=False):
    name: str | None
    model: str | None
    client_type: str | None
    base_url: str | None
    config: dict[str, Any]
    max_turns: int | None
    max_calls: int | None
    tools: list[str]
    branch: str


class _Turn(TypedDict, total=False):
    id: Required[str]
    model: str
    client_type: str | None
    origin: str | None
    config: dict[str, Any]
    tools: list[str]
    parent: str | None
    usage: dict[str, int | None] | None
    estimated: bool
    masked: dict[str, int]
    finish_reason: str | None
    state: Literal["done", "partial", "failed"]
    reason: Literal["answer", "approval", "max_turns", "max_calls", "max_cost"] | None
    resumes: bool
    prices: dict[str, str | float | None] | None
    cell: str | None
    hidden: bool
    pinned: bool
    stale: bool
    summary: bool
    summarised: bool
    basis: str | None
    started: float
    first_token: float | None
    duration: float | None
    error: dict[str, str] | None
    statuses: dict[str, str]
    waiting: dict[str, str]


class _Message(TypedDict, total=False):
    role: Required[Literal["user", "assistant"]]
    usage_metadata: dict[str, int | None] | None
    finish_reason: str | None
    created_at: float | None
    origin: str | None


class _Stored(TypedDict):
    item: dict[str, Any]


class _PublicEvent(TypedDict):
    role: Literal["assistant"]
    event_type: str
    content_items: list[dict[str, Any]]
    usage_metadata: dict[str, int | None] | None
    finish_reason: str | None
    created_at: int


class _Event(TypedDict):
    at: float
    event: _PublicEvent


class _Branch(TypedDict):
    name: str
    turns: list[str]


class _End(TypedDict):
    records: int


_ITEM: TypeAdapter[Any] = TypeAdapter(_Item)
_FORMS: dict[str, TypeAdapter[Any]] = {
    kind: TypeAdapter(form)
    for kind, form in {
        "conversation": _Head,
        "turn": _Turn,
        "message": _Message,
        "item": _Stored,
        "event": _Event,
        "branch": _Branch,
        "end": _End,
    }.items()
}


def record_fault(record: Mapping[str, Any]) -> str:
    """What is wrong with a record of a saved conversation; nothing if it can be used."""
    if fault := _fault(_FORMS[record["is"]], record):
        return fault
    if record["is"] == "event":
        return next((fault for item in record["event"]["content_items"] if (fault := _event_item_fault(item))), "")
    return item_fault(record["item"]) if record["is"] == "item" else ""


def _event_item_fault(item: dict[str, Any]) -> str:
    kind, _, phase = str(item.get("type")).partition(".")
    if phase == "done":
        return item_fault(item)
    if kind in ("text", "thinking") and not isinstance(item.get(PAYLOAD_FIELD[kind]), str):
        return "a piece without its text"
    return "" if isinstance(item.get("type"), str) else "an item without a type"


def item_fault(item: Any) -> str:
    """What is wrong with an item that was stored; nothing if it can be used, or is of a kind that is not known here."""
    kind = str(item.get("type")).partition(".")[0] if isinstance(item, dict) else ""
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return "an item without a type"
    if kind not in PAYLOAD_FIELD and kind not in ("tool_result", "image_url"):
        return ""
    if item.get("partial") and kind in ("text", "thinking", "tool_call"):  # it was cut off, and is there to be seen
        return "" if isinstance(item.get(PAYLOAD_FIELD[kind]), str) else "an item without its text"
    return _fault(_ITEM, item)


def _fault(form: TypeAdapter[Any], value: Any) -> str:
    try:
        form.validate_python(value, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in found["loc"][:3] if not str(part).endswith(".done"))
        return f"{place!r} is missing" if found["type"] == "missing" else f"{place!r}: {found['msg'].lower()}"
    return ""
