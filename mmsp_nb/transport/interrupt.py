"""Lets an AbortSignal end what one call is doing right now, from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol.errors import AbortError

if TYPE_CHECKING:
    from mmsp_nb.protocol.abort import AbortSignal

__all__ = ["Interrupt"]


class Interrupt:
    """Guards the waits of one call: ``with interrupt: await something``.

    An abort during a guarded wait cancels that wait at once, and the block raises AbortError. An
    abort between two waits runs ``on_idle`` (which closes the connection) as a background task;
    the next guarded block then raises. The task itself is never left cancelled, and a genuine
    cancellation of it passes through unchanged.
    """

    def __init__(self, signal: AbortSignal | None) -> None:
        self._signal = signal
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._cancelled = False
        self.on_idle: Callable[[], Awaitable[None]] | None = None
        self._idle_task: asyncio.Task[None] | None = None
        self._unsubscribe = signal.on_abort(self._notify) if signal is not None else None

    def check(self) -> None:
        """Raise AbortError if the signal was aborted."""
        if self._signal is not None and self._signal.aborted:
            raise AbortError(self._signal.reason)

    def __enter__(self) -> None:
        self.check()
        task = asyncio.current_task()
        assert task is not None, "a guarded wait needs a task"
        self._task, self._cancelling = task, task.cancelling()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if self._cancelled and task is not None:
            self._cancelled = False
            genuine = task.uncancel() > self._cancelling
            if not (genuine and kind is not None and issubclass(kind, asyncio.CancelledError)):
                assert self._signal is not None
                raise AbortError(self._signal.reason) from None

    def close(self) -> None:
        """Stop listening. Must be called once the call is over."""
        self.on_idle = None
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _notify(self, *_: object) -> None:
        try:
            self._loop.call_soon_threadsafe(self._fire)
        except RuntimeError:  # the loop is closed, and the call's connection with it
            pass

    def _fire(self) -> None:
        if self._task is not None:
            # The task is suspended inside the guarded block (it does not run while we do), so this
            # cancellation is delivered there, exactly once.
            if not self._cancelled:
                self._cancelled = True
                self._task.cancel()
        elif self.on_idle is not None and self._idle_task is None:
            self._idle_task = asyncio.ensure_future(self.on_idle())
