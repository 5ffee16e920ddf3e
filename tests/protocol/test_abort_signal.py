"""AbortSignal: once, from anywhere."""

from __future__ import annotations

import asyncio
import logging
import signal as signals
import threading

import pytest

from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import AbortError


def test_a_new_signal_is_not_aborted() -> None:
    signal = AbortSignal()
    signal.throw_if_aborted()
    assert not signal.aborted
    assert signal.reason is None


def test_only_the_first_abort_counts() -> None:
    signal = AbortSignal()
    signal.abort("first")
    signal.abort("second")
    assert signal.aborted
    assert signal.reason == "first"
    with pytest.raises(AbortError) as caught:
        signal.throw_if_aborted()
    assert caught.value.args == ("first",)
    assert caught.value.reason == "first"
    assert isinstance(caught.value, asyncio.CancelledError)


def test_an_abort_without_a_reason_raises_without_an_argument() -> None:
    signal = AbortSignal()
    signal.abort()
    with pytest.raises(AbortError) as caught:
        signal.throw_if_aborted()
    assert caught.value.args == ()


def test_callbacks_run_once_in_order_unless_they_were_unsubscribed() -> None:
    signal, seen = AbortSignal(), []
    signal.on_abort(lambda: seen.append("a"))
    unsubscribe = signal.on_abort(lambda: seen.append("b"))
    signal.on_abort(lambda: seen.append(signal.reason))
    unsubscribe()
    unsubscribe()
    signal.abort("why")
    signal.abort()
    assert seen == ["a", "why"]


def test_the_same_callback_may_be_subscribed_twice() -> None:
    signal, seen = AbortSignal(), []
    unsubscribe = signal.on_abort(lambda: seen.append(1))
    signal.on_abort(lambda: seen.append(1))
    unsubscribe()
    signal.abort()
    assert seen == [1]


def test_a_callback_after_the_abort_runs_at_once() -> None:
    signal, seen = AbortSignal(), []
    signal.abort()
    signal.on_abort(lambda: seen.append(1))()
    assert seen == [1]


def test_a_failing_callback_keeps_no_other_from_running(caplog: pytest.LogCaptureFixture) -> None:
    signal, seen = AbortSignal(), []

    def fail() -> None:
        raise RuntimeError("boom")

    signal.on_abort(fail)
    signal.on_abort(lambda: seen.append(1))
    with caplog.at_level(logging.ERROR):
        signal.abort()
    assert seen == [1]
    assert "boom" in caplog.text


def test_a_callback_may_use_the_signal() -> None:
    signal, seen = AbortSignal(), []
    signal.on_abort(lambda: signal.on_abort(lambda: seen.append(signal.aborted)))
    signal.on_abort(lambda: signal.abort("again"))
    signal.abort("first")
    assert seen == [True]
    assert signal.reason == "first"


async def test_waiting_ends_with_the_abort_from_another_thread() -> None:
    signal = AbortSignal()
    waiting = [asyncio.ensure_future(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    thread = threading.Thread(target=signal.abort)
    thread.start()
    await asyncio.wait_for(asyncio.gather(*waiting), 10)
    thread.join()


async def test_waiting_for_what_was_aborted_ends_at_once() -> None:
    signal = AbortSignal()
    signal.abort()
    await asyncio.wait_for(signal.wait(), 10)


async def test_a_wait_that_is_cancelled_leaves_no_callback_behind() -> None:
    signal = AbortSignal()
    task = asyncio.ensure_future(signal.wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not signal._callbacks


def test_one_signal_serves_waits_in_several_loops() -> None:
    signal, ready = AbortSignal(), threading.Barrier(4)

    async def wait() -> None:
        task = asyncio.ensure_future(signal.wait())
        await asyncio.sleep(0)
        ready.wait(10)
        await asyncio.wait_for(task, 10)

    threads = [threading.Thread(target=asyncio.run, args=(wait(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    ready.wait(10)
    signal.abort()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_a_loop_that_was_closed_meanwhile_does_no_harm() -> None:
    signal, seen = AbortSignal(), []
    loop = asyncio.new_event_loop()
    waiting = signal.wait()
    task = loop.create_task(waiting)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    signal.on_abort(lambda: seen.append(1))
    signal.abort()
    assert seen == [1]
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    waiting.close()


def test_of_many_threads_that_abort_one_wins_and_callbacks_run_once() -> None:
    signal, seen, start = AbortSignal(), [], threading.Barrier(8)
    signal.on_abort(lambda: seen.append(signal.reason))

    def abort(number: int) -> None:
        start.wait(10)
        signal.abort(number)

    threads = [threading.Thread(target=abort, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert seen == [signal.reason]


@pytest.mark.skipif(not hasattr(signals, "SIGUSR1"), reason="needs POSIX signals")
def test_a_signal_handler_may_abort_while_the_thread_it_interrupts_holds_the_lock() -> None:
    signal = AbortSignal()
    old = signals.signal(signals.SIGUSR1, lambda *_: signal.abort("handler"))
    try:
        with signal._lock:
            signals.raise_signal(signals.SIGUSR1)
    finally:
        signals.signal(signals.SIGUSR1, old)
    assert signal.reason == "handler"


def test_it_says_in_its_repr_whether_it_was_aborted() -> None:
    signal = AbortSignal()
    assert repr(signal) == "<AbortSignal>"
    signal.abort("x")
    assert repr(signal) == "<AbortSignal aborted, reason='x'>"
