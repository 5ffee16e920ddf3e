"""What an interrupt does while our code runs on the main thread: at once, later, or not a second time."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["interrupt_main_thread", "interruptible", "once", "unbroken"]

SAME = 0.2
"""Seconds within which a second interrupt is the same one."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within it, an interrupt raises KeyboardInterrupt at once, also where a kernel would only cancel the task."""
    with _on_interrupt(signal.default_int_handler):
        yield


@contextlib.contextmanager
def unbroken(*, forget: bool = False) -> Iterator[None]:
    """Within it, an interrupt waits for the end. With ``forget`` it is dropped: one interrupt ends a cell."""
    came: list[Any] = []
    with _on_interrupt(lambda *details: came.append(details)) as before:
        yield
    if came and not forget and callable(before):
        before(*came[0])


@contextlib.contextmanager
def _on_interrupt(handler: Any) -> Iterator[Any]:
    """Handle interrupts in that way, and give the handler from before; off the main thread nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, handler)
    except (ValueError, OSError, AttributeError):
        before = None
    try:
        yield before
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def interrupt_main_thread() -> None:
    """As a kernel's interrupt: it also wakes a system call that waits, where the platform can."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def once() -> None:
    """An interrupt has ended the answer: another one right after it shall not hit the kernel that ends the cell.

    A kernel that is interrupted between a cell and its reply never sends the reply. It puts its own handler back
    when it is done; code of the cell that goes on can be interrupted again in a moment.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    before, until = signal.getsignal(signal.SIGINT), time.monotonic() + SAME
    if not callable(before):
        return

    def handle(*details: Any) -> None:
        if time.monotonic() >= until:
            before(*details)

    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, handle)
