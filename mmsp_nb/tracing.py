"""Trace files: what was sent and answered under a ``trace_id``, for people (``.txt``) and programs (``.json``).

Each call with a trace id writes both files anew, with the whole history. A trace that cannot be
written is a warning, never the end of an answer.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from mmsp_nb import atomic
from mmsp_nb.masking import MASK, without_secrets
from mmsp_nb.protocol.configs import check_trace_id
from mmsp_nb.protocol.history import normalize_legacy_messages
from mmsp_nb.protocol.items import UniMessage

__all__ = ["load", "save", "trace_directory"]

_MEDIA = ("inline_data", "inline_thinking")


def trace_directory() -> Path:
    """Where traces go: ``MMSP_CACHE_DIR``, default ``cache``, seen from the working directory."""
    return Path(os.environ.get("MMSP_CACHE_DIR") or "cache").absolute()


def save(
    trace_id: str,
    messages: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
    model: str,
    *,
    now: datetime | None = None,
    secrets: Iterable[str] = (),
) -> tuple[Path, Path]:
    """Write the JSON and the text file of ``trace_id``, replacing those of an earlier call.

    Args:
        messages: the request's messages and the answer.
        now: the time that the files bear, in local time; default is the clock.
        secrets: keys that must not stand in the files, beside those of the environment and of a known shape.

    Returns:
        The paths of the two files.

    Raises:
        UnsupportedParameterError: ``trace_id`` could not safely name a file.
        OSError: the files cannot be written, or a symbolic link would lead out of the trace directory.
    """
    check_trace_id(trace_id)
    now = now or datetime.now()
    directory = trace_directory()
    stem = directory / trace_id.removesuffix(".json").removesuffix(".txt")
    stem.parent.mkdir(parents=True, exist_ok=True)
    if not stem.parent.resolve().is_relative_to(directory.resolve()):
        raise OSError(f"the trace {trace_id!r} would be written outside of {directory}")
    messages = without_secrets(messages, secrets)
    kept = without_secrets({key: value for key, value in config.items() if key != "model"}, secrets)
    if kept.get("extra_headers"):
        kept["extra_headers"] = dict.fromkeys(kept["extra_headers"], MASK)
    record = {
        "history": _plain(messages),
        "config": {**_plain(kept), "model": model},
        "timestamp": now.isoformat(timespec="microseconds"),
    }
    paths = stem.with_name(f"{stem.name}.json"), stem.with_name(f"{stem.name}.txt")
    texts = json.dumps(record, ensure_ascii=False, indent=2, default=str), _text(messages, record["config"], now)
    atomic.replace(paths[0], texts[0].encode("utf-8", "replace"), private=True)
    atomic.replace(paths[1], "\n".join(texts[1]).encode("utf-8", "replace"), private=True)
    return paths


def load(path: str | Path) -> list[UniMessage]:
    """The messages of a trace's JSON file, fit for `AutoLLMClient.set_history`.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no trace.
    """
    from mmsp_nb.filechecks import item_fault, record_fault  # pydantic's larger half, which only a load needs

    try:
        record = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        messages: list[UniMessage] = normalize_legacy_messages(record["history"])
        for message in messages:
            for item in message["content_items"]:
                if item["type"].partition(".")[0] in _MEDIA and isinstance(item["data"], str):
                    item["data"] = base64.b64decode(item["data"])
        for message in messages:
            record = {"is": "message", **message}
            faults = [record_fault(record), *map(item_fault, message["content_items"])]
            if any(faults):
                raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{path} is no trace file") from None
    return messages


def _plain(value: Any) -> Any:
    """``value`` with all bytes in it as base64 text, enumeration members as strings."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, str) else value


# The text file


def _text(messages: Sequence[Mapping[str, Any]], config: Mapping[str, Any], now: datetime) -> Iterator[str]:
    bar = "=" * 80
    yield from (bar, f"Conversation History - {now:%Y-%m-%d %H:%M:%S}", bar, "")
    yield "Configuration:"
    for key, value in config.items():
        if key == "tools":
            yield "  tools:"
            yield "    " + json.dumps(value, ensure_ascii=False, indent=2, default=str)
        elif key != "trace_id":
            yield f"  {key}: {value}"
    yield ""
    for number, message in enumerate(messages, 1):
        yield f"[{number}] {str(message.get('role', '')).upper()}:"
        yield "-" * 80
        for item in message.get("content_items") or ():
            yield from _item(item)
        yield from _end(message)
        yield ""


def _item(item: Mapping[str, Any]) -> Iterator[str]:
    kind = str(item.get("type", "")).partition(".")[0]
    if kind == "text":
        yield f"Text: {item['text']}"
    elif kind == "thinking":
        yield f"Thinking: {item['thinking']}"
    elif kind == "image_url":
        yield f"Image URL: {item['image_url']}"
    elif kind in _MEDIA:
        mime = item["mime_type"]
        what = {"image": "Image", "audio": "Audio"}.get(mime.partition("/")[0], "Data")
        lead = "Thinking " if kind == "inline_thinking" else ""
        yield f"{lead}Inline {what}: {mime} ({_size(len(item['data']))})"
    elif kind == "embedding":
        yield f"Embedding: [{', '.join(map(str, item['embedding'][:5]))}]"
    elif kind == "tool_call":
        yield f"Tool Call: {item['name']}"
        yield f"  Arguments: {json.dumps(item['arguments'], ensure_ascii=False, indent=2, default=str)}"
        yield f"  Tool Call ID: {item['tool_call_id']}"
    elif kind == "tool_result":
        yield f"Tool Result (ID: {item['tool_call_id']}): {item['text']}"
        for number, url in enumerate(item.get("images") or (), 1):
            yield f"  Image {number}: {url}"


def _end(message: Mapping[str, Any]) -> Iterator[str]:
    if usage := message.get("usage_metadata"):
        yield from ("", "Usage Metadata:")
        for key in ("cached_tokens", "prompt_tokens", "thoughts_tokens", "response_tokens"):
            if usage.get(key) is not None:
                yield f"  {key.replace('_', ' ').title()}: {usage[key]}"
        yield f"  Total Tokens: {sum(value or 0 for value in usage.values())}"
    if "finish_reason" in message:
        yield from ("", f"Finish Reason: {message['finish_reason']}")


def _size(count: int) -> str:
    kilobytes = count / 1024
    return f"{kilobytes:.2f} KB" if kilobytes < 1000 else f"{kilobytes / 1024:.2f} MB"
