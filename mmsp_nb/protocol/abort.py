"""`AbortSignal`: ends a call from anywhere, once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

from mmsp_nb.protocol.errors import AbortError

__all__ = ["AbortSignal"]

_log = logging.getLogger(__name__)


class AbortSignal:
    """Tells one call or several to stop. It goes from "not aborted" to "aborted" once and never back.

    Every method may be called from any thread, from any event loop and from a signal handler.
    """

    def __init__(self) -> None:
        # reentrant: a signal handler may abort while this very thread is inside one of the methods
        self._lock = threading.RLock()
        self._aborted = False
        self._reason: Any = None
        self._callbacks: dict[object, Callable[[], object]] = {}

    @property
    def aborted(self) -> bool:
        """Whether `abort` has been called."""
        return self._aborted

    @property
    def reason(self) -> Any:
        """What was given to the first `abort`; None before it."""
        return self._reason

    def abort(self, reason: Any = None) -> None:
        """Abort, for ``reason``. Only the first call counts; callbacks run here, in this thread."""
        with self._lock:
            if self._aborted:
                return
            self._reason = reason
            self._aborted = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            try:
                callback()
            except Exception:  # one listener's fault must not keep the others from stopping
                _log.exception("a callback of an AbortSignal failed")

    def throw_if_aborted(self) -> None:
        """Raise `AbortError` with the reason, if aborted."""
        if self._aborted:
            raise AbortError(self._reason)

    def on_abort(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Have ``callback()`` called at the abort, at once if that has been; returns what unsubscribes it.

        It runs in the thread that aborts, so it must be short and thread-safe.
        """
        key = object()
        with self._lock:
            waiting = not self._aborted
            if waiting:
                self._callbacks[key] = callback
        if not waiting:
            callback()

        def unsubscribe() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return unsubscribe

    async def wait(self) -> None:
        """Return once the signal is aborted. Any number of tasks may wait, each in its own event loop."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the loop of an abandoned wait was closed meanwhile
                pass

        unsubscribe = self.on_abort(wake)
        try:
            await event.wait()
        finally:
            unsubscribe()

    def __repr__(self) -> str:
        return f"<AbortSignal aborted, reason={self._reason!r}>" if self._aborted else "<AbortSignal>"
