"""Conversations in files: one JSON record a line, sorted keys, the same text for the same conversation.

Records, each with its kind in ``is``: ``conversation`` (the head), ``branch``, ``turn``, ``message``, ``item``,
``event``, ``end``. Items belong to the message above them, messages and events to the turn (or the head). Bytes are
``{"$bytes": "<base64>"}``. A key that the head, a config, a text or an error would hold is hidden.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmsp_nb import atomic
from mmsp_nb.eventfiles import clean_events
from mmsp_nb.masking import MASK, mask_keys, without_secrets
from mmsp_nb.protocol.items import UniMessage

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation
    from mmsp_nb.turns import Turn

__all__ = ["FORMAT", "VERSION", "load", "records", "save", "write"]

FORMAT = "mmsp-conversation"
VERSION = 1

# Fields of a Turn beside its messages, and their defaults, which are not written.
FIELDS: dict[str, Any] = {
    "model": "",
    "client_type": None,
    "origin": None,
    "config": {},
    "tools": [],
    "parent": None,
    "usage": None,
    "estimated": False,
    "masked": {},
    "finish_reason": None,
    "state": "done",
    "reason": None,
    "resumes": False,
    "prices": None,
    "cell": None,
    "hidden": False,
    "pinned": False,
    "stale": False,
    "summary": False,
    "summarised": False,
    "basis": None,
}
TIMES = ("started", "first_token", "duration")


def save(conversation: Conversation, path: str | Path, *, times: bool = False, events: bool = False) -> Path:
    """Write ``conversation`` to ``path``; see `Conversation.save`. Returns the path."""
    target = Path(path).expanduser()
    write(target, "".join(dumped(record) + "\n" for record in records(conversation, times=times, events=events)))
    return target


def load(path: str | Path, *, tools: Any = None, client: Any = None, **client_options: Any) -> Conversation:
    """The conversation in a file that `Conversation.save` wrote, or in a trace file (``.json``).

    Args:
        tools: As for `Conversation`; None takes those of the same names that are there.
        client: Goes on with it; None makes one for the model that the file names. Where that cannot be done, for
            want of a key say, the conversation can be looked at, exported and switched to another model.
        client_options: For the client: ``api_key``, ``base_url``, ``client_type``, ``default_headers``, ``transport``.

    Raises:
        OSError: The file cannot be read.
        ConversationFileError: It is damaged, and where; or it is no such file.
    """
    from mmsp_nb.restoring import restore

    return restore(Path(path).expanduser(), tools=tools, client=client, options=client_options)


def records(conversation: Conversation, *, times: bool = False, events: bool = False) -> Iterator[dict[str, Any]]:
    """The records of ``conversation`` as they are written, in order."""
    head = {
        "is": "conversation",
        "format": FORMAT,
        "version": VERSION,
        "name": conversation.name,
        "model": conversation.model,
        "client_type": getattr(conversation.client, "client_type", None),
        "base_url": _own_base_url(conversation.client),
        "config": _config(conversation.config),
        "max_turns": conversation.max_turns,
        "tools": list(dict.fromkeys([*conversation.tools.names(), *conversation._absent])),
        "branch": conversation.branch,
    }
    head |= {name: getattr(conversation, name) for name in ("max_calls", "max_cost", "budget")}
    if besides := conversation._besides():
        head["spent_besides"] = besides
    head = {key: str(value) if isinstance(value, Decimal) else value for key, value in head.items()}
    yield {key: value for key, value in head.items() if value is not None}
    count = 1
    for message in conversation._before:
        for record in _message(message, "before", times):
            count += 1
            yield record
    seen: set[str] = set()
    for turns in conversation.branches.values():
        for turn in turns:
            if turn.state == "running" or turn.id in seen:
                continue
            seen.add(turn.id)
            for record in chain(_turn(turn, times), _events(turn) if events else ()):
                count += 1
                yield record
    for name, turns in conversation.branches.items():
        count += 1
        yield {"is": "branch", "name": name, "turns": [turn.id for turn in turns if turn.id in seen]}
    yield {"is": "end", "records": count}


def _turn(turn: Turn, times: bool) -> Iterator[dict[str, Any]]:
    record: dict[str, Any] = {"is": "turn", "id": turn.id}
    for name, default in FIELDS.items():
        value = getattr(turn, name)
        if value != default:
            record[name] = _config(value) if name == "config" else value
    if turn.error is not None:
        kind = getattr(turn.error, "kind", None) or type(turn.error).__name__
        record["error"] = {"type": kind, "message": mask_keys(str(turn.error))}
    if times:
        record |= {name: getattr(turn, name) for name in TIMES if getattr(turn, name) is not None}
    statuses = {outcome.call["tool_call_id"]: outcome.status for outcome in turn.outcomes if outcome.status != "ok"}
    statuses |= {call["tool_call_id"]: "held" for call in turn.held}
    if statuses:
        record["statuses"] = statuses
    if turn.waiting:
        record["waiting"] = {str(each.index): each.reason for each in turn.waiting}
    same = _comparable(turn.history, times) == _comparable(turn.messages, times)
    if same:
        record["history"] = "messages"
    yield record
    for message in turn.messages:
        yield from _message(message, None, times)
    for message in () if same else turn.history:
        yield from _message(message, "history", times)
    if turn.pending is not None:
        yield from _message(turn.pending, "pending", times)


def _events(turn: Turn) -> Iterator[dict[str, Any]]:
    for at, event in clean_events(turn.log or ()):
        yield {"is": "event", "at": at, "event": event}


def _message(message: UniMessage, place: str | None, times: bool) -> Iterator[dict[str, Any]]:
    record: dict[str, Any] = {"is": "message", **{k: v for k, v in message.items() if k != "content_items"}}
    if not times:
        record.pop("created_at", None)
    if place is not None:
        record["in"] = place
    yield record
    for item in message["content_items"]:
        yield {"is": "item", "item": without_secrets(item)}


def _comparable(messages: list[UniMessage], times: bool) -> list[Any]:
    return [{k: v for k, v in message.items() if times or k != "created_at"} for message in messages]


def _config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without what may carry a key."""
    kept: dict[str, Any] = without_secrets(config)
    if kept.get("extra_headers"):
        kept["extra_headers"] = dict.fromkeys(kept["extra_headers"], MASK)
    return kept


def _own_base_url(client: Any) -> str | None:
    """The endpoint, where it is not the vendor's usual one and not a server of this process."""
    from mmsp_nb.transport.wire import public_url

    base_url, vendor = getattr(client, "base_url", None), getattr(client, "vendor", None)
    if not isinstance(base_url, str) or vendor is None or getattr(client, "model", None) in ("demo", "local"):
        return None
    return None if base_url == vendor.default_base_url else public_url(base_url)


def dumped(record: Mapping[str, Any]) -> str:
    """One line of JSON for ``record``."""
    plain = packed(record)
    line = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(", ", ": "), default=str)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # half an emoji
        line = json.dumps(plain, sort_keys=True, separators=(", ", ": "), default=str)
    return line


def packed(value: Any) -> Any:
    """``value`` as JSON can hold it."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        plain = {str(key): packed(inner) for key, inner in value.items()}
        return {"$plain": plain} if len(plain) == 1 and next(iter(plain)).startswith("$") else plain
    if isinstance(value, list | tuple):
        return [packed(inner) for inner in value]
    return str(value) if isinstance(value, str) else value


def unpacked(value: Any) -> Any:
    """What `packed` made ``value`` of."""
    if isinstance(value, dict):
        if len(value) == 1:
            if "$bytes" in value:
                return base64.b64decode(value["$bytes"], validate=True)
            if "$plain" in value:
                return {key: unpacked(inner) for key, inner in value["$plain"].items()}
        return {key: unpacked(inner) for key, inner in value.items()}
    return [unpacked(inner) for inner in value] if isinstance(value, list) else value


def write(path: Path, text: str) -> None:
    """Write a file as a whole; see `mmsp_nb.atomic.replace`."""
    atomic.replace(path, text.encode("utf-8", "replace"))
