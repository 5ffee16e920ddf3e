"""The stream of an MMSP server, which speaks our protocol itself: handed on, not assembled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmsp_nb.protocol.assembly import concat_uni_events_to_uni_message
from mmsp_nb.protocol.copying import copy_item
from mmsp_nb.protocol.items import UniEvent, UniMessage

__all__ = ["Relay"]


class Relay:
    """Takes the place of `EventStream`. Events pass unchanged and unchecked.

    Only the last stop event waits for the end of the stream, since the answer is recorded ahead of it.
    """

    def __init__(self) -> None:
        self.message: UniMessage | None = None
        """The assistant's message, after `close`; it shares nothing with the events."""
        self._done: list[Any] = []  # copies of the events that the message is made of
        self._stop: UniEvent | None = None

    def push(self, raws: Sequence[dict[str, Any]], out: list[UniEvent]) -> None:
        """Append the public events in ``raws`` to ``out``, save for the latest stop."""
        for raw in raws:
            event = raw["event"]
            if self._stop is not None:
                out.append(self._stop)
                self._stop = None
            if event.get("event_type") == "stop":
                self._stop = event
                continue
            if any(str(item.get("type", "")).endswith(".done") for item in event.get("content_items") or ()):
                self._done.append(copy_item(event))
            out.append(event)

    def close(self, out: list[UniEvent]) -> None:
        """The stream is over: append the stop, set `message`. The decoder has made sure that there is one."""
        assert self._stop is not None
        self.message = concat_uni_events_to_uni_message([*self._done, self._stop])
        out.append(self._stop)
