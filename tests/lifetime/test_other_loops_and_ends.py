"""Other event loops, calls that meet, streams that are dropped half-way, and kernels that are started anew."""

from __future__ import annotations

import asyncio
import gc
import json
import sys

import pytest
from test_loops_and_processes import held, make, provider, user  # noqa: F401 - fixtures are found by name

from mmsp_nb import ConcurrentCallError
from mmsp_nb.testing import FakeProvider

# ruff: noqa: F811


async def test_the_second_of_two_tasks_is_told_and_the_first_goes_on(held: FakeProvider) -> None:
    client = make(held)
    first = client.streaming_response_stateful(user("one"), {})
    begun = [await anext(first)]
    with pytest.raises(ConcurrentCallError, match="several clients"):
        await asyncio.create_task(anext(client.streaming_response_stateful(user("two"), {})))
    await first.aclose()
    assert begun and client.get_history() == []
    await asyncio.to_thread(held.wait_until_idle)


async def test_a_call_of_a_loop_that_is_over_does_not_block_the_client(held: FakeProvider) -> None:
    client = make(held)
    kept = []

    async def begin() -> None:
        stream = client.streaming_response_stateful(user("one"), {})
        await anext(stream)
        kept.append(stream)  # somebody keeps it, but its loop ends

    await asyncio.to_thread(asyncio.run, begin())
    other = client.streaming_response_stateful(user("two"), {})
    await anext(other)
    await other.aclose()


async def test_a_stream_that_nobody_keeps_is_closed(held: FakeProvider) -> None:
    client = make(held)
    stream = client.streaming_response(  # no `async with`, no aclose
        [user("one")], {}
    )
    await anext(stream)
    del stream
    gc.collect()
    assert await asyncio.to_thread(held.last.left.wait, 10)
    await asyncio.to_thread(held.wait_until_idle)


DROPPED = """
import asyncio, gc, sys
from mmsp_nb import Agent, AutoLLMClient
client = AutoLLMClient("a-model", "k-test", {url!r}, "openai-chat")
message = {{"role": "user", "content_items": [{{"type": "text.done", "text": "x"}}]}}
async def main():
    streams = [client.streaming_response([message], {{}}) for _ in range(3)] + [Agent(client).run("x")]
    asyncio.get_running_loop().slow_callback_duration = 60  # seconds: a busy machine is no fault
    for stream in streams:
        await anext(stream)
    await anext(streams[-1])
    how = {how!r}
    if how == "kept":
        await streams.pop().aclose()  # asyncio itself trips over generators within generators
    if how == "dropped":
        del stream, streams
        gc.collect()
        await asyncio.sleep(0)
    elif how == "kept":
        globals()["kept"] = streams
    else:
        tasks = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0.01)
asyncio.run(main(), debug=True)
print("over")
"""


@pytest.mark.parametrize("how", ["dropped", "kept", "awaited"])
def test_a_loop_that_ends_in_mid_stream_says_nothing(script, held: FakeProvider, how: str) -> None:
    """No warning of a task that was destroyed or a socket that was left, even in debug mode."""
    done = script(DROPPED.format(url=held.url("/v1"), how=how))
    assert (done.stdout, done.stderr, done.returncode) == ("over\n", "", 0)
    held.wait_until_idle()


UVLOOP = """
import asyncio, uvloop
from mmsp_nb import AbortError, AbortSignal, AutoLLMClient, Conversation
client = AutoLLMClient("a-model", "k-test", {url!r}, "openai-chat")
message = {{"role": "user", "content_items": [{{"type": "text.done", "text": "x"}}]}}
async def main():
    events = [event async for event in client.streaming_response_stateful(message, {{}})]
    print(type(asyncio.get_running_loop()).__module__, events[-1]["finish_reason"], len(client.get_history()))
    print((await Conversation(client=client.sibling()).ask_async("x")).finish_reason)
    signal = AbortSignal()
    try:
        async for _ in client.streaming_response([message], {{}}, signal):
            signal.abort()
    except AbortError:
        print("aborted")
for _ in range(2):
    uvloop.run(main())
    client.clear_history()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop for Windows")
def test_it_works_on_uvloop(script, provider: FakeProvider) -> None:
    pytest.importorskip("uvloop", reason="uvloop is not installed: pip install uvloop")
    done = script(UVLOOP.format(url=provider.url("/v1")))
    assert done.stdout.split() == ["uvloop", "stop", "2", "stop", "aborted"] * 2, done.stderr
    assert (done.stderr, done.returncode) == ("", 0)
    provider.wait_until_idle()


@pytest.mark.kernel
def test_a_kernel_that_is_started_anew_leaves_no_connection_and_answers_at_once(held: FakeProvider) -> None:
    from jupyter_client import KernelManager

    code = f"""
%load_ext mmsp_nb
from mmsp_nb import AutoLLMClient, Conversation
chat = Conversation(client=AutoLLMClient("a-model", "k-test", {held.url("/v1")!r}, "openai-chat"))
_ = get_ipython().run_line_magic("mmsp", "use chat")
"""
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        assert client.execute_interactive(code, timeout=60, output_hook=lambda _: None)["content"]["status"] == "ok"
        client.execute("%%mmsp\nA question whose answer stops half-way")
        [request] = held.wait_for_requests(1, timeout=30)
        manager.restart_kernel(now=True)
        assert request.left.wait(20), "the provider still waits for somebody who has gone"
        held.wait_until_idle()
        held.reset()
        from mmsp_nb.testing import streams

        held.when("/chat/completions", streams.reply("text", "chat"))
        client.wait_for_ready(timeout=60)
        seen: list[str] = []
        assert client.execute_interactive(code, timeout=60, output_hook=lambda _: None)["content"]["status"] == "ok"
        reply = client.execute_interactive(
            "%%mmsp\nAnd now?", timeout=60, output_hook=lambda message: seen.append(json.dumps(message["content"]))
        )
        assert reply["content"]["status"] == "ok"
        assert "High tide in Brest" in "".join(seen)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
