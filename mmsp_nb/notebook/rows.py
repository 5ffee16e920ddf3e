"""What the inspector shows of turns: one row an item, calls joined with their results, as plain data for a page.

A row is cheap until it is looked at: `describe` makes the data of the few rows that a window shows. All text in it is
cleaned and masked here; the only HTML is that of our own Markdown renderer.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mmsp_nb.exports import arguments_text, note_of
from mmsp_nb.media import sniff
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.protocol.items import Item, UniMessage
from mmsp_nb.turns import Turn

from .formulas import mathml
from .markdown import to_html
from .sanitize import clean, single_line
from .secrets import mask

__all__ = ["KINDS", "Row", "describe", "matches", "media_of", "rows_of", "safe", "turn_facts"]

KINDS = ("you", "answer", "thinking", "tool", "media", "error")
"""What can be filtered by."""

PREVIEW = 4_000
"""Characters of an item in a window; the page asks for the rest."""

ANSWER = 16_000
"""The same for the text of an answer."""

FULL = 400_000
"""Characters of an item at most."""

SRC = 400_000
"""Characters of the data URL of a picture that is sent with a window; larger ones are sent when asked for."""

MAX_SRC = 12_000_000
POINTS = 96
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(slots=True)
class Row:
    """One row. ``kind`` is ``turn`` for the line above a turn, ``note`` for what is said of it, or one of `KINDS`."""

    id: str
    kind: str
    turn: Turn
    message: UniMessage | None = None
    item: Item | None = None
    result: Item | None = None
    status: str = "ok"
    running: bool = False


def rows_of(turn: Turn, live: Sequence[Item] = ()) -> list[Row]:
    """The rows of one turn; ``live`` are items of an answer that is still coming, the last one maybe unfinished."""
    rows = [Row(f"{turn.id}", "turn", turn)]
    messages = list(turn.messages)
    if live:
        messages.append({"role": "assistant", "content_items": list(live)})
    results = {
        item["tool_call_id"]: item
        for message in messages
        for item in message["content_items"]
        if item["type"] == "tool_result.done"
    }
    statuses: dict[str, str] = {outcome.call["tool_call_id"]: outcome.status for outcome in turn.outcomes}
    statuses |= {call["tool_call_id"]: "held" for call in turn.held}
    calls = {outcome.call["tool_call_id"]: outcome.call for outcome in turn.outcomes}
    called: set[str] = set()
    for number, message in enumerate(messages):
        for index, item in enumerate(message["content_items"]):
            kind = _kind(message, item)
            row = Row(f"{turn.id}/{number}/{index}", kind, turn, message, item)
            if item["type"] == "tool_call.done":
                call_id = item["tool_call_id"]
                called.add(call_id)
                row.result, row.status = results.get(call_id), statuses.get(call_id, "ok")
                row.running = row.result is None and turn.state == "running"
            elif item["type"] == "tool_result.done":
                call_id = item["tool_call_id"]
                if call_id in called:
                    continue
                if call_id in calls:  # one that an earlier turn held back
                    row.item, row.result, row.status = calls[call_id], item, statuses[call_id]
            row.running = row.running or item.get("running", False)
            rows.append(row)
    if turn.error is not None:
        rows.append(Row(f"{turn.id}/error", "error", turn))
    return rows


def _kind(message: UniMessage, item: Item) -> str:
    kind = item["type"].partition(".")[0]
    if kind == "text":
        return "you" if message["role"] == "user" else "answer"
    if kind in ("tool_call", "tool_result"):
        return "tool"
    return "thinking" if kind == "thinking" else "media"


def matches(row: Row, kinds: Sequence[str] | None, text: str) -> bool:
    """Whether a row is of one of the kinds and holds ``text``, in any case. Lines above turns go with their rows."""
    if row.kind == "turn":
        return False
    failed = row.status not in ("ok", "running", "held") or row.kind == "error"
    if kinds is not None and row.kind not in kinds and not (failed and "error" in kinds):
        return False
    if not text:
        return True
    return any(text in part.lower() for part in _texts(row))


def _texts(row: Row) -> Iterable[str]:
    item = row.item
    if item is None:
        yield f"{type(row.turn.error).__name__} {row.turn.error}"
        return
    for key in ("text", "thinking", "name", "mime_type"):
        if key in item:
            yield str(item[key])
    if "arguments" in item:
        yield arguments_text(item["arguments"])
    if row.result is not None:
        yield row.result["text"]
    if "image_url" in item and item["image_url"][:5].lower() != "data:":
        yield item["image_url"]


def safe(text: str) -> str:
    """Text of strangers for a page: no keys, nothing that a screen would obey."""
    return clean(mask(text))


def turn_facts(turn: Turn) -> dict[str, Any]:
    """What is known of a turn as a whole."""
    counted = tokens.totals(turn.usage)
    state = "stale" if turn.stale and turn.state == "done" else turn.state
    return {
        "turn": turn.id,
        "state": state,
        "model": safe(turn.model),
        "client": safe(turn.client_type or ""),
        "cell": safe(turn.cell or ""),
        "reason": turn.finish_reason or "",
        "note": single_line(mask(note_of(turn)), 300),
        "first": None if turn.first_token is None else round(turn.first_token, 3),
        "seconds": None if turn.duration is None else round(turn.duration, 3),
        "in": counted.input,
        "out": counted.output,
        "cached": None if turn.usage is None else turn.usage.get("cached_tokens"),
        "thought": None if turn.usage is None else turn.usage.get("thoughts_tokens"),
        "cost": None if turn.cost is None else float(turn.cost),
        "hidden": turn.hidden,
        "pinned": turn.pinned,
        "summary": turn.summary,
        "prompt": single_line(mask(turn.prompt[:400]), 120),
        "events": 0 if turn.log is None else len(turn.log),
    }


def describe(row: Row, *, full: bool = False) -> dict[str, Any]:
    """The data of a row, bounded; with ``full``, with everything."""
    data: dict[str, Any] = {"id": row.id, "kind": row.kind, "turn": row.turn.id}
    if row.kind == "turn":
        return {**data, **turn_facts(row.turn)}
    if row.running:
        data["running"] = True
    if row.turn.hidden:
        data["hidden"] = True
    limit = FULL if full else PREVIEW
    item = row.item
    if item is None:
        error = row.turn.error
        name = getattr(error, "kind", None) or type(error).__name__
        return {**data, **_text(str(error), limit), "name": single_line(name, 80)}
    if item.get("partial"):
        data["partial"] = True
    kind = item["type"].partition(".")[0]
    if row.running and kind in ("text", "thinking"):
        text = item[kind]
        data |= {"text": clean(mask(text[-ANSWER:], running=True)), "length": len(text)}
    elif kind == "text":
        data |= _text(item["text"], limit if full else ANSWER)
        if row.kind == "answer":
            data["html"] = to_html(data["text"], formula=mathml)
    elif kind == "thinking":
        data |= _text(item["thinking"], limit)
    elif kind == "tool_call":
        data |= _call(row, item, limit)
    elif kind == "tool_result":
        data |= {"name": "result", "args": "", "result": _text(item["text"], limit), "status": "ok"}
        data["peek"] = single_line(mask(item["text"][:300]), 120)
    elif kind == "embedding":
        data |= _embedding(item["embedding"])
    else:
        data |= _media(kind, item, full)
    return data


def _text(text: str, limit: int) -> dict[str, Any]:
    shown = safe(text[: limit + 200])
    if len(shown) > limit:
        shown = shown[:limit]
    more = max(len(text) - limit, 0)
    return {"text": shown, "more": more} if more else {"text": shown}


def _call(row: Row, item: Item, limit: int) -> dict[str, Any]:
    arguments = arguments_text(item["arguments"])
    data: dict[str, Any] = {
        "name": single_line(mask(item["name"]), 120),
        "args": safe(arguments[:limit]),
        "head": single_line(mask(arguments[:300]), 140),
        "status": "running" if row.running else row.status,
    }
    if len(arguments) > limit:
        data["more"] = len(arguments) - limit
    for outcome in row.turn.outcomes:
        if outcome.call["tool_call_id"] == item["tool_call_id"] and outcome.duration:
            data["seconds"] = round(outcome.duration, 3)
    if row.result is not None:
        data["result"] = _text(row.result["text"], limit)
        data["peek"] = single_line(mask(row.result["text"][:300]), 120)
        if "more" in data["result"]:
            data["more"] = data.get("more", 0) + data["result"]["more"]
        images = [_picture_url(url, SRC) for url in row.result.get("images") or ()]
        if images:
            data["images"] = images
    return data


def media_of(item: Item) -> dict[str, Any]:
    """What is shown of a picture or a sound by itself: a label, and a data URL of bounded size if it can be drawn."""
    return _media(item["type"].partition(".")[0], item, False)


def _media(kind: str, item: Item, full: bool) -> dict[str, Any]:
    limit = MAX_SRC if full else SRC
    if kind == "image_url":
        return {"media": "image", **_picture_url(item["image_url"], limit)}
    if kind not in ("inline_data", "inline_thinking"):
        return {"media": "other", "label": single_line(mask(str(item["type"])), 80)}
    raw, mime = item["data"], str(item["mime_type"])
    label = f"{single_line(mask(mime), 80)}, {len(raw):,} bytes"
    found = sniff(raw)
    if found is not None:
        return {"media": "image", **_source(found, raw, label, limit)}
    if mime.lower().startswith("audio/"):
        sound = _sound(raw, mime)
        if sound is not None:
            return {"media": "audio", **_source(sound[0], sound[1], label, limit)}
    return {"media": "other", "label": label}


def _source(mime: str, raw: bytes, label: str, limit: int) -> dict[str, Any]:
    if len(raw) * 4 // 3 > limit:
        return {"label": label, "more": len(raw)}
    return {"label": label, "src": f"data:{mime};base64,{base64.b64encode(raw).decode('ascii')}"}


def _picture_url(url: str, limit: int) -> dict[str, Any]:
    """A picture of a data URL, by its bytes and not by what it says of itself; an address is only named."""
    if url[:5].lower() != "data:":
        return {"label": single_line(mask(url), 300), "remote": True}
    head, _, body = url.partition(",")
    if len(body) > limit:
        return {"label": f"{single_line(head[5:60], 60)}, {len(body):,} characters", "more": len(body)}
    try:
        raw = base64.b64decode(body, validate=False)
    except ValueError:
        return {"label": "a picture that cannot be read"}
    mime = sniff(raw)
    if mime is None:
        return {"label": f"{single_line(head[5:60], 60)}, {len(raw):,} bytes"}
    return _source(mime, raw, f"{mime}, {len(raw):,} bytes", limit)


def _sound(raw: bytes, mime: str) -> tuple[str, bytes] | None:
    """A sound as a browser plays it: raw samples get the head of a WAV file."""
    kind = mime.lower().partition(";")[0].strip()
    if raw[:4] == b"RIFF" or kind in ("audio/wav", "audio/x-wav"):
        return "audio/wav", raw
    if kind in ("audio/pcm", "audio/l16", "audio/raw"):
        rate = 24_000
        for part in mime.lower().split(";")[1:]:
            name, _, value = part.strip().partition("=")
            if name == "rate" and value.isdigit() and 4_000 <= int(value) <= 192_000:
                rate = int(value)
        head = struct.pack(
            "<4sI4s4sIHHIIHH4sI",
            b"RIFF", 36 + len(raw), b"WAVE", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16, b"data", len(raw),
        )  # fmt: skip
        return "audio/wav", head + raw
    known = {"audio/mpeg", "audio/mp3", "audio/ogg", "audio/webm", "audio/flac", "audio/aac", "audio/mp4", "audio/opus"}
    return (kind, raw) if kind in known else None


def _embedding(numbers: Sequence[float]) -> dict[str, Any]:
    """The numbers thinned out for a sparkline, and their length as a vector."""
    step = max(len(numbers) / POINTS, 1.0)
    points = [numbers[int(n * step)] for n in range(min(len(numbers), POINTS))]
    norm = sum(number * number for number in numbers) ** 0.5
    shown = ", ".join(f"{number:.4g}" for number in numbers[:8])
    more = ", ..." if len(numbers) > 8 else ""
    label = f"{len(numbers):,} numbers, length {norm:.4g}"
    return {"media": "embedding", "label": label, "points": [round(p, 5) for p in points], "text": f"[{shown}{more}]"}
