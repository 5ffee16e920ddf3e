"""Section by section the table of what an abort does at which moment."""

import asyncio
import gc
import threading
from contextlib import aclosing

import pytest
from talk import collect, kinds, text_of, user

from mmsp_nb import AbortError, AbortSignal, InvalidMessageError
from mmsp_nb.testing import Gate, Reply, streams

FRAMES = streams.reply("text", "chat").body  # role, 4 pieces of text, finish, usage, [DONE]
PIECES = ["High ", "tide in Brest", " — 6,4 m", " 🌊."]


@pytest.fixture(params=["stateless", "stateful"])
def call(request, client):
    """Starts a call either way. The history must stay empty in all that follows."""

    def start(signal, message=None):
        message = message or user("hi")
        if request.param == "stateless":
            return client.streaming_response([message], signal=signal)
        return client.streaming_response_stateful(message, signal=signal)

    start.stateful = request.param == "stateful"
    yield start
    if start.stateful:
        assert client.get_history() == []


async def raises_abort(step, reason=None):
    with pytest.raises(AbortError) as caught:
        await asyncio.wait_for(step, 10)
    assert caught.value.reason == reason
    assert caught.value.args == (() if reason is None else (reason,))


async def test_before_the_first_step(call, provider):
    signal = AbortSignal()
    signal.abort("no")
    await raises_abort(anext(call(signal)), "no")
    assert provider.requests == []


async def test_before_the_first_step_an_empty_message_is_told_first(call):
    signal = AbortSignal()
    signal.abort()
    with pytest.raises(InvalidMessageError) as caught:
        await anext(call(signal, {"role": "user", "content_items": []}))
    assert caught.value.message_index == 0


@pytest.mark.parametrize("where", ["other task", "other thread"])
async def test_while_a_read_is_pending(call, provider, where):
    gate, signal, seen = Gate(), AbortSignal(), []
    provider.add(Reply([*FRAMES[:2], gate]))
    task = asyncio.ensure_future(collect(call(signal), seen))
    await gate.wait_arrived()
    while not seen:
        await asyncio.sleep(0)
    if where == "other task":
        signal.abort("stop")
    else:
        threading.Thread(target=signal.abort, args=("stop",)).start()
    await raises_abort(task, "stop")
    await asyncio.to_thread(provider.wait_until_idle)
    assert [text_of(event) for event in seen] == PIECES[:1]


async def test_while_the_answer_has_not_begun(call, provider):
    gate, signal = Gate(), AbortSignal()
    provider.add(Reply(FRAMES, before=gate))
    task = asyncio.ensure_future(collect(call(signal)))
    await gate.wait_arrived()
    signal.abort()
    await raises_abort(task)
    await asyncio.to_thread(provider.wait_until_idle)


async def test_while_the_consumer_is_idle_between_events(call, provider):
    gate, signal = Gate(), AbortSignal()
    provider.add(Reply([*FRAMES[:2], gate]))
    stream = call(signal)
    assert text_of(await anext(stream)) == "High "
    signal.abort("idle")
    await asyncio.to_thread(provider.wait_until_idle)  # closed in the background, nobody reads
    await raises_abort(anext(stream), "idle")


async def test_between_provider_events_that_came_together_the_later_ones_are_not_delivered(call, provider):
    provider.add(Reply([b"".join(FRAMES)]))
    signal = AbortSignal()
    stream = call(signal)
    assert text_of(await anext(stream)) == "High "
    signal.abort()
    await raises_abort(anext(stream))


async def test_while_the_events_of_one_provider_event_are_delivered_the_rest_of_them_comes(call, provider):
    whole = streams.reply("tools", "chat", calls="whole", one_chunk=True).body
    provider.add(Reply([b"".join(whole)]))
    signal, seen = AbortSignal(), []
    with pytest.raises(AbortError):
        async for event in call(signal):
            seen.append(event)
            if event["content_items"][0]["type"] == "thinking.done":
                signal.abort()
    assert kinds(seen)[-3:] == ["tool_call.delta", "tool_call.done", "tool_call.delta"]


async def test_after_the_providers_stream_has_ended_before_the_last_done(call, provider):
    text, rest = FRAMES[:5], FRAMES[5:]
    gate, signal, seen = Gate(), AbortSignal(), []
    provider.add(Reply([b"".join(text), gate, b"".join(rest)]))
    async with aclosing(call(signal)) as stream:
        for _ in PIECES:
            seen.append(text_of(await anext(stream)))
        provider.last.done.clear()
        gate.open()
        await asyncio.to_thread(provider.last.done.wait)
        signal.abort()
        await raises_abort(anext(stream))
    assert seen == PIECES


async def test_while_the_last_done_is_delivered(call, provider, client):
    provider.add(Reply(FRAMES))
    signal, seen = AbortSignal(), []
    stream = call(signal)
    async for event in stream:
        seen.append(event)
        if event["content_items"][0]["type"] == "text.done":
            signal.abort("late")
            break
    if call.stateful:
        await raises_abort(anext(stream), "late")
    else:
        assert (await anext(stream))["event_type"] == "stop"


async def test_after_the_stop_an_abort_has_no_effect(client, provider):
    provider.add(Reply(FRAMES))
    signal = AbortSignal()
    async for event in client.streaming_response_stateful(user("hi"), signal=signal):
        if event["event_type"] == "stop":
            signal.abort()
    assert len(client.get_history()) == 2


async def test_an_aborted_call_holds_the_client_no_longer(client, provider):
    gate, signal = Gate(), AbortSignal()
    provider.add(Reply([*FRAMES[:2], gate]), Reply(FRAMES))
    first = client.streaming_response_stateful(user("one"), signal=signal)
    await anext(first)
    signal.abort()
    await collect(client.streaming_response_stateful(user("two")))
    await raises_abort(anext(first))
    assert [m["content_items"][0]["text"] for m in client.get_history()] == ["two", "".join(PIECES)]


async def test_one_signal_may_end_several_calls_and_is_left_clean(client, provider):
    gate, signal = Gate(), AbortSignal()
    provider.add(Reply([*FRAMES[:2], gate]), Reply([*FRAMES[:2], gate]), Reply(FRAMES))
    tasks = [asyncio.ensure_future(collect(client.streaming_response([user("x")], signal=signal))) for _ in range(2)]
    await asyncio.to_thread(provider.wait_for_requests, 2)
    signal.abort()
    for task in tasks:
        await raises_abort(task)
    fresh = AbortSignal()
    await collect(client.streaming_response([user("x")], signal=fresh))
    assert fresh._callbacks == {}


async def test_a_cancelled_task_is_cancelled_and_closes_the_connection(call, provider):
    gate = Gate()
    provider.add(Reply([*FRAMES[:2], gate]))
    task = asyncio.ensure_future(collect(call(AbortSignal())))
    await gate.wait_arrived()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert not isinstance(caught.value, AbortError)
    await asyncio.to_thread(provider.wait_until_idle)


async def test_closing_the_iterator_has_closed_the_connection(call, provider):
    provider.add(Reply(FRAMES[:2]).endless(b": ping\n\n"))
    stream = call(None)
    await anext(stream)
    await stream.aclose()
    await asyncio.to_thread(provider.wait_until_idle)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_leaving_the_loop_closes_the_connection_soon(call, provider):
    provider.add(Reply(FRAMES[:2]).endless(b": ping\n\n"))
    async for _ in call(None):
        break
    await asyncio.to_thread(provider.wait_until_idle)


@pytest.mark.parametrize("signal", ["stop", True, asyncio.Event])
def test_a_signal_that_is_none_is_refused(client, signal):
    with pytest.raises(TypeError, match="AbortSignal"):
        client.streaming_response([user("x")], signal=signal)


def test_leaving_the_loop_as_the_last_thing_of_a_run_makes_no_noise(client, provider, caplog):
    provider.when("/chat/completions", Reply(FRAMES[:2]).endless(b": ping\n\n"))

    async def leave():
        async for _ in client.streaming_response_stateful(user("hi")):
            break

    for _ in range(3):
        asyncio.run(leave())
        gc.collect()
        provider.wait_until_idle()
    assert [record for record in caplog.records if record.name == "asyncio" and record.levelname != "DEBUG"] == []
