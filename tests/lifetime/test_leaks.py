"""What is left behind by many answers: nothing."""

from __future__ import annotations

import asyncio
import gc
import threading

import psutil

from mmsp_nb import AbortSignal, AutoLLMClient, Conversation, loop
from mmsp_nb.protocol.errors import AbortError

ANSWERS = 1_000
WARM = 20
QUESTION = {"role": "user", "content_items": [{"type": "text.done", "text": "hello"}]}


def sockets() -> int:
    """Open sockets of this process, the server's side included: the demo model is served from here."""
    return len(psutil.Process().net_connections("inet"))


async def tasks() -> int:
    return len(asyncio.all_tasks())


def counts() -> dict[str, int]:
    """Threads, tasks of the background loop (with the counting one), sockets."""
    gc.collect()
    return {
        "threads": threading.active_count(),
        "tasks": loop.submit(tasks()).result(10),
        "sockets": sockets(),
    }


def left_over(before: dict[str, int]) -> dict[str, int]:
    """What there is more of than ``before``, once the server has closed its side; waits five seconds at most."""
    done = threading.Event()
    for _ in range(100):
        now = counts()
        more = {key: now[key] - before[key] for key in before if now[key] > before[key]}
        if not more:
            break
        done.wait(0.05)
    return more


async def answer(client: AutoLLMClient) -> str:
    stop = ""
    async for event in client.streaming_response([dict(QUESTION)], {"max_tokens": 5}):  # type: ignore[list-item]
        stop = event["finish_reason"] or stop
    return stop


def test_a_thousand_answers_leave_no_thread_no_task_and_no_socket() -> None:
    async def many(client: AutoLLMClient, number: int) -> list[str]:
        return [await answer(client) for _ in range(number)]

    client = AutoLLMClient("demo")
    loop.submit(many(client, WARM)).result(60)
    before = counts()
    stops = loop.submit(many(client, ANSWERS)).result(120)
    assert len(stops) == ANSWERS and all(stops)
    assert left_over(before) == {}


def test_conversations_that_are_dropped_leave_nothing() -> None:
    def talk() -> None:
        chat = Conversation("demo")
        chat.ask("hello")
        chat.fork().ask("and again")

    talk()
    before = counts()
    for _ in range(25):
        talk()
    assert left_over(before) == {}


def test_streams_that_are_left_aborted_or_dropped_leave_nothing() -> None:
    async def left(client: AutoLLMClient) -> None:
        async for _ in client.streaming_response([dict(QUESTION)]):  # type: ignore[list-item]
            break

    async def aborted(client: AutoLLMClient) -> None:
        signal = AbortSignal()
        try:
            async for _ in client.streaming_response([dict(QUESTION)], None, signal):  # type: ignore[list-item]
                signal.abort("enough")
        except AbortError:
            pass

    async def cancelled(client: AutoLLMClient) -> None:
        task = asyncio.ensure_future(answer(client))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    async def all_of_them(number: int) -> None:
        client = AutoLLMClient("demo")
        for _ in range(number):
            await left(client)
            await aborted(client)
            await cancelled(client)

    loop.submit(all_of_them(3)).result(30)
    before = counts()
    loop.submit(all_of_them(40)).result(60)
    assert left_over(before) == {}
