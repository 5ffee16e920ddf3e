from __future__ import annotations

import asyncio
import contextvars
import os
import threading

import pytest

from mmsp_nb import loop
from mmsp_nb.loop import BackgroundLoop

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.fixture
def background():
    background = BackgroundLoop("test loop")
    yield background
    background.close()


async def value_of_variable() -> str:
    await asyncio.sleep(0)
    return variable.get()


def test_a_coroutine_runs_in_one_thread_that_is_kept(background):
    async def thread() -> threading.Thread:
        return threading.current_thread()

    first = background.submit(thread()).result(5)
    assert first.daemon and first is not threading.current_thread()
    assert background.submit(thread()).result(5) is first


def test_the_callers_context_comes_along(background):
    variable.set("mine")
    assert background.submit(value_of_variable()).result(5) == "mine"
    other = contextvars.copy_context()
    other.run(variable.set, "other")
    assert background.submit(value_of_variable(), context=other).result(5) == "other"


def test_it_works_from_inside_a_running_loop(background):
    async def outer() -> str:
        return background.submit(value_of_variable()).result(5)

    assert asyncio.run(outer()) == variable.get()


def test_cancel_lets_the_coroutine_clean_up_before_the_job_is_done(background):
    entered, may_finish = threading.Event(), threading.Event()
    order = []

    async def work() -> None:
        try:
            entered.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.get_running_loop().run_in_executor(None, may_finish.wait, 5)
            order.append("cleaned")

    job = background.submit(work())
    job.add_done_callback(lambda job: order.append("done"))
    assert entered.wait(5)
    assert job.cancel() is True
    assert not job.done()
    may_finish.set()
    with pytest.raises(asyncio.CancelledError):
        job.result(5)
    assert order == ["cleaned", "done"]
    assert job.cancel() is False


def test_a_job_cancelled_before_its_first_step_is_done_too(background):
    hold, held = threading.Event(), threading.Event()

    async def block() -> None:
        held.set()
        hold.wait(5)

    background.submit(block())
    assert held.wait(5)
    job = background.submit(value_of_variable())
    job.cancel()
    hold.set()
    with pytest.raises(asyncio.CancelledError):
        job.result(5)


@pytest.mark.parametrize("error", [KeyboardInterrupt("stop"), SystemExit(3), ValueError("bad")])
def test_whatever_the_coroutine_raises_reaches_the_caller_and_the_loop_lives_on(background, error):
    async def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        background.submit(fail()).result(5)
    assert caught.value is error
    assert background.submit(value_of_variable()).result(5)


def test_close_cancels_what_runs_and_a_later_submit_starts_anew(background):
    entered = threading.Event()

    async def wait() -> None:
        entered.set()
        await asyncio.Event().wait()

    job = background.submit(wait())
    assert entered.wait(5)
    thread = background._thread
    background.close()
    assert not thread.is_alive()
    with pytest.raises(asyncio.CancelledError):
        job.result(0)
    assert background.submit(value_of_variable()).result(5)


def test_only_its_own_thread_is_current(background):
    async def inside() -> bool:
        return background.is_current()

    assert background.submit(inside()).result(5) is True
    assert background.is_current() is False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_gets_a_loop_of_its_own():
    assert loop.submit(value_of_variable()).result(5)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if loop.submit(value_of_variable()).result(5) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
