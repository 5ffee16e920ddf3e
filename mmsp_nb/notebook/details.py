"""What the inspector shows when asked: the JSON of an item, the request and the events of a turn, copies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mmsp_nb import files
from mmsp_nb.exports import text_of, turn_markdown, turns_python
from mmsp_nb.protocol.items import UniMessage
from mmsp_nb.turns import Turn, join

from .rows import Row, safe

__all__ = ["copied", "events", "item_json", "request"]

LIMIT = 300_000
"""Characters at most."""

EVENTS = 400
"""Events in one piece."""

BYTES = 200
"""Characters shown of something binary."""


def item_json(row: Row) -> str:
    """The items behind a row, or the facts of a turn, as JSON."""
    if row.kind == "turn":
        return _json({key: value for key, value in _turn_record(row.turn).items() if value not in (None, [], {})})
    if row.item is None:
        return _json({"type": type(row.turn.error).__name__, "message": str(row.turn.error)})
    return _json(row.item if row.result is None else [row.item, row.result])


def _turn_record(turn: Turn) -> dict[str, Any]:
    record = next(files._turn(turn, True))
    return {**record, "messages": [dict(message) for message in turn.messages]}


def request(conversation: Any, turns: list[Turn], turn: Turn) -> str:
    """What was sent for ``turn``: each request with its messages and config.

    It is put together again from the turns before it that are sent now. Where the model is still the
    conversation's, the body of the first request is shown as the vendor gets it.
    """
    before = [other for other in turns[: turns.index(turn)] if not other.hidden]
    messages = join(before, conversation._before)
    config = {**turn.config}
    schemas = [tool.schema() for tool in conversation.tools if tool.name in turn.tools]
    if schemas:
        config["tools"] = schemas
    shown: list[dict[str, Any]] = []
    said = turn.messages
    for number, message in enumerate(said):
        if message["role"] == "user" and (number + 1 < len(said) or number == 0):
            sent = [*messages, *said[: number + 1]]
            shown.append({"request": len(shown) + 1, "messages": sent, "config": config})
    wire = _wire(conversation, turn, shown[0]) if shown else None
    document: dict[str, Any] = {"model": turn.model, "client_type": turn.client_type}
    if wire is not None:
        document["body"] = wire
    document["requests"] = [
        {"request": r["request"], "new": r["messages"][-1], "messages": len(r["messages"])} for r in shown
    ]
    if shown:
        document["first"] = shown[0]
    return _json(document)


def _wire(conversation: Any, turn: Turn, first: dict[str, Any]) -> Any:
    endpoint = getattr(conversation.client, "_endpoint", None)
    if endpoint is None or turn.model != conversation.model or endpoint.vendor.inline_images:
        return None
    try:
        sent, _ = conversation.client._mender(first["messages"])
        built = endpoint._dialect.build(endpoint.vendor, endpoint.route.model, sent, first["config"])
    except Exception as error:  # a viewer shows what it can
        return f"cannot be built here: {type(error).__name__}: {error}"
    return [{"method": one.method, "path": one.path, "body": one.body} for one in built]


def events(turn: Turn, start: int = 0) -> dict[str, Any]:
    """A piece of the events of a turn, each with its seconds since the turn began."""
    if turn.log is None:
        return {"total": 0, "from": 0, "events": []}
    found = []
    for number, (at, event) in enumerate(turn.log):
        if number >= start + EVENTS:
            break
        if number >= start:
            item = event["content_items"][0] if event["content_items"] else None
            kind = event["event_type"] if item is None else item["type"]
            found.append({"n": number, "at": at, "kind": safe(str(kind)), "json": _json(event, indent=None)[:2_000]})
    return {"total": len(turn.log), "from": start, "events": found}


def copied(row: Row, form: str, turns: list[Turn]) -> str:
    """A row, or with the line above a turn all of it, as ``text``, ``markdown``, ``json`` or ``python``.

    Python code makes the conversation up to this turn.
    """
    if form == "json":
        return item_json(row)
    if form == "python":
        return safe(turns_python([*turns[: turns.index(row.turn)], row.turn]))[:LIMIT]
    if row.kind == "turn" and form == "markdown":
        return safe(turn_markdown(row.turn))[:LIMIT]
    if row.item is None and row.kind != "turn":
        return safe(str(row.turn.error))
    parts = list(_texts(row))
    if form == "markdown" and row.kind == "tool":
        parts = [f"```text\n{part}\n```" for part in parts]
    return safe("\n\n".join(parts))[:LIMIT]


def _texts(row: Row) -> Iterator[str]:
    if row.kind == "turn":
        for message in row.turn.messages:
            for item in message["content_items"]:
                yield ": ".join(text_of(message, item))
        return
    assert row.item is not None and row.message is not None
    yield text_of(row.message, row.item)[1]
    if row.result is not None:
        user: UniMessage = {"role": "user", "content_items": []}
        yield text_of(user, row.result)[1]


def _json(value: Any, indent: int | None = 2) -> str:
    text = json.dumps(_shortened(value), ensure_ascii=False, indent=indent, default=repr)
    return safe(text if len(text) <= LIMIT else f"{text[:LIMIT]}\n... {len(text) - LIMIT:,} more characters")


def _shortened(value: Any) -> Any:
    """``value`` with what is binary cut short: it is looked at, not read."""
    if isinstance(value, bytes | bytearray):
        return f"<{len(value):,} bytes>"
    if isinstance(value, str):
        if value[:5].lower() == "data:" and len(value) > BYTES:
            return f"{value[:60]}... ({len(value):,} characters)"
        return value
    if isinstance(value, dict):
        return {str(key): _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > 64 and all(isinstance(number, int | float) for number in value):
            return [*value[:8], f"... {len(value) - 8:,} more numbers"]
        return [_shortened(inner) for inner in value]
    return value
