"""`Following`: a running answer, for a page that watches it: what has come, told by deltas at a bounded rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from mmsp_nb.protocol.items import PAYLOAD_FIELD, Item
from mmsp_nb.turns import Turn

__all__ = ["Following"]

GAP = 0.1
"""Seconds between two messages at least."""


TAIL = 300
"""Characters before new text that are handed on with it, so that a key is seen that came in two pieces."""


class Following:
    """Takes the events of `Conversation.watch`.

    Args:
        changed: Called when rows came or changed otherwise than by growing; True when a turn began or ended, too.
        grown: Called with the id of the growing row, the text that came to it since, the number of characters
            before that, and the last of them.
    """

    def __init__(self, changed: Callable[[bool], None], grown: Callable[[str, str, int, str], None]) -> None:
        self._changed = changed
        self._grown = grown
        self._lock = threading.RLock()
        self._turn: Turn | None = None
        self._items: list[Item] = []
        self._running: tuple[str, list[str]] | None = None
        self._new: list[str] = []  # text that the page has not been told of
        self._length = 0
        self._dirty = self._urgent = False
        self._last = 0.0
        self._timer: threading.Timer | None = None
        self._closed = False

    def close(self) -> None:
        """Tell nothing more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def follows(self, turn: Turn) -> bool:
        """Whether ``turn`` is the one that is being answered."""
        return turn is self._turn and turn.state == "running"

    def items(self, turn: Turn) -> list[Item]:
        """The items of the running request of ``turn`` so far."""
        with self._lock:
            if turn is not self._turn or turn.state != "running":
                return []
            items = list(self._items)
            if self._running is not None:
                kind, pieces = self._running
                items.append({"type": f"{kind}.done", PAYLOAD_FIELD[kind]: "".join(pieces), "running": True})
            return items

    def take(self, turn: Turn | None, event: dict[str, Any] | None) -> None:
        """One event of the conversation, on whatever thread."""
        with self._lock:
            if turn is not None and event is not None and event["type"] == "event":
                self._take(turn, event["event"])
            else:
                if turn is not None and turn is not self._turn:
                    self._turn, self._items, self._running = turn, [], None
                elif event is not None and event["type"] == "turn_start":
                    self._items, self._running = [], None
                self._restart()
            urgent = turn is None or event is None
        self._tell(urgent)

    def _take(self, turn: Turn, event: Any) -> None:
        for item in event["content_items"]:
            kind, _, phase = item["type"].partition(".")
            if phase == "done":
                self._items.append(item)
                self._running = None
                self._restart()
            elif kind in ("text", "thinking"):
                piece = item[PAYLOAD_FIELD[kind]]
                if self._running is None or self._running[0] != kind:
                    self._running = kind, []
                    self._length = 0
                    self._restart()
                self._running[1].append(piece)
                self._length += len(piece)
                self._new.append(piece)
        if event["event_type"] == "stop":  # from now on they stand in the turn
            self._items, self._running = [], None
            self._restart()

    def _restart(self) -> None:
        self._dirty, self._new = True, []

    def _tell(self, urgent: bool) -> None:
        with self._lock:
            self._urgent = self._urgent or urgent
            wait = self._last + GAP - time.monotonic()
            if wait > 0 and not urgent:
                if self._timer is None and not self._closed:
                    self._timer = threading.Timer(wait, self._ring)
                    self._timer.daemon = True
                    self._timer.start()
                return
        self._flush()

    def _ring(self) -> None:
        self._timer = None
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._last = time.monotonic()
            dirty, self._dirty = self._dirty, False
            urgent, self._urgent = self._urgent, False
            text, self._new = "".join(self._new), []
            turn = self._turn
            row = "" if turn is None else f"{turn.id}/{len(turn.messages)}/{len(self._items)}"
            start = self._length - len(text)
            before = "".join(self._running[1][-TAIL:])[: -len(text)][-TAIL:] if text and self._running else ""
        if dirty:
            self._changed(urgent)
        elif text:
            self._grown(row, text, start, before)
