"""Requests made by threads, processes and Dask's workers: their answers, limits and keys."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from echoes import Echo, refusal, text
from pydantic import BaseModel

import mmsp_nb
from mmsp_nb.mapping.workers import Spec

ROWS = [f"row {i}" for i in range(40)]
WHERE = {"model": "any", "client_type": "openai-chat"}


class Score(BaseModel):
    score: int


@pytest.fixture
def reached(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> Echo:
    """The provider, as the environment of workers names it."""
    monkeypatch.setenv("OPENAI_BASE_URL", echo.provider.url("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-workers")
    return echo


@pytest.fixture(params=["threads", "processes"])
def executor(request: Any, reached: Echo) -> Iterator[Any]:
    if request.param == "threads":
        with ThreadPoolExecutor(3) as pool:
            yield pool
    else:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            yield pool


def test_rows_are_answered_elsewhere_in_order(reached: Echo, executor: Any):
    result = mmsp_nb.map(ROWS, executor=executor, **WHERE)
    assert list(result) == [f"<{row}>" for row in ROWS]
    assert sum(result.workers.values()) == 40 and set(reached.asked.values()) == {1}
    sent = {request.headers["authorization"] for request in reached.provider.requests}
    assert sent == {"Bearer key-of-the-workers"}
    here = f":{os.getpid()}"
    if isinstance(executor, ProcessPoolExecutor):
        assert len(result.workers) == 2 and not any(name.endswith(here) for name in result.workers)
    else:
        assert [name.endswith(here) for name in result.workers] == [True]


def test_types_and_tools_stay_here_and_need_no_pickle(reached: Echo, executor: Any):
    class Local(BaseModel):  # cannot be pickled
        score: int

    reached.rules.append(lambda prompt: text('{"score": 4}'))
    result = mmsp_nb.map(ROWS[:3], executor=executor, type=Local, **WHERE)
    assert list(result) == [Local(score=4)] * 3 and result.answers[0].messages[-1]["role"] == "assistant"


def test_failures_come_back_typed_and_are_tried_again_here(reached: Echo, executor: Any):
    left = [2]

    def rule(prompt: str) -> Any:
        if prompt == "row 1":
            return refusal(400)
        if prompt == "row 2" and left[0]:
            left[0] -= 1
            return refusal(500)
        return None

    reached.rules.append(rule)
    result = mmsp_nb.map(ROWS[:4], executor=executor, **WHERE)
    assert isinstance(result[1].error, mmsp_nb.HTTPStatusError) and result[1].error.status == 400
    assert result[2] == "<row 2>" and reached.asked["row 2"] == 3


def test_the_limit_holds_over_all_workers(reached: Echo, executor: Any):
    mmsp_nb.map(["warm"], executor=executor, **WHERE)
    begin = time.monotonic()
    mmsp_nb.map(ROWS[:13], executor=executor, limit="5/s", **WHERE)
    assert time.monotonic() - begin >= 2


def test_no_key_is_sent_to_workers_and_a_missing_one_is_said_clearly(echo: Echo, monkeypatch: pytest.MonkeyPatch):
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(TypeError, match="api_key is not sent to the workers of an executor: set"):
            mmsp_nb.map(ROWS, executor=pool, api_key="sk-secret", **WHERE)
        with pytest.raises(TypeError, match="transport is not sent"):
            mmsp_nb.map(ROWS, executor=pool, transport=mmsp_nb.Transport(), **WHERE)
        with pytest.raises(TypeError, match="password or a key"):
            mmsp_nb.map(ROWS, executor=pool, base_url="http://user:pass@127.0.0.1/v1", **WHERE)
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        with pytest.raises(mmsp_nb.ApiKeyRequiredError, match=r"in the worker .*OPENAI_API_KEY.*Keys are not sent"):
            mmsp_nb.map(ROWS, executor=pool, **WHERE)
        client = echo.client()
        spec = Spec.of(pool, client, None, {})
        assert b"key" not in pickle.dumps(spec).replace(b"openai-chat", b"")
    assert not echo.order


def test_what_is_no_executor_is_refused_in_one_line(echo: Echo):
    class Cluster:
        def get_executor(self): ...

    for wrong, words in (
        (4, "not int"),
        (ThreadPoolExecutor, "not ABCMeta|not type"),
        (Cluster(), r"get_executor\(\)"),
    ):
        with pytest.raises(TypeError, match=words):
            mmsp_nb.map(ROWS, executor=wrong, **WHERE)
    with ThreadPoolExecutor(1) as pool, pytest.raises(TypeError, match="do not go together"):
        mmsp_nb.map(ROWS, executor=pool, cassette="x.jsonl", **WHERE)


def test_a_pool_that_breaks_ends_the_run_and_the_rest_can_be_asked(reached: Echo):
    with ThreadPoolExecutor(1) as healthy:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            assert mmsp_nb.map(["warm"], executor=pool, **WHERE).ok
            [worker] = pool._processes

            def rule(prompt: str) -> Any:
                if prompt == "row 3":
                    reached.rules.clear()
                    os.kill(worker, 9)

            reached.rules.append(rule)
            result = mmsp_nb.map(ROWS, executor=pool, concurrency=1, **WHERE)
            assert type(result.stopped).__name__ == "BrokenProcessPool" and result[2] == "<row 2>"
        result.retry(executor=healthy)
    assert result.ok and max(reached.asked.values()) <= 2


@pytest.mark.filterwarnings("ignore")
def test_dask_answers_with_two_worker_processes(reached: Echo, tmp_path: Any):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
            local_directory=str(tmp_path),
        ) as cluster,
        Client(cluster) as client,
    ):
        reached.rules.append(lambda prompt: text('{"score": 4}') if prompt.startswith("row") else None)
        pids = set(client.run(os.getpid).values())
        result = mmsp_nb.map(ROWS, executor=client.get_executor(), type=Score, limit="200/s", **WHERE)
        assert list(result) == [Score(score=4)] * 40
        assert {int(name.rpartition(":")[2]) for name in result.workers} == pids and len(pids) == 2
        assert sum(result.workers.values()) == 40 and set(reached.asked.values()) == {1}
        assert max(result.workers.values()) < 40


def test_an_executor_that_was_shut_down_ends_the_run_and_says_so(reached: Echo):
    with ThreadPoolExecutor(2) as pool:
        pass
    with pytest.raises(BrokenExecutor, match=r"takes no requests .*: give map.. or retry.. another"):
        mmsp_nb.map(ROWS, executor=pool, **WHERE)
    assert not reached.order
