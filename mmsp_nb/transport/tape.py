"""The file of a recording: JSON lines, read and written, and how requests are told apart. No network.

::

    {"mmsp_cassette": 1, "model": "gpt-5.5", "client_type": "openai-official"}
    {"request": {"method": "POST", "url": "https://api.openai.com/v1/responses", "body": {...}}}
    {"response": {"status": 200, "headers": {"content-type": "text/event-stream"}}}
    {"t": 0.412, "text": "event: response.created\\ndata: ..."}
    {"end": "end", "sum": "0f6c..."}

``t`` is in seconds since the request. ``end`` says how the answer ended: ``end`` (whole), ``broken`` (the connection
did), ``left`` (the reader did). ``sum`` is over the exchange, so that damage is noticed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mmsp_nb import atomic
from mmsp_nb.transport.redaction import Redactor, public_query
from mmsp_nb.transport.wire import WireRequest, is_loopback, public_url

__all__ = ["VERSION", "Exchange", "Tape", "described", "differences", "identity", "read", "write_exchange"]

VERSION = 1
LONG = 2000
"""Characters from which on a string of a request is kept as its hash: a picture is to be recognised, not shown."""

_BEFORE_VERSION = re.compile(r"^.*?/v\d+(?:beta\d*)?/")
_PROJECT = re.compile(r"^projects/[^/]+/locations/[^/]+/publishers/[^/]+/")
_IGNORED = frozenset({"created_at", "trace_id"})


@dataclass
class Exchange:
    """One request and its answer. ``pieces``: (seconds since the request, bytes)."""

    request: dict[str, Any]
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    end: str = "left"

    def __str__(self) -> str:
        return title(self.request)


@dataclass
class Tape:
    """What a file holds. ``model`` and ``client_type`` were chosen when nobody named any.

    ``whole`` is where its last whole exchange ends, in bytes, if something that is not whole lies behind it.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    model: str | None = None
    client_type: str | None = None
    whole: int | None = None


def title(request: dict[str, Any]) -> str:
    """A line for people: method, path and the beginning of what was asked last."""
    said = _last_text(request.get("body"))
    return f"{request['method']} {urlsplit(request['url']).path}" + (f" {said!r}" if said else "")


def described(request: WireRequest, redactor: Redactor) -> dict[str, Any]:
    """What is written of a request: no headers, no secrets, long strings by their hash."""
    try:
        body = json.loads(request.content) if request.content else None
    except ValueError:
        body = _packed(request.content)
    entry: dict[str, Any] = {"method": request.method, "url": public_url(request.url)}
    if query := public_query(urlsplit(request.url).query):
        entry["query"] = [list(pair) for pair in query]
    if body is not None:
        entry["body"] = _shortened(redactor.value(body))
    return entry


def identity(request: dict[str, Any]) -> str:
    """What makes two requests the same: method, the path behind the version, query, and body.

    The order of keys, ``created_at`` and ``trace_id`` do not count. The host counts where nothing else tells whom
    the request is for (no body), and then all hosts on this machine are one.
    """
    url = urlsplit(request["url"])
    path = _PROJECT.sub("", _BEFORE_VERSION.sub("", url.path).lstrip("/"))
    host = ""
    if request.get("body") is None:
        host = "loopback" if is_loopback(request["url"]) else url.netloc.lower()
    parts = [request["method"], host, path, request.get("query", []), _timeless(request.get("body"))]
    return json.dumps(parts, sort_keys=True)


def differences(recorded: Any, now: Any, place: str = "") -> Iterator[str]:
    """Where two JSON values differ, as ``messages[2].content: recorded 'a', now 'b'``."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in [*recorded, *(key for key in now if key not in recorded)]:
            if key in _IGNORED:
                continue
            inner = f"{place}.{key}" if place else str(key)
            if key not in now:
                yield f"{inner}: recorded {_brief(recorded[key])}, now missing"
            elif key not in recorded:
                yield f"{inner}: not recorded, now {_brief(now[key])}"
            else:
                yield from differences(recorded[key], now[key], inner)
    elif isinstance(recorded, list) and isinstance(now, list):
        for index, (one, other) in enumerate(zip(recorded, now, strict=False)):
            yield from differences(one, other, f"{place}[{index}]")
        if len(recorded) != len(now):
            yield f"{place}: recorded {len(recorded)} entries, now {len(now)}"
    elif isinstance(recorded, str) and isinstance(now, str) and recorded != now:
        start = next((n for n, (a, b) in enumerate(zip(recorded, now, strict=False)) if a != b), 0)
        start = start - 15 if start > 40 else 0
        yield f"{place}: recorded {_brief(recorded[start:])}, now {_brief(now[start:])}"
    elif recorded != now:
        yield f"{place}: recorded {_brief(recorded)}, now {_brief(now)}"


# the file


def write_exchange(
    path: Path, exchange: Exchange, header: dict[str, Any] | None = None, *, at: int | None = None
) -> None:
    """Append an exchange in one go, where ``at`` says that the file is whole; with ``header``, begin it anew with that.

    Raises NotWrittenError; the file is then as it was.
    """
    lines: list[dict[str, Any]] = [
        {"request": exchange.request},
        {"response": {"status": exchange.status, "headers": exchange.headers}},
        *({"t": moment, **_packed(piece)} for moment, piece in exchange.pieces),
        {"end": exchange.end},
    ]
    lines[-1]["sum"] = _checksum(lines)
    if header is not None:
        lines.insert(0, header)
        path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(_line(line) + "\n" for line in lines).encode()
    if header is None:
        atomic.append(path, data, at=at)
    else:
        atomic.replace(path, data)


def read(path: Path) -> Tape:
    """All of a recording. A last answer that is not whole, since its process was ended, is left out with a warning.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no recording, is damaged, or a newer version of this package wrote it.
    """
    tape = Tape()
    lines: list[dict[str, Any]] = []
    exchange: Exchange | None = None
    number = whole = end = 0
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            end += len(data)
            try:
                entry = json.loads(data.decode("utf-8", "replace"))  # what is damaged by it does not fit its checksum
                if number == 1:
                    _read_header(entry, tape)
                    whole = end
                    continue
                lines.append(entry)
                if "request" in entry:
                    lines, exchange = [entry], Exchange(entry["request"])
                    identity(exchange.request)
                    continue
                assert exchange is not None
                if "response" in entry:
                    exchange.status, exchange.headers = (
                        int(entry["response"]["status"]),
                        dict(entry["response"]["headers"]),
                    )
                elif "end" in entry:
                    exchange.end = entry["end"]
                    if entry.pop("sum") != _checksum(lines):
                        raise _DamagedError("the checksum does not match, so it was changed after it was recorded")
                    tape.exchanges.append(exchange)
                    exchange, whole = None, end
                else:
                    exchange.pieces.append((float(entry["t"]), _unpacked(entry)))
            except _DamagedError as error:
                raise ValueError(f"{path}, line {number}: {error}; record it anew") from None
            except (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError, OverflowError):
                if number > 1 and not data.endswith(b"\n"):
                    break  # the line was never finished
                raise ValueError(f"{path}, line {number}: this is no recording") from None
    if not number:
        raise ValueError(f"{path}, line 1: this is no recording: the file is empty")
    if whole < end:
        tape.whole = whole
        warnings.warn(
            f"{path}, line {number}: the last answer was not written to its end and is left out; "
            f"%mmsp record {path} new records it again",
            RuntimeWarning,
            stacklevel=3,
        )
    return tape


def _line(entry: dict[str, Any]) -> str:
    line = json.dumps(entry, ensure_ascii=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # half an emoji
        line = json.dumps(entry)
    return line


class _DamagedError(Exception):
    pass


def _read_header(entry: dict[str, Any], tape: Tape) -> None:
    version = int(entry["mmsp_cassette"])
    if version > VERSION:
        raise _DamagedError(f"this is a recording of version {version}, and this mmsp_nb reads up to {VERSION}")
    tape.model, tape.client_type = entry.get("model"), entry.get("client_type")


def _checksum(lines: list[dict[str, Any]]) -> str:
    canonical = json.dumps(lines, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:16]


def _packed(piece: bytes) -> dict[str, str]:
    try:
        return {"text": piece.decode("utf-8")}
    except UnicodeDecodeError:  # a character is cut, or it is no text
        return {"base64": base64.b64encode(piece).decode("ascii")}


def _unpacked(entry: dict[str, str]) -> bytes:
    return entry["text"].encode() if "text" in entry else base64.b64decode(entry["base64"])


# requests


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(inner) for key, inner in value.items() if key not in _IGNORED}
    return [_timeless(inner) for inner in value] if isinstance(value, list) else value


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONG:
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        return {"starts": value[:60], "characters": len(value), "sha256": digest}
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    return [_shortened(inner) for inner in value] if isinstance(value, list) else value


def _last_text(body: Any) -> str:
    """The last text that somebody wrote in a request, of whatever dialect, shortened."""
    if not isinstance(body, dict):
        return ""
    for name in ("messages", "contents", "input", "message"):
        found = [text for text in _texts(body.get(name), name) if text.strip()]
        if found:
            text = " ".join(found[-1].split())
            return text if len(text) <= 60 else text[:59] + "…"
    return ""


def _texts(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if name in ("text", "content", "output", "input"):
            yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, name)


def _brief(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"
