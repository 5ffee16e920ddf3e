"""The handlers of interrupts that stand in for a while: none is left behind, and no interrupt is lost.

An interrupt is delivered at a chosen point by calling the handler that is in place there, with the frame of that point,
as Python does it between two instructions.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from mmsp_nb import interrupts
from mmsp_nb.interrupts import attend, interruptible, listening, once, unbroken


class Kernel:
    """A handler as a kernel has one: it raises nothing. ``heard`` counts."""

    heard = 0

    def __call__(self, *_: Any) -> None:
        self.heard += 1


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    before, found = signal.getsignal(signal.SIGINT), Kernel()
    signal.signal(signal.SIGINT, found)
    yield found
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def as_python_has_it() -> Iterator[None]:
    """`asyncio.run` hears interrupts only where nobody else has a handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def passed_at(context: Callable[[], AbstractContextManager[Any]], point: int) -> tuple[bool, bool]:
    """Enter and leave ``context``, with an interrupt before instruction ``point`` of the module of the contexts.

    Whether it was raised as a KeyboardInterrupt, and whether there was such an instruction.
    """
    seen = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal seen
        frame.f_trace_opcodes = True
        if event == "opcode":
            seen += 1
            if seen == point:
                sys.settrace(None)
                signal.getsignal(signal.SIGINT)(signal.SIGINT, frame)  # type: ignore[operator,misc]
        return trace

    def begin(frame: Any, event: str, argument: Any) -> Any:
        return trace(frame, event, argument) if frame.f_code.co_filename == interrupts.__file__ else None

    # the handlers themselves are no places: Python runs them after the instruction
    handlers = {interrupts.interruptible._handle.__code__, interrupts.unbroken._handle.__code__}
    sys.settrace(lambda frame, event, argument: None if frame.f_code in handlers else begin(frame, event, argument))
    try:
        with context():
            pass
    except KeyboardInterrupt:
        return True, True
    finally:
        sys.settrace(None)
    return False, seen >= point


@contextlib.contextmanager
def nested() -> Iterator[None]:
    with interruptible(), unbroken():
        yield


@pytest.mark.parametrize("context", [interruptible, unbroken, nested])
def test_an_interrupt_at_any_instruction_is_heard_once_and_leaves_no_handler_behind(
    kernel: Kernel, context: Callable[[], AbstractContextManager[Any]]
) -> None:
    tracing = sys.gettrace()
    try:
        outcomes = set()
        for point in range(1, 1000):
            kernel.heard = 0
            raised, there = passed_at(context, point)
            assert signal.getsignal(signal.SIGINT) is kernel, point
            if not there:
                break
            assert kernel.heard + raised == 1, point
            outcomes.add(raised)
        assert point > 20
        assert (True in outcomes) == (context is not unbroken)
    finally:
        sys.settrace(tracing)


def test_within_interruptible_one_raises_at_once(kernel: Kernel) -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        interrupt()
        raise AssertionError("not heard")
    assert (kernel.heard, signal.getsignal(signal.SIGINT)) == (0, kernel)


def test_what_is_unbroken_hears_it_and_the_handler_from_before_at_the_end(kernel: Kernel) -> None:
    with unbroken() as heard:
        interrupt()
        assert (heard.any, kernel.heard) == (True, 0)
    assert kernel.heard == 1


def test_an_error_of_what_is_unbroken_does_not_swallow_it(kernel: Kernel) -> None:
    with pytest.raises(ValueError), unbroken():
        interrupt()
        raise ValueError
    assert kernel.heard == 1


@pytest.mark.parametrize("ignored", [signal.SIG_IGN, signal.SIG_DFL])
def test_who_ignores_interrupts_goes_on_to(kernel: Kernel, ignored: Any) -> None:
    signal.signal(signal.SIGINT, ignored)
    with interruptible(), unbroken(), listening():
        assert signal.getsignal(signal.SIGINT) == ignored
    once()
    assert signal.getsignal(signal.SIGINT) == ignored


def test_those_that_overlap_all_hear_it_and_the_last_puts_the_handler_back(kernel: Kernel) -> None:
    first, second = listening(), listening()
    one, other = first.__enter__(), second.__enter__()
    interrupt()
    assert (one.any, other.any, kernel.heard) == (True, True, 1)
    first.__exit__(None, None, None)
    interrupt()
    assert kernel.heard == 2
    second.__exit__(None, None, None)
    assert signal.getsignal(signal.SIGINT) is kernel


def test_one_that_listens_since_an_earlier_cell_keeps_nobody_from_hearing(kernel: Kernel) -> None:
    early = listening()
    before = early.__enter__()
    next_cell = Kernel()
    signal.signal(signal.SIGINT, next_cell)  # as a kernel does it for each cell
    with listening() as heard:
        interrupt()
        assert (before.any, heard.any, kernel.heard, next_cell.heard) == (False, True, 0, 1)
    early.__exit__(None, None, None)
    assert signal.getsignal(signal.SIGINT) is next_cell


def test_a_second_one_right_after_an_answer_is_the_same_one(kernel: Kernel) -> None:
    once()
    interrupt()
    assert kernel.heard == 0


def test_the_handler_that_a_kernel_puts_back_after_a_cell_knows_of_its_end() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        attend()
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        kept = signal.signal(signal.SIGINT, Kernel())  # as a kernel does it around what is awaited
        once()
        signal.signal(signal.SIGINT, kept)
        interrupt()
    finally:
        signal.signal(signal.SIGINT, before)


def test_answers_that_end_beside_others_leave_a_cell_that_goes_on_as_it_was(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmsp_nb.interrupts.SAME", 0)
    for _ in range(3):
        with listening() as heard:
            once()  # another answer of the cell has ended by an interrupt
    with listening() as heard:
        interrupt()
    assert (heard.any, kernel.heard) == (True, 1)


def test_what_blocks_a_loop_of_asyncio_hears_it_at_once(as_python_has_it: None) -> None:
    async def main() -> None:
        with interrupts.blocking():
            interrupt()
            raise AssertionError("not heard")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


def test_a_handler_of_the_users_own_stays(kernel: Kernel) -> None:
    with interrupts.blocking():
        interrupt()
    assert kernel.heard == 1


def test_in_a_task_of_its_own_the_task_is_cancelled_and_the_loop_told(as_python_has_it: None) -> None:
    ends = []

    async def child() -> None:
        try:
            with interrupts.cancelling():
                interrupt()
        except BaseException as error:
            ends.append(type(error))
            raise

    async def main() -> None:
        await asyncio.gather(child())

    with pytest.raises(KeyboardInterrupt):  # asyncio.run was told, and says so at its end
        asyncio.run(main())
    assert ends == [asyncio.CancelledError]
