"""Clients that have the protocol's stateful method and no history that could be read or set."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import Any

from mmsp_nb.protocol.copying import copy_item, copy_messages
from mmsp_nb.protocol.items import UniMessage
from mmsp_nb.sending import abortable, checked, stream_of, takes_signal

__all__ = ["BareClient"]


class BareClient:
    """Lets a conversation use such a client: keeps the history that the client does not show.

    What the client itself remembers stays its own business: undoing or hiding turns changes the conversation's record,
    and not what the client sends. Everything else is passed on.

    Attributes:
        wrapped: The client.
    """

    def __init__(self, client: Any) -> None:
        self.wrapped = client
        self._history: list[UniMessage] = []

    def __getattr__(self, name: str) -> Any:
        if name == "wrapped":  # not made yet: copying or unpickling looks around
            raise AttributeError(name)
        return getattr(self.wrapped, name)

    def __repr__(self) -> str:
        return f"BareClient({self.wrapped!r})"

    @property
    def model(self) -> str:
        """The client's model, or what kind of a client it is, for it is not ours that answers."""
        return str(getattr(self.wrapped, "model", None) or type(self.wrapped).__name__)

    def get_history(self) -> list[UniMessage]:
        return copy_messages(self._history)

    def set_history(self, history: Iterable[UniMessage]) -> None:
        self._history = copy_messages(list(history))

    def clear_history(self) -> None:
        self._history = []

    async def streaming_response_stateful(
        self, message: UniMessage, config: Any = None, **more: Any
    ) -> AsyncGenerator[Any, None]:
        """The client's answer; it is recorded with its question when it has come to its end."""
        items: list[Any] = []
        sent = copy_item(message)
        call = self.wrapped.streaming_response_stateful
        signal = more.get("signal")
        if signal is not None and not takes_signal(call):
            del more["signal"]
            events = abortable(stream_of(call(message=message, config=config, **more), self.wrapped), signal)
        else:
            events = stream_of(call(message=message, config=config, **more), self.wrapped)
        try:
            async for event in events:
                checked(event, self.wrapped)
                items += [copy_item(item) for item in event["content_items"] if item["type"].endswith(".done")]
                if event["event_type"] == "stop":
                    self._history += [sent, {"role": "assistant", "content_items": items}]
                yield event
        finally:
            if hasattr(events, "aclose"):
                await events.aclose()
