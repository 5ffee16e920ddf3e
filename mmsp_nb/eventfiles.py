"""The events of answers in files: without keys, also those that came in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mmsp_nb.masking import without_secrets
from mmsp_nb.protocol.items import PAYLOAD_FIELD, Item, UniEvent

__all__ = ["clean_events"]

_TEXTS = ("text", "thinking", "tool_call")


def clean_events(log: Iterable[tuple[float, UniEvent]]) -> Iterator[tuple[float, UniEvent]]:
    """Pairs of seconds and event as they may be kept.

    Where a text, a thought or the arguments of a call hold a key, its first piece is the whole of it, masked, and the
    other pieces are empty: no part of a key stands in any of them.
    """
    events: list[tuple[float, Any]] = [
        (at, {**event, "content_items": [without_secrets(item) for item in event["content_items"]]})
        for at, event in log
    ]
    running: dict[str, list[Item]] = {}
    for _, event in events:
        for item in event["content_items"]:
            kind, _, phase = item["type"].partition(".")
            if kind not in _TEXTS:
                continue
            run = kind if kind != "tool_call" else f"call {item.get('tool_call_id')}"
            if phase == "delta":
                running.setdefault(run, []).append(item)
            else:
                _mask(running.pop(run, []), kind)
    for run, pieces in running.items():  # the answer was cut off
        _mask(pieces, run.partition(" ")[0].replace("call", "tool_call"))
    yield from events


def _mask(pieces: list[Item], kind: str) -> None:
    name = PAYLOAD_FIELD[kind]
    whole = "".join(piece[name] for piece in pieces if isinstance(piece.get(name), str))
    masked = without_secrets(whole)
    if masked == whole:
        return
    for number, piece in enumerate(pieces):
        piece[name] = masked if number == 0 else ""
