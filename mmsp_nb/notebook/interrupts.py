"""What an interrupt does while our code runs on the main thread: at once, later, or not a second time."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["Heard", "interrupt_main_thread", "interruptible", "listening", "once", "unbroken"]

SAME = 0.2
"""Seconds within which a second interrupt is the same one."""


class Heard:
    """Whether an interrupt has come. A kernel answers one by cancelling the cell's task, some turns of its loop later:
    who is about to keep that loop busy for long looks here first.
    """

    def __init__(self) -> None:
        self.any = False

    def note(self, *_: Any) -> None:
        """As a handler of interrupts: nothing but this."""
        self.any = True

    def pass_on(self) -> bool:
        """Let a KeyboardInterrupt that was caught do what the interrupt would have done: a kernel cancels the task
        of the whole cell, and with it all that the cell awaits. False where it would only raise that again.
        """
        if self.any:
            return True
        if self not in _ears or _handler in (None, signal.default_int_handler):
            return False
        _note(signal.SIGINT, None)
        return True


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within it, an interrupt raises KeyboardInterrupt at once, also where a kernel would only cancel the task."""
    with _on_interrupt(signal.default_int_handler):
        yield


@contextlib.contextmanager
def unbroken(*, forget: bool = False) -> Iterator[Heard]:
    """Within it, an interrupt is noted and waits for the end. With ``forget`` it is dropped: one ends a cell."""
    heard = Heard()
    with _on_interrupt(heard.note) as before:
        yield heard
    if heard.any and not forget and callable(before):
        before(signal.SIGINT, None)


_ears: list[Heard] = []
_handler: Any = None  # of before the first of them listened


@contextlib.contextmanager
def listening() -> Iterator[Heard]:
    """Within it, also across awaits, an interrupt is noted and then handled as before. Answers may overlap."""
    global _handler
    heard = Heard()
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    if not _ears:
        before = signal.getsignal(signal.SIGINT)
        if callable(before) and before is not _note:
            with contextlib.suppress(ValueError, OSError):
                signal.signal(signal.SIGINT, _note)
                _handler = before
    _ears.append(heard)
    try:
        yield heard
    finally:
        _ears.remove(heard)
        if not _ears and signal.getsignal(signal.SIGINT) is _note:
            signal.signal(signal.SIGINT, _handler)


def _note(*details: Any) -> None:
    """The handler of interrupts while somebody listens."""
    for heard in _ears:
        heard.any = True
    _handler(*details)


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
