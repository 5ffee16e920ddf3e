"""Clients on several loops, threads and processes, and what the end of the interpreter is like."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mmsp_nb import AutoLLMClient, Conversation
from mmsp_nb.testing import FakeProvider, Gate, Reply, encode, parts, streams


def user(text: str) -> dict:
    return {"role": "user", "content_items": [{"type": "text.done", "text": text}]}


async def said(client: AutoLLMClient) -> str:
    events = [event async for event in client.streaming_response([user("hello")], {})]
    message = client.concat_uni_events_to_uni_message(events)
    return "".join(item["text"] for item in message["content_items"])


@pytest.fixture
def provider():
    with FakeProvider() as provider:
        provider.when("/chat/completions", streams.reply("text", "chat"))
        yield provider


def make(provider: FakeProvider) -> AutoLLMClient:
    return AutoLLMClient("a-model", "k-test", provider.url("/v1"), "openai-chat")


def test_one_client_serves_two_event_loops_one_after_the_other(provider, recwarn):
    client = make(provider)
    assert asyncio.run(said(client)) == asyncio.run(said(client))
    provider.wait_until_idle()
    assert not [warning for warning in recwarn if warning.category is ResourceWarning]


def test_a_stateful_client_goes_on_in_the_next_event_loop(provider):
    client = make(provider)

    async def turn() -> None:
        async for _ in client.streaming_response_stateful(user("hello"), {}):
            pass

    asyncio.run(turn())
    asyncio.run(turn())
    assert len(client.get_history()) == 4


def test_one_client_is_used_by_many_threads_at_once(provider):
    client = make(provider)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: asyncio.run(said(client)), range(32)))
    assert len(set(answers)) == 1 and len(provider.requests) == 32
    provider.wait_until_idle()


def test_conversations_may_be_asked_from_threads(provider):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: Conversation(client=make(provider)).ask("hello").text, range(16)))
    assert len(set(answers)) == 1 and answers[0]


def asked(chat: Conversation, results) -> None:
    results.put(chat.ask("from the child").text)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_child_gets_a_loop_of_its_own(provider):
    chat = Conversation(client=make(provider))
    chat.ask("the parent's loop runs now")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=asked, args=(chat, results))
    child.start()
    try:
        assert results.get(timeout=20) == chat.ask("and still does").text
    finally:
        child.join(10)
    assert child.exitcode == 0


def test_it_works_after_someone_else_has_applied_nest_asyncio(script, provider):
    done = script(
        f"""
        import asyncio, nest_asyncio
        nest_asyncio.apply()
        from mmsp_nb import AutoLLMClient, Conversation
        client = AutoLLMClient("a-model", "k-test", {provider.url("/v1")!r}, "openai-chat")
        async def main():
            events = [e async for e in client.streaming_response(
                [{{"role": "user", "content_items": [{{"type": "text.done", "text": "x"}}]}}], {{}})]
            print(events[-1]["finish_reason"])
            print(Conversation(client=client).ask("nested").finish_reason)
            asyncio.run(asyncio.sleep(0))
        asyncio.run(main())
        """
    )
    assert done.stdout.split() == ["stop", "stop"], done.stderr
    assert done.returncode == 0 and done.stderr == ""


STREAMING = """
import sys, threading
from mmsp_nb import AutoLLMClient, loop
client = AutoLLMClient("a-model", "k-test", {url!r}, "openai-chat")
begun = threading.Event()
async def read():
    message = {{"role": "user", "content_items": [{{"type": "text.done", "text": "x"}}]}}
    async for event in client.streaming_response_stateful(message, {{}}):
        begun.set()
job = loop.submit(read())
assert begun.wait(10)
print("streaming", flush=True)
{end}
"""


@pytest.fixture
def held():
    """A provider whose answer stops in the middle until the gate is opened."""
    gate = Gate()
    frames = streams.DIALECTS["chat"].frames([parts.text("one ", "two ", "three")])
    with FakeProvider() as provider:
        begun = sum(map(len, encode(frames[:2])))
        provider.when("/chat/completions", Reply.stream(frames).hold(gate, begun))
        yield provider
        gate.open()


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)"])
def test_the_interpreter_ends_at_once_and_quietly_in_mid_stream(script, held, end):
    started = time.monotonic()
    done = script(STREAMING.format(url=held.url("/v1"), end=end))
    assert (done.returncode, done.stdout, done.stderr) == (0, "streaming\n", "")
    assert time.monotonic() - started < 15
    held.wait_until_idle()


def test_an_error_at_the_end_is_the_only_thing_that_is_said(script, held):
    done = script(STREAMING.format(url=held.url("/v1"), end="raise ValueError('the user has made a mistake')"))
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1 and done.stderr.rstrip().endswith("the user has made a mistake")


def test_a_finished_event_loop_leaves_no_thread_behind(provider):
    client = make(provider)
    before = threading.active_count()
    for _ in range(3):
        asyncio.run(said(client))
    assert threading.active_count() == before
