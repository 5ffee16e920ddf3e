"""Targets: files that somebody else may have written or damaged. Recordings, saved conversations, traces."""

from __future__ import annotations

import atexit
import contextlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuzz_source import Source

from mmsp_nb import files, tracing
from mmsp_nb.restoring import AbsentClient, ConversationFileError
from mmsp_nb.transport import tape

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def cassette(data: bytes) -> None:
    """A recording is read, or refused with its line."""
    path = FOLDER / "cassette.jsonl"
    path.write_bytes(_lines(data, _CASSETTE))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an answer that was not written to its end is left out
            found = tape.read(path)
    except ValueError as error:
        assert str(path) in str(error) and "\n" not in str(error)
        return
    for exchange in found.exchanges:
        assert str(exchange) and isinstance(exchange.end, str)
        assert all(isinstance(piece, bytes) and seconds >= 0 for seconds, piece in exchange.pieces)
        list(tape.differences(exchange.request, {"method": "POST", "url": "http://x/v1/y", "body": {"messages": []}}))


def _cassette() -> list[dict[str, Any]]:
    request = {"method": "POST", "url": "https://api.x.org/v1/chat/completions", "body": {"model": "m", "messages": []}}
    lines: list[dict[str, Any]] = [
        {"request": request},
        {"response": {"status": 200, "headers": {"content-type": "text/event-stream"}}},
        {"t": 0.5, "text": "data: {}\n\n"},
        {"t": 0.75, "base64": "/w=="},
    ]
    ended = {"end": "end"}
    return [{"mmsp_cassette": 1, "model": "m"}, *lines, {**ended, "sum": tape._checksum([*lines, ended])}]


_CASSETTE = _cassette()


def saved(data: bytes) -> None:
    """A saved conversation is loaded, or refused with its line; what was loaded can be shown and saved again."""
    path = FOLDER / "talk.jsonl"
    path.write_bytes(_lines(data, _SAVED))
    _load(path)


def trace(data: bytes) -> None:
    """A trace is loaded, or refused."""
    source = Source(data)
    path = FOLDER / "trace.json"
    whole = source.byte() % 2 == 0
    path.write_bytes(source.rest() if whole else json.dumps(_swapped(source, _TRACE)).encode())
    with contextlib.suppress(ValueError):
        tracing.load(path)
    _load(path)


def _load(path: Path) -> None:
    client = AbsentClient("m", None, RuntimeError("no model here"))
    try:
        conversation = files.load(path, client=client, tools=[])
    except ConversationFileError as error:
        assert str(path) in str(error) and "\n" not in str(error), error
        return
    assert repr(conversation) and conversation._repr_html_() and conversation.messages is not None
    again = FOLDER / "again.jsonl"
    conversation.save(again)
    loaded = files.load(again, client=AbsentClient("m", None, RuntimeError("no model here")), tools=[])
    loaded.save(path)
    assert path.read_bytes() == again.read_bytes()
    for form in ("markdown", "html", "python", "notebook"):
        assert isinstance(conversation.export(format=form), str)


_MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content_items": [{"type": "text.done", "text": "Tides?"}]},
    {
        "role": "assistant",
        "content_items": [
            {"type": "thinking.done", "thinking": "hm", "fidelity": {"signature": "cw=="}},
            {"type": "tool_call.done", "name": "f", "arguments": {"a": 1}, "tool_call_id": "c1"},
        ],
        "usage_metadata": {"cached_tokens": None, "prompt_tokens": 1, "thoughts_tokens": None, "response_tokens": 2},
        "finish_reason": "tool_call",
    },
    {"role": "user", "content_items": [{"type": "tool_result.done", "text": "r", "tool_call_id": "c1"}]},
    {
        "role": "assistant",
        "content_items": [{"type": "inline_data.done", "data": {"$bytes": "/w=="}, "mime_type": "a/b"}],
    },
]
_TRACE: dict[str, Any] = {"history": _MESSAGES, "config": {"max_tokens": 5}, "model": "m", "timestamp": "2030-01-01"}


def _saved() -> list[dict[str, Any]]:
    head = {
        "is": "conversation", "format": files.FORMAT, "version": files.VERSION, "model": "m", "config": {},
        "branch": "main", "max_turns": 5, "tools": [], "name": "n",
    }  # fmt: skip
    records: list[dict[str, Any]] = [
        head,
        {"is": "turn", "id": "t1", "history": "messages", "model": "m", "usage": None},
    ]
    for message in _MESSAGES:
        records.append({"is": "message", **{k: v for k, v in message.items() if k != "content_items"}})
        records += [{"is": "item", "item": item} for item in message["content_items"]]
    records.append(
        {"is": "turn", "id": "t2", "parent": "t1", "state": "failed", "error": {"type": "E", "message": "m"}}
    )
    records.append({"is": "message", "role": "user", "in": "pending"})
    records.append({"is": "item", "item": {"type": "text.done", "text": "x"}})
    records.append({"is": "branch", "name": "main", "turns": ["t1", "t2"]})
    return [*records, {"is": "end", "records": len(records)}]


_SAVED = _saved()


def _lines(data: bytes, good: list[dict[str, Any]]) -> bytes:
    """An even first byte: the file itself. An odd one: a good file, and what is wrong with it."""
    source = Source(data)
    if source.byte() % 2 == 0:
        return source.rest()
    lines: list[Any] = list(good)
    while source and lines:
        at, what = source.byte() % len(lines), source.byte() % 5
        if what == 0:
            del lines[at]
        elif what == 1:
            lines.insert(at, lines[source.byte() % len(lines)])
        else:
            lines[at] = _swapped(source, lines[at])
    for line in lines:
        if isinstance(line, dict) and line.get("is") == "end":
            line["records"] = len(lines) - 1
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _swapped(source: Source, value: Any) -> Any:
    """A copy of ``value`` with another value somewhere in it, or something missing."""
    if isinstance(value, dict) and value and source.byte() % 4:
        key = source.one_of(sorted(value))
        if source.byte() % 5 == 0:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _swapped(source, value[key])}
    if isinstance(value, list) and value and source.byte() % 4:
        at = source.byte() % len(value)
        return [*value[:at], _swapped(source, value[at]), *value[at + 1 :]]
    return source.value()


def cassette_seeds() -> Iterable[bytes]:
    yield b"\x00" + b"".join(json.dumps(line).encode() + b"\n" for line in _CASSETTE)
    yield b"\x00" + b"[" * 2000
    yield from (bytes([1, 1, 2, *([5] * number)]) for number in range(8))


def saved_seeds() -> Iterable[bytes]:
    yield b"\x00" + b"".join(json.dumps(line).encode() + b"\n" for line in _SAVED)
    yield b"\x00" + json.dumps({"format": files.FORMAT}).encode() + b"\n" + b"[" * 2000
    yield from (bytes([1, number, 2, 1, number, 1, 3, 7]) for number in range(16))


def trace_seeds() -> Iterable[bytes]:
    yield b"\x00" + json.dumps(_TRACE).encode()
    yield b"\x00" + b"[" * 2000
    yield from (bytes([1, 1, number, 1, 1, number, 2, 3]) for number in range(8))
