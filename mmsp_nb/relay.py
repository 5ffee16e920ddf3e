"""The stream of an MMSP server, which speaks our protocol itself: handed on, not assembled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmsp_nb.protocol.assembly import concat_uni_events_to_uni_message, require_answer
from mmsp_nb.protocol.copying import copy_item
from mmsp_nb.protocol.items import UniEvent, UniMessage

__all__ = ["Relay"]


class Relay:
    """Takes the place of `EventStream`. Events pass unchanged and unchecked, but for two things that would do harm.

    A tool call that comes again, word for word, is dropped, since tools would run twice; and an answer that says
    nothing is no answer. The last stop event waits for the end of the stream: the answer is recorded ahead of it.
    """

    def __init__(self, client: str = "") -> None:
        self.client = client
        self.message: UniMessage | None = None
        """The assistant's message, after `close`; it shares nothing with the events."""
        self._done: list[Any] = []  # copies of the events that the message is made of
        self._stop: UniEvent | None = None
        self._calls: list[Any] = []

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
            items = event.get("content_items") or ()
            if any(str(item.get("type", "")).endswith(".done") for item in items):
                if self._again(items):
                    continue
                self._done.append(copy_item(event))
            out.append(event)

    def room(self, limit: int) -> int:
        """What the item that is being received may still grow by: nothing is collected here, so it is all of it."""
        return limit

    def close(self, out: list[UniEvent]) -> None:
        """The stream is over: append the stop, set `message`. The decoder has made sure that there is one.

        Raises EmptyResponseError: there is no done item. Thinking alone is the server's business.
        """
        stop: Any = self._stop
        assert stop is not None
        said = {**stop, "content_items": stop.get("content_items") or ()}
        message = concat_uni_events_to_uni_message([*self._done, said])
        if not message["content_items"]:
            require_answer(self.client, [], stop.get("finish_reason"), stop.get("usage_metadata"))
        self.message = message
        out.append(stop)

    def _again(self, items: Sequence[Any]) -> bool:
        """Whether ``items`` are one call that has come before, to the last word."""
        if len(items) != 1 or items[0]["type"] != "tool_call.done":
            return False
        call = {key: items[0].get(key) for key in ("tool_call_id", "name", "arguments")}
        known = call in self._calls
        self._calls.append(call)
        return known
