"""What is done to messages on their way into a request or a history, whatever vendor they go to."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterable, MutableMapping
from typing import Any

__all__ = ["normalize_legacy_messages", "now_ms", "stamp"]

_LEGACY = {
    kind: f"{kind}.done"
    for kind in (
        "text",
        "image_url",
        "inline_data",
        "thinking",
        "inline_thinking",
        "tool_call",
        "tool_result",
        "embedding",
    )
}
_DROPPED = "partial_tool_call"
_OLD = frozenset({*_LEGACY, _DROPPED})
_warned = False


def now_ms() -> int:
    """The time as Unix milliseconds."""
    return time.time_ns() // 1_000_000


def stamp(messages: Iterable[Any], now: int | None = None) -> None:
    """Set ``created_at`` on each message without one, in place, to ``now`` (Unix ms, default: the clock)."""
    for message in messages:
        # what is no message at all is left to the validation, which names it
        if (message.__class__ is dict or isinstance(message, MutableMapping)) and message.get("created_at") is None:
            message["created_at"] = now_ms() if now is None else now


def normalize_legacy_messages(messages: Iterable[Any]) -> list[Any]:
    """Rename items of histories written before items had a phase: ``text`` becomes ``text.done``.

    ``partial_tool_call`` items are left out; unknown types stay. The input is never modified: a
    message that needs a change is copied, any other is returned as the same object. The first
    conversion in a process emits a FutureWarning.
    """
    messages = list(messages)
    with contextlib.suppress(TypeError, KeyError):  # what is no message at all is left to the validation
        kinds = {item["type"] for message in messages for item in message["content_items"]}
        if kinds.isdisjoint(_OLD):
            return messages
    result = []
    for message in messages:
        items = message.get("content_items") if isinstance(message, dict) else None
        if isinstance(items, list) and any(_is_legacy(item) for item in items):
            _warn_once()
            message = {**message, "content_items": _renamed(items)}
        result.append(message)
    return result


def _renamed(items: list[Any]) -> list[Any]:
    kept = [item for item in items if not (_is_legacy(item) and item["type"] == _DROPPED)]
    return [{**item, "type": _LEGACY[item["type"]]} if _is_legacy(item) else item for item in kept]


def _is_legacy(item: Any) -> bool:
    kind = item.get("type") if isinstance(item, dict) else None
    return isinstance(kind, str) and (kind in _LEGACY or kind == _DROPPED)


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "content items without a phase ('text', 'tool_call', ...) are the form before version 0.5; "
            "write 'text.done', 'tool_call.done', ...",
            FutureWarning,
            stacklevel=3,
        )
