"""`EventLog`: the events of an answer with their times, at a few bytes for each.

Fragments of text and thinking are kept as lengths: the text itself stands in the finished item, and the fragment
is cut out of it again when somebody looks. So a conversation can keep what every answer looked like on its way.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

from mmsp_nb.protocol.copying import copy_item
from mmsp_nb.protocol.items import PAYLOAD_FIELD, UniEvent

__all__ = ["EventLog"]

LIMIT = 200_000
"""Events of one turn that are kept, at about 13 bytes each for fragments: 2.6 MB at most beside the text itself."""

_KINDS = ("", "text", "thinking")
_PLAIN = {"text": 1, "thinking": 2}


class EventLog:
    """The public events of the requests of one turn, in order. ``len(log)`` counts them.

    Attributes:
        left_out: How many more came than are kept.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._at = array("f")
        self._kind = bytearray()  # an index of _KINDS; 0 for an event that is kept as it is
        self._size = array("l")
        self._whole: dict[int, UniEvent] = {}
        self._runs: list[tuple[int, str]] = []  # the index after a stretch of fragments, and its text
        self._pieces: list[str] = []
        self._first_ms: int | None = None

    def __len__(self) -> int:
        return len(self._at)

    def add(self, at: float, event: UniEvent) -> None:
        """Take in an event that came ``at`` seconds after the turn began."""
        index = len(self._at)
        if index >= LIMIT:
            self.left_out += 1
            return
        at = round(at, 3)  # as a file says it: the times are the same when they are read again
        self._at.append(at)
        if self._first_ms is None:
            self._first_ms = event["created_at"] - _milliseconds(at)
        items = event["content_items"]
        item = items[0] if len(items) == 1 else {}
        kind, _, phase = str(item.get("type", "")).partition(".")
        plain = kind in _PLAIN
        if plain and phase == "delta":
            piece = item[PAYLOAD_FIELD[kind]]
            self._pieces.append(piece)
            if len(item) == 2:
                self._kind.append(_PLAIN[kind])
                self._size.append(len(piece))
                return
        elif plain and phase == "done" and self._pieces:
            text = item[PAYLOAD_FIELD[kind]]
            joined = "".join(self._pieces)
            # the same string object as in the turn, where they agree: then it costs nothing
            self._runs.append((index, text if text == joined else joined))
            self._pieces = []
        self._kind.append(0)
        self._size.append(0)
        self._whole[index] = event

    def __iter__(self) -> Iterator[tuple[float, UniEvent]]:
        """Pairs of seconds since the turn began and the event, each a copy."""
        runs = [*self._runs, (len(self._at), "".join(self._pieces))]
        run = offset = 0
        for index, at in enumerate(self._at):
            while run < len(runs) - 1 and index >= runs[run][0]:
                run, offset = run + 1, 0
            kind = _KINDS[self._kind[index]]
            if not kind:
                event = self._whole[index]
                offset += _fragment(event)
                yield round(at, 4), copy_item(event)
                continue
            piece = runs[run][1][offset : offset + self._size[index]]
            offset += self._size[index]
            yield (
                round(at, 4),
                {
                    "role": "assistant",
                    "event_type": "delta",
                    "content_items": [{"type": f"{kind}.delta", PAYLOAD_FIELD[kind]: piece}],
                    "usage_metadata": None,
                    "finish_reason": None,
                    "created_at": (self._first_ms or 0) + _milliseconds(at),
                },
            )


def _milliseconds(at: float) -> int:
    return round(at * 1000)


def _fragment(event: Mapping[str, Any]) -> int:
    """The length of a fragment of text that is kept whole, because something hangs on it."""
    items = event["content_items"]
    kind, _, phase = str(items[0]["type"]).partition(".") if len(items) == 1 else ("", "", "")
    return len(items[0][PAYLOAD_FIELD[kind]]) if kind in _PLAIN and phase == "delta" else 0
