"""A gate in a scripted answer: the server stops there until the test opens it.

Tests that need "the first token is late" or "stop while the stream is running" wait on gates, never on
the clock.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

__all__ = ["Gate"]


class Gate:
    """A door that a `FakeProvider` waits at. Usable from any thread and from any event loop.

    `open` lets everybody pass, for good. `arrived` blocks until the server stands at the gate (or has passed
    it), `wait_arrived` is the same for async code; both raise TimeoutError after ``timeout`` seconds.
    """

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._arrived = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], object]] = []

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    def open(self) -> None:
        """Open the gate. A second call does nothing."""
        with self._lock:
            self._opened.set()
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    def arrived(self, timeout: float = 10.0) -> None:
        if not self._arrived.wait(timeout):
            raise TimeoutError(f"the server did not come to this gate within {timeout:g} s")

    async def wait_arrived(self, timeout: float = 10.0) -> None:
        await asyncio.to_thread(self.arrived, timeout)

    async def pass_through(self) -> None:
        """The server's side: note the arrival, then wait until the gate is open."""
        loop = asyncio.get_running_loop()
        opened = asyncio.Event()
        with self._lock:
            if not self._opened.is_set():
                self._waiting.append(lambda: _wake(loop, opened))
        self._arrived.set()
        if not self._opened.is_set():
            await opened.wait()

    def __repr__(self) -> str:
        return f"<Gate {'open' if self.is_open else 'closed'}>"


def _wake(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(event.set)
    except RuntimeError:  # the server has ended in the meantime: nobody is waiting any more
        pass
