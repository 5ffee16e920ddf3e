"""One running call of a client: what ends it, and whether it still counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.items import UniEvent, UniMessage

__all__ = ["Call"]


class Call:
    """One call: what ends it, and whether it still counts as running."""

    def __init__(self, given: AbortSignal | None, *, stateful: bool = False) -> None:
        if given is not None and not isinstance(given, AbortSignal):
            raise TypeError(f"signal must be an AbortSignal, not {type(given).__name__}")
        self.stateful = stateful
        self.message: UniMessage | None = None
        """Our own copy of the message of a stateful call, to be recorded."""
        self.signal = AbortSignal()
        """The call's own signal: follows the one given, and lets the client end the call."""
        self.stream: Callable[[], AsyncGenerator[UniEvent, None] | None] = lambda: None
        """Weak reference to the iterator. Nobody else keeps it, so a dead one was abandoned."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.over = False
        self.unsubscribe: Callable[[], None] = lambda: None
        self._given = given

    def begin(self) -> None:
        self.loop = asyncio.get_running_loop()
        if self._given is not None:
            self.unsubscribe = self._given.on_abort(self._follow)

    @property
    def unfinished(self) -> bool:
        """Whether somebody may still read this call to its end."""
        if self.over or self.signal.aborted or self.stream() is None:
            return False
        return self.loop is not None and not self.loop.is_closed()

    def _follow(self) -> None:
        assert self._given is not None
        self.signal.abort(self._given.reason)
