"""What the inspector shows when asked: the JSON of an item, the request and the events of a turn, copies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from mmsp_nb import files
from mmsp_nb.agent import Agent
from mmsp_nb.eventlog import EventLog
from mmsp_nb.exports import text_of, turn_markdown, turns_python
from mmsp_nb.mending import Mender
from mmsp_nb.protocol.configs import check_config
from mmsp_nb.protocol.items import UniMessage
from mmsp_nb.providers.base import remote_images, with_inlined
from mmsp_nb.providers.routing import resolve
from mmsp_nb.providers.traits import origin
from mmsp_nb.turns import Turn, join

from .rows import Row, safe

__all__ = ["copied", "events", "item_json", "request"]

LIMIT = 300_000
"""Characters at most."""

EVENTS = 400
"""Events in one piece."""

EVENT = 2_000
"""Characters of one event at most."""

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


def request(conversation: Any, turns: list[Turn], turn: Turn, number: int = 1) -> tuple[str, int, int]:
    """One of the requests of ``turn`` as JSON, its number, and how many there were.

    It is put together again from the turns before it that are sent now: method, path and body as the vendor got them,
    or where that cannot be known (a client that is not ours) the messages and the config. When turns before it have
    changed since, it says so.
    """
    before = [other for other in turns[: turns.index(turn)] if not other.hidden]
    said = turn.messages
    asked = [
        n for n, message in enumerate(said) if message["role"] == "user" and (n + 1 < len(said) or n == 0)
    ]  # results that were not sent stand at the end
    if not asked:
        return _json({"model": turn.model, "note": "nothing was sent"}), 0, 0
    number = min(max(number, 1), len(asked))
    messages = [*join(before, conversation._before), *said[: asked[number - 1] + 1]]
    tools = [tool for tool in conversation.tools if tool.name in turn.tools]
    config = Agent(conversation.client, tools)._turn_config({**turn.config}, number == 1)
    document: dict[str, Any] = {"model": turn.model, "client_type": turn.client_type}
    document["new"] = f"{len(messages)} messages; the last one is new"
    times = [] if turn.log is None else _spans(turn.log)
    if number <= len(times):
        document["answered"] = "from {:.3f} s to {:.3f} s".format(*times[number - 1])
    if turn.stale:
        document["note"] = "turns before it have changed since: then it was sent with others"
    wire = _wire(conversation, turn, messages, config)
    if isinstance(wire, str):
        document |= {"body": wire, "messages": messages, "config": config}
    elif len(wire) == 1:
        document |= wire[0]
    else:
        document["sent"] = wire
    return _json(document), number, len(asked)


def _wire(conversation: Any, turn: Turn, messages: list[UniMessage], config: dict[str, Any]) -> Any:
    """What the vendor gets: a list of requests, or a line that says why that is not known."""
    client = conversation.client
    try:
        same = turn.model == client.model and turn.client_type == getattr(client, "client_type", None)
        if same and getattr(client, "_endpoint", None) is not None:
            route, mender = client._endpoint.route, client._mender
        elif turn.client_type is None:
            return "not known: the client is not one of this package"
        else:
            route = resolve(turn.model, client_type=turn.client_type, stand_in="absent")
            mender = Mender(origin(route.vendor, route.model, route.base_url), route.vendor.traits(route.model))
        vendor = route.vendor
        sent, _ = mender(messages)
        if vendor.inline_images:
            sent = with_inlined(sent, dict.fromkeys(remote_images(sent), "data:image/png;base64,(the picture there)"))
        dialect = import_module(f"mmsp_nb.providers.{vendor.dialect}")
        built = dialect.build(vendor, route.model, sent, check_config(config))
        return [{"method": one.method, "path": one.path, "body": one.body} for one in built]
    except Exception as error:  # a viewer shows what it can
        return f"cannot be built here: {type(error).__name__}: {error}"


def _spans(log: EventLog) -> list[tuple[float, float]]:
    """When the answer to each request began and ended, in seconds since the turn began."""
    spans: list[tuple[float, float]] = []
    begin: float | None = None
    at = 0.0
    for at, event in log:
        begin = at if begin is None else begin
        if event["event_type"] == "stop":
            spans.append((begin, at))
            begin = None
    return spans if begin is None else [*spans, (begin, at)]


def events(turn: Turn, start: int = 0) -> dict[str, Any]:
    """A piece of the events of all requests of a turn, each with its request and its seconds since the turn began."""
    if turn.log is None:
        return {"total": 0, "from": 0, "size": EVENTS, "events": []}
    found = []
    request = 1
    for number, (at, event) in enumerate(turn.log):
        if number >= start + EVENTS:
            break
        if number >= start:
            item = event["content_items"][0] if event["content_items"] else None
            kind = safe(str(event["event_type"] if item is None else item["type"]))
            text = _json(event, indent=None)[:EVENT]
            found.append({"n": number, "at": at, "request": request, "kind": kind, "json": text})
        request += event["event_type"] == "stop"
    return {"total": len(turn.log), "from": start, "size": EVENTS, "left_out": turn.log.left_out, "events": found}


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
