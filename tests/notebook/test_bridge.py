"""The bridge by itself: the mailbox, both ways of waiting, and one loop where there are no threads."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import scripted

from mmsp_nb.agent import Agent
from mmsp_nb.notebook import bridge
from mmsp_nb.notebook.bridge import Mailbox, Session
from mmsp_nb.notebook.output import LiveOutput
from mmsp_nb.notebook.stretch import Message


def session_of(client: Any, *tools: Callable[..., Any]) -> tuple[Session, list[Message]]:
    """A session over an agent, and what it draws."""
    sent: list[Message] = []

    def stream(execute: Any, approve: Any = None) -> AsyncIterator[dict[str, Any]]:
        return Agent(client, tools, execute=execute).run("go")

    return Session(stream, LiveOutput(sent.append, now=time.monotonic())), sent  # type: ignore[arg-type]


def texts(sent: list[Message]) -> str:
    last = {message.display_id: message for message in sent}
    return "".join(m.data.get("text/plain", "") for m in last.values() if m.metadata["mmsp"]["kind"] == "text")


def test_items_come_out_in_order_and_only_urgent_ones_wake_a_drowsy_consumer() -> None:
    box, seen = Mailbox(), list[int]()
    box.drowsy = True
    for number in range(3):
        box.put(lambda number=number: seen.append(number), urgent=False)
    begin = time.monotonic()
    box.wait(0.05)
    assert time.monotonic() - begin >= 0.05
    box.put(lambda: seen.append(3))
    box.wait(10)
    for work in box.take():
        work()
    assert seen == [0, 1, 2, 3]
    box.drowsy = False
    box.put(lambda: None, urgent=False)
    box.wait(10)


async def test_an_awaiting_consumer_is_woken_from_another_thread() -> None:
    box = Mailbox()
    threading.Timer(0.02, lambda: box.put(lambda: None)).start()
    begin = time.monotonic()
    await box.wait_async(10)
    assert time.monotonic() - begin < 5
    assert len(box) == 1


async def test_an_awaiting_wait_can_be_cancelled() -> None:
    task = asyncio.ensure_future(Mailbox().wait_async(10))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("way", ["blocking", "awaiting", "without threads"])
def test_tools_run_on_the_thread_that_waits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def sync() -> str:
        "Sync"
        ran.append(threading.current_thread().name)
        return "one"

    async def later() -> str:
        "Async"
        ran.append(threading.current_thread().name)
        return "two"

    client = scripted.Scripted([scripted.call("sync"), scripted.call("later")], [scripted.text("Done.")])
    if way == "without threads":
        monkeypatch.setattr(bridge, "THREADS", False)
        monkeypatch.setattr(bridge.loop, "submit", lambda *_: pytest.fail("a thread was used"))
    session, sent = session_of(client, sync, later)
    if way == "blocking":
        session.run()
    else:
        asyncio.run(session.arun())
    session._output.close(time.monotonic())  # type: ignore[attr-defined]
    main = threading.current_thread().name
    assert sorted(ran) == sorted([main, main if way == "without threads" else "mmsp_nb loop"])
    assert texts(sent) == "Done."
    assert [item["text"] for item in client.requests[1]["content_items"]] == ["one", "two"]


@pytest.mark.parametrize("threads", [True, False])
async def test_a_cancelled_wait_closes_the_stream_before_it_returns(
    threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "THREADS", threads)
    client = scripted.Scripted([scripted.text("one "), 60])
    session, _ = session_of(client)
    task = asyncio.ensure_future(session.arun())
    while not client.sent:
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.closed


def test_what_the_stream_raises_comes_out_of_the_wait() -> None:
    session, _ = session_of(scripted.Scripted([ValueError("no")]))
    with pytest.raises(ValueError, match="no"):
        session.run()


def test_an_interrupt_in_a_tool_stops_the_stream_and_passes() -> None:
    def pressed() -> None:
        "Pressed"
        raise KeyboardInterrupt

    client = scripted.Scripted([scripted.call("pressed")], [scripted.text("never")])
    session, _ = session_of(client, pressed)
    with pytest.raises(KeyboardInterrupt):
        session.run()
    assert len(client.requests) == 1


def test_an_interrupt_at_any_point_of_a_wait_does_not_stop_who_adds_work() -> None:
    """With a lock in it, an interrupt between two instructions could leave it locked: the loop thread then stood still,
    and the cell for ever."""

    def waited(box: Mailbox, point: int) -> bool:
        seen = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal seen
            frame.f_trace_opcodes = True
            if event == "opcode":
                seen += 1
                if seen == point:
                    raise KeyboardInterrupt
            return trace

        with contextlib.suppress(KeyboardInterrupt):
            sys.settrace(trace)
            try:
                box.wait(0.001)
            finally:
                sys.settrace(None)
        return seen >= point

    before, done, point = sys.gettrace(), list[int](), 1
    try:
        while True:
            box = Mailbox()
            more = waited(box, point)
            adding = threading.Thread(target=box.put, args=(functools.partial(done.append, point),), daemon=True)
            adding.start()
            adding.join(10)
            assert not adding.is_alive(), f"locked by an interrupt at instruction {point}"
            box.wait(10)
            for work in box.take():
                work()
            assert done[-1] == point
            if not more:
                break
            point += 1
    finally:
        sys.settrace(before)
    assert point > 10
