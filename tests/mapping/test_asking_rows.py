"""`map` over rows of every kind, against a provider on loopback."""

from __future__ import annotations

import asyncio
import enum
import threading
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pandas as pd
import pytest
from echoes import Echo, refusal, said, text
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import mmsp_nb
from mmsp_nb import MapError, NotAskedError
from mmsp_nb.mapping import running
from mmsp_nb.testing import FakeProvider, Gate, Reply, parts, wire


class Topic(BaseModel):
    topic: str
    score: int


def values(result: Any) -> list[Any]:
    return list(result)


# rows and prompts


@dataclass
class Point:
    x: int


class Table:
    """A table of some library: columns by name, rows by position."""

    column_names = ["name", "n"]

    def __len__(self):
        return 2

    def __getitem__(self, position):
        return [{"name": "a", "n": 1}, {"name": "b", "n": 2}][position]


FRAME = pd.DataFrame({"name": ["a", "b"], "n": [1, 2], "first name": ["A", "B"]}, index=["r1", "r2"])


@pytest.mark.parametrize(
    ("rows", "prompt", "asked"),
    [
        (["a", "b"], None, ["a", "b"]),
        (("a", "b"), "say {{row}}", ["say a", "say b"]),
        (["a", "b"], "{{index}}: {{row.upper()}}", ["0: A", "1: B"]),
        (FRAME, "{{name}}{{n + 1}} {{row['first name']}} {{index}}", ["a2 A r1", "b3 B r2"]),
        (FRAME["name"], "{{name}}!", ["a!", "b!"]),
        (FRAME["n"], "{{row * 2}}", ["2", "4"]),
        (Table(), "{{name}}{{n}}", ["a1", "b2"]),
        ([{"q": "a"}, {"q": "b"}], "{{q}}", ["a", "b"]),
        ([Point(1), Point(2)], "{{x}} {{row.x}}", ["1 1", "2 2"]),
        ([Topic(topic="t", score=1)], "{{topic}} {{score}}", ["t 1"]),
        ({"k": "a", "l": "b"}, "{{index}} {{row}}", ["k a", "l b"]),
        ((f"g{i}" for i in range(3)), None, ["g0", "g1", "g2"]),
        (pd.Series(["a"], dtype="string"), None, ["a"]),
        (FRAME["n"].to_numpy(), "{{row}}", ["1", "2"]),
        (["{{row}} {0} %s"], "{{row}} {x} %d {} \\{{", ["{{row}} {0} %s {x} %d {} {{"]),
        ([1, 2], lambda row: f"fn {row}", ["fn 1", "fn 2"]),
        ([["two", "parts"]], None, ["two\nparts"]),
        (
            ["q"],
            lambda row: [
                {"role": "user", "content_items": [{"type": "text.done", "text": "hi"}]},
                {"role": "assistant", "content_items": [{"type": "text.done", "text": "ho"}]},
                {"role": "user", "content_items": [{"type": "text.done", "text": row}]},
            ],
            ["q"],
        ),
    ],
)
def test_rows_of_every_kind_are_asked_and_answered_in_order(echo: Echo, rows, prompt, asked):
    result = mmsp_nb.map(rows, prompt, client=echo.client())
    sent = [said(request.body["messages"][-1]) for request in echo.provider.requests]
    assert sorted(each.replace("\n", "") for each in sent) == sorted(each.replace("\n", "") for each in asked)
    assert len(result) == len(asked) and result.ok
    assert [value.replace("\n", "") for value in result] == [f"<{each}>".replace("\n", "") for each in asked]


def test_messages_of_a_function_are_sent_as_a_conversation(echo: Echo):
    def prompt(row):
        said = [("user", "hi"), ("assistant", "ho"), ("user", row)]
        return [{"role": role, "content_items": [{"type": "text.done", "text": each}]} for role, each in said]

    result = mmsp_nb.map(["q"], prompt, client=echo.client(), system="Short.")
    sent = echo.provider.last.body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert [message["role"] for message in result.answers[0].messages] == ["user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("rows", [[], {}, iter(()), pd.DataFrame({"a": []}), pd.Series([], dtype=object)])
def test_no_rows_are_no_requests(echo: Echo, rows):
    result = mmsp_nb.map(rows, "{{row}}", client=echo.client())
    assert values(result) == [] and result.ok and result.usage is None and not echo.provider.requests
    assert "0 of 0 rows" in repr(result)
    assert len(result.to_frame()) == 0


PNG = mmsp_nb.testing.streams.PNG


@pytest.mark.parametrize("images", ["photo", ["photo"], lambda row: row["photo"], lambda row: [row["photo"], None]])
def test_pictures_go_along_from_columns_or_a_function(echo: Echo, images):
    frame = pd.DataFrame({"photo": [PNG, None], "q": ["what", "who"]})
    mmsp_nb.map(frame, "{{q}}", images=images, client=echo.client(), concurrency=1)
    first, second = (request.body["messages"][-1]["content"] for request in echo.provider.requests)
    assert [part["type"] for part in first] == ["image_url", "text"]
    assert second == "who" or [part["type"] for part in second] == ["text"]


def test_pictures_in_a_template_and_names_beside_the_rows(echo: Echo):
    mmsp_nb.map(
        [{"a": 2}], "{{twice(a)}} {{limit}}", names={"twice": lambda x: 2 * x, "limit": 3}, client=echo.client()
    )
    assert said(echo.provider.last.body["messages"][-1]) == "4 3"


@pytest.mark.parametrize(
    ("rows", "prompt", "more", "error", "words"),
    [
        ("one text", None, {}, TypeError, "give a list of texts, [text]"),
        (5, None, {}, TypeError, "rows is a list, a table or another source of rows, not int"),
        (FRAME, None, {}, ValueError, "a table needs a prompt, such as '{{name}}'"),
        (FRAME, "Hello", {}, ValueError, "no {{expression}}, so every row would be asked the same: put {{name}}"),
        (["a", "b"], "Hello", {}, ValueError, "put {{row}} where the row belongs"),
        (FRAME, "{{first name}}", {}, ValueError, "write {{row['first name']}}"),
        (FRAME, "{{nam}}", {}, ValueError, "did you mean 'name'?"),
        (FRAME, "{{name", {}, ValueError, "is never closed"),
        (FRAME, 5, {}, TypeError, "prompt is a text, a function of the row or None, not int"),
        (FRAME, "{{name}}", {"images": "foto"}, ValueError, "images='foto': there is no such column"),
        (["a"], None, {"concurrency": 0}, ValueError, "concurrency is a whole number from 1 on, not 0"),
        (["a"], None, {"concurrency": 2.5}, ValueError, "concurrency is a whole number from 1 on, not 2.5"),
        (["a"], None, {"retries": -1}, ValueError, "retries is a whole number from 0 on, not -1"),
        (["a"], None, {"timeout": 0}, ValueError, "timeout is a number of seconds above 0"),
        (["a"], None, {"limit": "60/mim"}, ValueError, "did you mean 'min'?"),
        (["a"], None, {"on_error": "rais"}, ValueError, "did you mean 'raise'?"),
        (["a"], None, {"budget": 1}, ValueError, "the prices of any are not known"),
        (["a"], None, {"concurency": 2}, TypeError, "did you mean 'concurrency'?"),
        (["a"], None, {"max_tokens": 2}, TypeError, "belongs into the config"),
        (["a"], None, {"config": {"max_tokns": 2}}, ValueError, "did you mean 'max_tokens'?"),
        (["a"], None, {"type": print}, TypeError, "print cannot be the type of an answer"),
        ([""], None, {}, ValueError, "the prompt is empty"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "{{a}}", {}, TypeError, "two columns of the name 'a'"),
    ],
)
def test_what_cannot_work_is_said_in_one_line_before_anything_is_sent(echo: Echo, rows, prompt, more, error, words):
    with pytest.raises(error) as caught:
        mmsp_nb.map(rows, prompt, client=echo.client(), **more)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not echo.provider.requests


def test_asynchronous_rows_and_functions_are_refused_with_what_to_do(echo: Echo):
    async def rows():
        yield 1

    async def prompt(row):
        return row

    with pytest.raises(TypeError, match="collect them first"):
        mmsp_nb.map(rows(), client=echo.client())
    with pytest.raises(TypeError, match="async function"):
        mmsp_nb.map(["a"], prompt, client=echo.client())


# answers


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 9), st.booleans())
def test_answers_stand_in_the_order_of_the_rows_whatever_order_they_come_in(numbers, concurrency, dedupe):
    echo = Echo()
    with echo.provider:
        texts = [f"n{number}" for number in numbers]
        result = mmsp_nb.map(iter(texts), client=echo.client(), concurrency=concurrency, dedupe=dedupe, resume=False)
        assert values(result) == [f"<{each}>" for each in texts]
        assert len(echo.provider.requests) == (len(set(texts)) if dedupe else len(texts))


def test_answers_that_overtake_each_other_are_put_into_their_places(echo: Echo):
    gate = Gate()
    echo.rules.append(lambda prompt: Reply(before=gate, **fields(text("first"))) if prompt == "0" else None)
    echo.rules.append(lambda prompt: gate.open() if prompt == "9" else None)
    result = mmsp_nb.map([str(i) for i in range(10)], client=echo.client(), concurrency=2)
    assert result[0] == "first" and result[9] == "<9>"


def fields(reply: Reply) -> dict[str, Any]:
    return {"body": reply.body, "status": reply.status, "headers": reply.headers, "framing": reply.framing}


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [
        (Topic, '{"topic": "sea", "score": 3}', Topic(topic="sea", score=3)),
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (Literal["a", "b"], '{"value": "b"}', "b"),
        (Mood, '{"value": "bad"}', Mood.BAD),
        (int, '{"value": 0}', 0),
        (dict[str, int], '{"value": {"value": 3}}', {"value": 3}),
    ],
)
def test_typed_answers_are_objects_and_come_back_from_a_checkpoint(echo: Echo, tmp_path, kind, answer, value):
    echo.rules.append(lambda prompt: text(answer))
    where = tmp_path / "kept.jsonl"
    for _ in range(2):
        result = mmsp_nb.map(["x"], type=kind, client=echo.client(), checkpoint=where)
        assert values(result) == [value]
        assert result.answers[0].value == value and result.answers[0].usage["prompt_tokens"] == 7
    assert len(echo.provider.requests) == 1


def test_an_answer_that_does_not_fit_is_corrected_and_one_that_never_does_is_an_error_value(echo: Echo):
    tries: dict[str, int] = {}

    def reply(request: Any) -> Reply:
        row = said(request.body["messages"][0])
        tries[row] = tries.get(row, 0) + 1
        return text('{"topic": "t", "score": 1}' if row == "mends" and tries[row] == 2 else '{"topic": 1}')

    with FakeProvider().when("/completions", reply) as provider:
        client = mmsp_nb.AutoLLMClient("any", "key", provider.url("/v1"), "openai-chat")
        result = mmsp_nb.map(["mends", "never"], type=Topic, client=client)
    assert result[0] == Topic(topic="t", score=1)
    assert isinstance(result[1].error, mmsp_nb.TypedAnswerError) and result[1].attempts == 3
    assert result[1].usage["prompt_tokens"] == 21 and result.usage["prompt_tokens"] == 35
    assert not result.ok and result.errors == [result[1]] and result.errors[0].row == "never"


def test_tools_are_run_on_the_callers_thread_and_their_results_are_kept(echo: Echo):
    threads = []

    def tide(port: str) -> int:
        "Height of the tide."
        threads.append(threading.current_thread())
        return len(port)

    def reply(request: Any) -> Reply:
        last = request.body["messages"][-1]
        if last["role"] == "tool":
            return text(f"high: {said(last)}")
        return Reply.stream(wire.chat.frames([parts.call("tide", {"port": said(last)})]))

    with FakeProvider().when("/completions", reply) as provider:
        client = mmsp_nb.AutoLLMClient("any", "key", provider.url("/v1"), "openai-chat")
        result = mmsp_nb.map(["Brest", "Ys"], client=client, tools=[tide])
        assert values(result) == ["high: 5", "high: 2"]
        assert result.answers[0].calls[0].result == 5
        assert threads == [threading.main_thread()] * 2
        endless = mmsp_nb.map(["Brest"], client=client, tools=[tide], max_turns=1)
        assert "no answer within 1 requests (max_turns)" in str(endless[0])


def test_what_is_the_users_runs_on_the_callers_thread(echo: Echo):
    seen = set()

    def rows():
        for i in range(100):
            seen.add(threading.get_ident())
            yield i

    def prompt(row):
        seen.add(threading.get_ident())
        return str(row)

    assert mmsp_nb.map(rows(), prompt, client=echo.client()).ok
    assert seen == {threading.get_ident()}


async def test_the_awaited_form_does_the_same_on_the_callers_loop(echo: Echo):
    result = await mmsp_nb.amap(["a", "b"], "{{row}}!", client=echo.client())
    assert values(result) == ["<a!>", "<b!>"]
    with pytest.raises(ValueError, match="concurrency"):
        await mmsp_nb.amap(["a"], client=echo.client(), concurrency=0)


async def test_the_blocking_form_works_while_a_loop_runs_on_this_thread(echo: Echo):
    assert values(mmsp_nb.map(["a"], client=echo.client())) == ["<a>"]


def test_two_rows_that_ask_the_same_are_two_questions_unless_they_are_to_be_one(echo: Echo):
    mmsp_nb.map(["a", "a", "b"], client=echo.client())
    assert echo.asked == {"a": 2, "b": 1}
    result = mmsp_nb.map(["a", "a", "b"], client=echo.client(), dedupe=True)
    assert echo.asked == {"a": 3, "b": 2} and values(result) == ["<a>", "<a>", "<b>"]


# failures


def failing(times: int, reply: Any, match: str = "") -> Any:
    left = {"n": times}
    lock = threading.Lock()

    def rule(prompt: str) -> Any:
        with lock:
            if match not in prompt or left["n"] <= 0:
                return None
            left["n"] -= 1
        return reply

    return rule


@pytest.fixture
def no_waiting(monkeypatch):
    """The waits of a run are noted, and over at once."""
    waits: list[float] = []
    original = running.Gate

    def gate(*args: Any, **options: Any) -> Any:
        clock = {"now": 0.0}

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            clock["now"] += seconds
            await asyncio.sleep(0)

        return original(*args, **options, clock=lambda: clock["now"], sleep=sleep, jitter=lambda: 0.0)

    monkeypatch.setattr(running, "Gate", gate)
    return waits


@pytest.mark.parametrize(
    "reply",
    [
        refusal(500),
        refusal(503),
        refusal(408),
        Reply.no_answer("reset"),
        Reply.data(b"<html>", "text/html"),
        text("half", "way").cut(300),
        text("no end", done=False, finish=None),
        Reply.stream([b"data: {broken\n\n"]),
    ],
    ids=lambda reply: f"{reply.status}{reply.hang_up}",
)
def test_what_fails_in_passing_is_asked_again(echo: Echo, no_waiting, reply):
    echo.rules.append(failing(1, reply, "bad"))
    result = mmsp_nb.map(["good", "bad"], client=echo.client(), concurrency=1)
    assert values(result) == ["<good>", "<bad>"]
    assert len(echo.provider.requests) in (3, 4)  # a connection that broke before a byte is replaced at once besides


def test_a_failure_that_stays_is_a_value_that_says_which_row_and_can_be_retried(echo: Echo, no_waiting):
    echo.rules.append(failing(3, refusal(500), "bad"))
    frame = pd.DataFrame({"q": ["good", "bad"]}, index=["x", "y"])
    result = mmsp_nb.map(frame, "{{q}}", client=echo.client(), retries=2)
    assert result[0] == "<good>"
    failed = result[1]
    assert isinstance(failed, MapError) and failed.error.status == 500 and failed.attempts == 3
    assert (failed.position, failed.label, failed.row) == (1, "y", {"q": "bad"})
    assert failed.error.__traceback__ is None
    assert result.retry() is result
    assert values(result) == ["<good>", "<bad>"] and result.ok
    assert echo.asked == {"good": 1, "bad": 4}


async def test_a_retry_may_be_asked_of_another_model_and_awaited(echo: Echo, no_waiting):
    echo.rules.append(failing(1, refusal(400), "bad"))
    result = await mmsp_nb.amap(["good", "bad"], client=echo.client())
    assert result[1].error.status == 400 and result[1].attempts == 1
    await result.aretry(client=None, model="demo")
    assert result.ok and result[0] == "<good>" and result[1] != "<bad>" and result.model == "demo"
    with pytest.raises(TypeError, match="same rows"):
        result.retry(rows=[1])
    with pytest.raises(TypeError, match="did you mean 'limit'"):
        result.retry(limt="60/min")


def test_one_refusal_slows_all_rows_for_as_long_as_the_provider_wants(echo: Echo, no_waiting):
    echo.rules.append(failing(1, refusal(429, retry_after="7"), "3"))
    result = mmsp_nb.map([str(i) for i in range(8)], client=echo.client(), concurrency=1)
    assert result.ok and len(echo.provider.requests) == 9
    assert no_waiting == [7.0]


def test_without_a_wish_the_waits_grow_and_a_row_is_given_up_in_the_end(echo: Echo, no_waiting):
    echo.rules.append(lambda prompt: refusal(429) if prompt == "always" else None)
    result = mmsp_nb.map(["always", "b"], client=echo.client(), concurrency=1)
    assert result[0].error.status == 429 and result[0].attempts == 10 and result[1] == "<b>"
    assert no_waiting[:7] == [1, 2, 4, 8, 16, 32, 60]


def test_rows_on_their_way_at_a_refusal_do_not_multiply_it(echo: Echo, no_waiting):
    echo.rules.append(failing(8, refusal(429)))
    result = mmsp_nb.map([str(i) for i in range(40)], client=echo.client(), concurrency=8)
    assert result.ok and len(echo.provider.requests) == 48
    assert sum(no_waiting) < 60


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refusal(401), mmsp_nb.AuthenticationError),
        (refusal(429, retry_after="4000"), mmsp_nb.RateLimitError),
        (Reply.json({"error": {"code": "insufficient_quota", "message": "no"}}, 429), mmsp_nb.RateLimitError),
    ],
)
def test_what_no_row_can_pass_ends_the_run(echo: Echo, no_waiting, reply, error):
    echo.rules.append(lambda prompt: reply if prompt != "0" else None)
    result = mmsp_nb.map([str(i) for i in range(500)], client=echo.client(), concurrency=2)
    assert result[0] == "<0>" and len(echo.provider.requests) <= 5
    assert isinstance(result.stopped, error)
    assert isinstance(result[499].error, NotAskedError) and result[499].attempts == 0
    assert result[499].error.reason is result.stopped
    with pytest.raises(error):  # nothing was got at all
        mmsp_nb.map(["1", "2"], client=echo.client())
    echo.rules.clear()
    assert result.retry().ok and result.stopped is None


def test_a_provider_that_is_down_is_given_up_after_so_many_rows(echo: Echo, no_waiting):
    echo.rules.append(lambda prompt: refusal(500) if prompt != "0" else None)
    result = mmsp_nb.map([str(i) for i in range(500)], client=echo.client(), retries=0, concurrency=1)
    assert len(echo.provider.requests) == 1 + running.GIVE_UP
    assert isinstance(result[499].error, NotAskedError)


def test_the_first_error_is_raised_when_that_is_wanted_and_says_which_row(echo: Echo, no_waiting):
    echo.rules.append(lambda prompt: refusal(400) if prompt == "bad" else None)
    with pytest.raises(mmsp_nb.HTTPStatusError) as caught:
        mmsp_nb.map({"k": "good", "l": "bad", "m": "late"}, client=echo.client(), on_error="raise", concurrency=1)
    assert caught.value.__notes__ == ["in row 'l' of map()"]
    echo.rules.clear()
    assert mmsp_nb.map({"k": "good", "l": "bad", "m": "late"}, client=echo.client()).ok
    assert echo.asked["good"] == 1


def test_a_row_whose_prompt_fails_is_an_error_value_and_the_others_are_asked(echo: Echo):
    result = mmsp_nb.map([2, 0, 1], "{{1 // row}}", client=echo.client())
    assert values(result)[::2] == ["<0>", "<1>"]
    assert "line 1: {{1 // row}}: ZeroDivisionError" in str(result[1]) and result[1].attempts == 0
    assert result.retry() is result and not result.ok


def test_rows_that_fail_while_they_are_read_end_the_run_and_lose_nothing(echo: Echo):
    broken = True

    def rows():
        yield from map(str, range(200))
        if broken:
            raise OSError("the disk is gone")
        yield "200"

    with pytest.raises(OSError, match="the disk is gone"):
        mmsp_nb.map(rows(), client=echo.client())
    broken = False
    result = mmsp_nb.map(rows(), client=echo.client())
    assert result.ok and len(result) == 201
    assert max(echo.asked.values()) <= 2 and sum(echo.asked.values()) <= 201 + 8


def test_an_answer_that_takes_too_long_is_asked_again_and_then_an_error(echo: Echo):
    slow, gate = Gate(), Gate()
    echo.rules.append(lambda prompt: Reply(before=gate, **fields(text("x"))) if prompt == "never" else None)
    echo.rules.append(failing(1, Reply(before=slow, **fields(text("x"))), "late"))
    result = mmsp_nb.map(["never", "late"], client=echo.client(), timeout=1, retries=1)
    assert isinstance(result[0].error, mmsp_nb.RequestTimeoutError) and "(timeout)" in str(result[0])
    assert result[1] == "<late>"
    echo.provider.wait_until_idle()


def test_a_client_of_ones_own_must_have_siblings():
    class Client:
        def streaming_response_stateful(self, message, config=None): ...

    with pytest.raises(TypeError, match=r"have sibling\(\)"):
        mmsp_nb.map(["a"], client=Client())


# limits and money


def test_limits_hold_for_requests_with_those_of_corrections(echo: Echo, no_waiting):
    result = mmsp_nb.map([str(i) for i in range(7)], client=echo.client(), limit="3/min", concurrency=8)
    assert result.ok
    assert [round(each) for each in no_waiting] == [60, 60]


def test_limits_of_tokens_learn_how_large_answers_are(echo: Echo, no_waiting):
    rows = [str(i) for i in range(30)]
    result = mmsp_nb.map(rows, client=echo.client(), limit="1000 tokens/min", config={"max_tokens": 400}, concurrency=1)
    assert result.ok
    assert len(no_waiting) <= 1, "ten tokens a row are known after the first one"


def prices(monkeypatch, prompt: float = 1.0, response: float = 10.0) -> None:
    from mmsp_nb import choosing

    known = {"prompt_tokens": prompt, "response_tokens": response, "cached_tokens": prompt, "thoughts_tokens": response}
    monkeypatch.setattr(choosing, "prices", lambda client: known)


def test_a_budget_that_the_rows_alone_exceed_is_refused_before_anything_is_sent(echo: Echo, monkeypatch):
    prices(monkeypatch)
    with pytest.raises(mmsp_nb.BudgetExceededError, match="nothing was sent"):
        mmsp_nb.map(["word " * 1000] * 100, client=echo.client(), budget=0.05)
    assert not echo.provider.requests


def test_a_budget_that_is_used_up_ends_the_run_and_a_larger_one_goes_on(echo: Echo, monkeypatch):
    prices(monkeypatch)  # 37 millionths of a dollar a row
    result = mmsp_nb.map([str(i) for i in range(100)], client=echo.client(), budget="0.001", concurrency=2)
    assert isinstance(result.stopped, mmsp_nb.BudgetExceededError)
    assert 20 <= len(echo.provider.requests) <= 27 and result.cost <= Decimal("0.001")
    assert mmsp_nb.spending.spent == result.cost
    result.retry(budget=1)
    assert result.ok and len(echo.provider.requests) == 100 and result.cost == Decimal("0.0037")


def test_the_budget_of_all_conversations_holds_here_too(echo: Echo, monkeypatch):
    prices(monkeypatch)
    monkeypatch.setattr(mmsp_nb.spending, "budget", 0.0005)
    result = mmsp_nb.map([str(i) for i in range(100)], client=echo.client(), concurrency=1)
    assert "raise mmsp_nb.spending.budget" in str(result.stopped) and len(echo.provider.requests) < 15


# progress


def test_a_bar_shows_rows_failures_and_cost_when_it_is_wanted(echo: Echo, monkeypatch, capsys, no_waiting):
    prices(monkeypatch)
    echo.rules.append(lambda prompt: refusal(400) if prompt == "7" else None)
    mmsp_nb.map([str(i) for i in range(30)], client=echo.client(), progress=True)
    shown = capsys.readouterr().err
    assert "30/30" in shown and "1 failed" in shown and "$0.0011" in shown


def test_nothing_is_shown_when_nobody_watches(echo: Echo, capsys):
    mmsp_nb.map(["a"], client=echo.client())
    assert capsys.readouterr() == ("", "")
