import asyncio
import gc
import threading

import pytest
from exchange import post, read

from mmsp_nb.protocol.abort import AbortSignal
from mmsp_nb.protocol.errors import AbortError
from mmsp_nb.testing import Gate, Reply
from mmsp_nb.transport.http import Transport
from mmsp_nb.transport.interrupt import Interrupt


async def aborted(task, reason):
    with pytest.raises(AbortError) as caught:
        await asyncio.wait_for(task, 10)
    assert caught.value.reason == reason
    assert isinstance(caught.value, asyncio.CancelledError)


async def test_an_aborted_signal_sends_nothing(provider, transport):
    signal = AbortSignal()
    signal.abort("early")
    await aborted(read(transport, post(provider.url()), signal=signal), "early")
    assert provider.requests == []


@pytest.mark.parametrize("from_thread", [False, True], ids=["same thread", "other thread"])
@pytest.mark.parametrize(
    "reply",
    [
        lambda gate: Reply([b"data: 1\n\n"], before=gate),
        lambda gate: Reply([gate, b"data: 1\n\n"]),
        lambda gate: Reply([b"data: 1\n\n", gate]),
        lambda gate: Reply([gate, b"no"], status=400),
    ],
    ids=["before the head", "before the first byte", "within the stream", "within a refusal"],
)
async def test_an_abort_ends_a_pending_wait_at_once(provider, transport, reply, from_thread):
    gate, signal = Gate(), AbortSignal()
    provider.add(reply(gate))
    task = asyncio.ensure_future(read(transport, post(provider.url()), signal=signal))
    await gate.wait_arrived()
    if from_thread:
        thread = threading.Thread(target=signal.abort, args=("stop",))
        thread.start()
        await aborted(task, "stop")
        thread.join()
    else:
        signal.abort("stop")
        await aborted(task, "stop")
    await asyncio.to_thread(provider.wait_until_idle)
    assert provider.last.left.is_set()


async def test_an_abort_while_nobody_reads_closes_the_connection_and_the_next_read_raises(provider, transport):
    gate, signal = Gate(), AbortSignal()
    provider.add(Reply([b"data: 1\n\n", gate]))
    async with await transport.send(post(provider.url()), client="C", signal=signal) as response:
        assert await response.batch() == [(None, b"1")]
        signal.abort()
        await asyncio.to_thread(provider.wait_until_idle)
        await aborted(response.batch(), None)


async def test_an_abort_ends_the_wait_for_a_retry(provider):
    waiting = asyncio.Event()

    async def sleep(seconds):
        waiting.set()
        await asyncio.Event().wait()

    signal = AbortSignal()
    provider.add(Reply.json({}, 503))
    task = asyncio.ensure_future(read(Transport(sleep=sleep), post(provider.url()), signal=signal))
    await waiting.wait()
    signal.abort(7)
    await aborted(task, 7)
    assert len(provider.requests) == 1


async def test_an_abort_after_the_end_changes_nothing(provider, transport):
    signal = AbortSignal()
    provider.add(Reply([b"data: 1\n\n"]))
    async with await transport.send(post(provider.url()), client="C", signal=signal) as response:
        events = [event async for event in response.events()]
        signal.abort()
    assert events == [(None, b"1")]


async def test_the_task_is_not_left_cancelled(provider, transport):
    gate, signal = Gate(), AbortSignal()
    provider.add(Reply([b"data: 1\n\n", gate]))

    async def consume():
        with pytest.raises(AbortError):
            await read(transport, post(provider.url()), signal=signal)
        await asyncio.sleep(0)
        return asyncio.current_task().cancelling()

    task = asyncio.ensure_future(consume())
    await gate.wait_arrived()
    signal.abort()
    assert await task == 0


async def test_a_genuine_cancellation_stays_one_and_closes_the_connection(provider, transport):
    gate = Gate()
    provider.add(Reply([b"data: 1\n\n", gate]))
    task = asyncio.ensure_future(read(transport, post(provider.url()), signal=AbortSignal()))
    await gate.wait_arrived()
    task.cancel("by hand")
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert not isinstance(caught.value, AbortError)
    assert task.cancelled()
    await asyncio.to_thread(provider.wait_until_idle)


async def test_cancelled_and_aborted_together_is_cancelled(provider, transport):
    gate, signal = Gate(), AbortSignal()
    provider.add(Reply([b"data: 1\n\n", gate]))
    task = asyncio.ensure_future(read(transport, post(provider.url()), signal=signal))
    await gate.wait_arrived()
    signal.abort()
    await asyncio.sleep(0)  # lets the abort reach the task
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert not isinstance(caught.value, AbortError)


async def test_a_time_limit_around_the_read_works(provider, transport):
    gate = Gate()
    provider.add(Reply([b"data: 1\n\n", gate]))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await read(transport, post(provider.url()), signal=AbortSignal())
    await asyncio.to_thread(provider.wait_until_idle)


async def test_leaving_the_block_early_has_closed_the_connection(provider, transport):
    provider.add(Reply([b"data: 1\n\n"]).endless(b": ping\n\n"))
    async with await transport.send(post(provider.url()), client="C") as response:
        await response.batch()
    await asyncio.to_thread(provider.wait_until_idle)


async def test_a_finished_call_leaves_no_listener_on_the_signal(provider, transport):
    signal = AbortSignal()
    provider.add(Reply([b"data: 1\n\n"]), Reply.json({}, 400))
    await read(transport, post(provider.url()), signal=signal)
    with pytest.raises(ValueError):
        await read(transport, post(provider.url()), signal=signal)
    gc.collect()
    assert not [thing for thing in gc.get_referrers(signal) if isinstance(thing, Interrupt)]
    assert signal._callbacks == {}


async def test_a_swallowed_cancellation_still_becomes_an_abort():
    signal = AbortSignal()

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "swallowed"

    async def call():
        with Interrupt(signal):
            await stubborn()

    task = asyncio.ensure_future(call())
    await asyncio.sleep(0)
    signal.abort("x")
    await aborted(task, "x")


def test_an_abort_after_the_loop_is_closed_is_harmless():
    signal = AbortSignal()

    async def make():
        return Interrupt(signal)

    interrupt = asyncio.run(make())
    signal.abort()
    with pytest.raises(AbortError):
        interrupt.check()
