"""What an interrupt does while our code runs on the main thread: at once, later, or not a second time."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

__all__ = [
    "Heard",
    "attend",
    "blocking",
    "cancelling",
    "interrupt_main_thread",
    "interruptible",
    "listening",
    "once",
    "unbroken",
]

SAME = 0.2
"""Seconds within which a second interrupt is the same one."""


class Heard:
    """Whether an interrupt has come. A kernel answers one by cancelling the cell's task, some turns of its loop later:
    who is about to keep that loop busy for long looks here first.
    """

    def __init__(self) -> None:
        self.any = False

    def pass_on(self) -> bool:
        """Let a KeyboardInterrupt that was caught do what the interrupt would have done: a kernel cancels the task
        of the whole cell, and with it all that the cell awaits. False where it would only raise that again.
        """
        if not self.any and _passed_on():
            self.any = True
        return self.any


class _Handled:
    """A context in which interrupts are handled by ``_handle``. Off the main thread, and where interrupts are ignored
    or not Python's, nothing is changed.
    """

    _before: Any = None

    def __enter__(self) -> Any:
        before = _present()
        if before is not None and _set(self._handle):
            self._before = before
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._before is not None:
            _set(self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        raise NotImplementedError


class interruptible(_Handled):
    """Within it, an interrupt raises KeyboardInterrupt at once, also where a kernel would only cancel the task."""

    _late = False

    def __enter__(self) -> interruptible:
        if not _raises(_present()):
            super().__enter__()
            if self._late:
                super().__exit__(None, None, None)
                raise KeyboardInterrupt
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        if self._late:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._swaps(frame):  # raised there, it would leave this handler behind
            self._late = True
        else:
            raise KeyboardInterrupt

    def _swaps(self, frame: FrameType | None) -> bool:
        if frame is not None and frame.f_code is _set.__code__:
            frame = frame.f_back
        return frame is not None and frame.f_code in _SWAPPING and frame.f_locals.get("self") is self


class unbroken(_Handled):
    """Within it, an interrupt is noted and waits for the end. With ``forget`` it is dropped: one ends a cell."""

    def __init__(self, *, forget: bool = False) -> None:
        self._heard = Heard()
        self._forget = forget

    def __enter__(self) -> Heard:
        super().__enter__()
        return self._heard

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        ended = isinstance(error, KeyboardInterrupt | asyncio.CancelledError)
        if self._heard.any and not self._forget and not ended:
            self._before(signal.SIGINT, None)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._heard.any = True


def blocking() -> contextlib.AbstractContextManager[Any]:
    """Around what keeps this thread for long: `interruptible`, where an interrupt would only cancel a task of the loop
    that is kept so; `cancelling` in a kernel's other tasks than that of the cell. A handler of the user's own stays.
    """
    if not _cancels(_present()):
        return contextlib.nullcontext()
    return cancelling() if _in_a_task_of_its_own() else interruptible()


@contextlib.contextmanager
def cancelling() -> Iterator[None]:
    """In a task of its own, where a KeyboardInterrupt would end the loop, and with it a kernel: an interrupt ends
    what runs at once, then it does what it would have done, and this task is cancelled.
    """
    try:
        with interruptible() if _cancels(_present()) else contextlib.nullcontext():
            yield
    except KeyboardInterrupt:
        if not (_cancels(_present()) and _passed_on()):
            raise
        raise asyncio.CancelledError from None


class _Before:
    """A handler of interrupts that leaves it to the one from before what to do."""

    def __init__(self, before: Any) -> None:
        self.before = before

    def __call__(self, *details: Any) -> None:
        self.before(*details)


class _Noting(_Before):
    """It tells who listens."""

    def __init__(self, before: Any) -> None:
        super().__init__(before)
        self.ears: list[Heard] = []

    def __call__(self, *details: Any) -> None:
        for heard in self.ears:
            heard.any = True
        super().__call__(*details)


class _Deaf(_Before):
    """It does nothing for a moment."""

    _until = 0.0

    def deafen(self) -> _Deaf:
        self._until = time.monotonic() + SAME
        return self

    def is_deaf(self) -> bool:
        return time.monotonic() < self._until

    def __call__(self, *details: Any) -> None:
        if not self.is_deaf():
            super().__call__(*details)


@contextlib.contextmanager
def listening() -> Iterator[Heard]:
    """Within it, also across awaits, an interrupt is noted and then handled as before. Answers may overlap.

    A kernel puts its own handler in place for each cell: what listens since an earlier one hears no more.
    """
    heard, before = Heard(), _lean(_present())
    if before is None:
        yield heard
        return
    noting = before if isinstance(before, _Noting) else _Noting(before)
    noting.ears.append(heard)
    try:
        _set(noting)
        yield heard
    finally:
        noting.ears.remove(heard)
        if not noting.ears and _present() is noting:
            _set(noting.before)


def _present() -> Any:
    """The handler of interrupts, where there is one that can be replaced for a while."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None


def _lean(handler: Any) -> Any:
    """``handler`` without those of ours in it that do nothing more: where nobody puts one back, they would pile up."""
    kept: list[_Before] = []
    deaf = False
    while isinstance(handler, _Before):
        if isinstance(handler, _Noting):
            needed = bool(handler.ears)
        else:
            needed = handler is _cell or (not deaf and isinstance(handler, _Deaf) and handler.is_deaf())
            deaf = deaf or needed
        if needed:
            kept.append(handler)
        handler = handler.before
    for each in reversed(kept):
        each.before, handler = handler, each
    return handler


def _set(handler: Any) -> bool:
    """Handle interrupts so from now on; False where Python cannot (another interpreter of the process)."""
    try:
        signal.signal(signal.SIGINT, handler)
    except (ValueError, OSError):
        return False
    return True


_SWAPPING = {getattr(kind, name).__code__ for kind in (_Handled, interruptible) for name in ("__enter__", "__exit__")}


def _raises(handler: Any) -> bool:
    """Whether all that a handler does is to raise KeyboardInterrupt."""
    if isinstance(handler, _Deaf) and handler is _cell:
        return True
    return handler is signal.default_int_handler or getattr(handler, "__func__", None) is interruptible._handle


def _cancels(handler: Any, whose: tuple[str, ...] = ("asyncio", "ipykernel")) -> bool:
    """Whether it is a kernel's or asyncio's handler, which cancels a task some turns of a loop later."""
    if isinstance(handler, _Before):
        return _cancels(handler.before, whose)
    function = getattr(handler, "func", handler)  # asyncio's is a partial
    return (getattr(function, "__module__", None) or "").partition(".")[0] in whose


def _in_a_task_of_its_own() -> bool:
    """Whether a kernel's loop runs this, and not IPython, which takes a KeyboardInterrupt of a cell for its end."""
    if not _cancels(_present(), ("ipykernel",)):
        return False
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "run_code" and "IPython" in frame.f_code.co_filename:
            return False
        frame = frame.f_back
    return True


def _passed_on() -> bool:
    """Let the handler do what it does; False where it would only raise KeyboardInterrupt."""
    handler = _present()
    if handler is None or _raises(handler):
        return False
    handler(signal.SIGINT, None)
    return True


def interrupt_main_thread() -> None:
    """As a kernel's interrupt: it also wakes a system call that waits, where the platform can."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def once() -> None:
    """An interrupt has ended the answer, or the cell is over: one that comes now shall not hit the kernel that ends it.

    A kernel that is interrupted between a cell and its reply never sends the reply. It puts its own handler back
    when it is done; code of the cell that goes on can be interrupted again in a moment.
    """
    before = _lean(_present())
    if before is not None:
        _set(_Deaf(before).deafen())
        if _cell is not None:
            _cell.deafen()


_cell: _Deaf | None = None


def attend() -> None:
    """A kernel is about to run a cell that awaits, and to put the present handler back before it replies: in its place
    stands one that `once` reaches.
    """
    global _cell
    if _present() is signal.default_int_handler:
        _cell = _Deaf(signal.default_int_handler)
        _set(_cell)
