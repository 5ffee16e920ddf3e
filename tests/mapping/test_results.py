"""A result as a sequence, a table, and something to look at."""

from __future__ import annotations

import copy
import enum
import pickle
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import pandas as pd
import pytest
from echoes import Echo, refusal, text
from pydantic import BaseModel

import mmsp_nb
from mmsp_nb.protocol.errors import InvalidMessageError


class Topic(BaseModel):
    topic: str
    score: int


@dataclass
class Pair:
    left: str
    right: int


class Named(NamedTuple):
    a: int
    b: str


class Typed(TypedDict):
    a: int


class Kind(enum.Enum):
    ONE = "one"


FRAME = pd.DataFrame({"q": ["a", "b", "c"], "score": [7, 8, 9]}, index=pd.Index(["x", "y", "y"], name="key"))


def test_it_is_a_sequence(echo: Echo):
    result = mmsp_nb.map(["a", "b", "c"], client=echo.client())
    assert (len(result), result[0], result[-1], result[1:], "<b>" in result, result.index("<c>")) == (
        *(3, "<a>", "<c>", ["<b>", "<c>"], True, 2),
    )
    with pytest.raises(IndexError, match="there are 3 rows"):
        result[3]


def test_answers_have_their_messages_usage_and_cost(echo: Echo):
    answer = mmsp_nb.map(["a"], "say {{row}}", client=echo.client(), system="Short.").answers[0]
    assert isinstance(answer, mmsp_nb.Answer) and str(answer) == "<say a>"
    assert [message["role"] for message in answer.messages] == ["user", "assistant"]
    assert answer.usage["response_tokens"] == 3 and answer.finish_reason == "stop" and answer.complete
    assert answer.turn.prompt == "say a" and answer.turn.config["system_prompt"] == "Short."
    assert "<say a>" in repr(answer)


@pytest.mark.parametrize(
    ("kind", "answer", "columns"),
    [
        (None, "hi", {"answer": "hi"}),
        (Topic, '{"topic": "t", "score": 1}', {"topic": "t", "answer_score": 1}),
        (Pair, '{"left": "l", "right": 2}', {"left": "l", "right": 2}),
        (Typed, '{"a": 3}', {"a": 3}),
        (int, '{"value": 4}', {"answer": 4}),
        (list[int], '{"value": [1, 2]}', {"answer": [1, 2]}),
        (Kind, '{"value": "one"}', {"answer": Kind.ONE}),
    ],
)
def test_fields_become_columns_beside_those_of_the_rows(echo: Echo, kind, answer, columns):
    echo.rules.append(lambda prompt: text(answer))
    frame = mmsp_nb.map(FRAME, "{{q}}", type=kind, client=echo.client()).to_frame()
    assert list(frame.columns) == ["q", "score", *columns]
    assert list(frame.index) == ["x", "y", "y"] and frame.index.name == "key" and list(frame["score"]) == [7, 8, 9]
    for name, value in columns.items():
        assert list(frame[name]) == [value] * 3
    assert list(FRAME.columns) == ["q", "score"], "the table that was given stays as it is"


def test_failed_rows_say_why_in_a_column_and_numbers_stay_whole(echo: Echo):
    echo.rules.append(lambda prompt: refusal(400) if prompt == "b" else text('{"topic": "t", "score": 1}'))
    frame = mmsp_nb.map(FRAME["q"], type=Topic, client=echo.client()).to_frame("got")
    assert list(frame.columns) == ["q", "topic", "score", "error"]
    assert str(frame["score"].dtype) == "Int64" and frame["score"].isna().tolist() == [False, True, False]
    assert frame["error"].iloc[1].startswith("HTTPStatusError: ") and frame["error"].isna().sum() == 2


@pytest.mark.parametrize(
    ("rows", "index", "columns"),
    [
        (["a", "b"], [0, 1], ["row", "answer"]),
        ({"k": "a", "l": "b"}, ["k", "l"], ["row", "answer"]),
        ([{"q": "a"}, {"q": "b"}], [0, 1], ["q", "answer"]),
        ({"k": {"q": "a"}, "l": {"answer": "b"}}, ["k", "l"], ["q", "answer", "answer_"]),
        (pd.Series(["a", "b"], name="word", index=[5, 6]), [5, 6], ["word", "answer"]),
        (pd.Series(["a", "b"]), [0, 1], ["row", "answer"]),
    ],
)
def test_rows_that_were_no_table_make_one(echo: Echo, rows, index, columns):
    frame = mmsp_nb.map(rows, "{{row}}", client=echo.client()).to_frame()
    assert list(frame.index) == index and list(frame.columns) == columns


def test_it_is_shown_in_bounds_and_what_it_holds_is_only_text(echo: Echo):
    rows = ["<script>alert(1)</script>" + "x" * 5_000] * 1_000
    result = mmsp_nb.map(rows[:12], client=echo.client())
    shown, html = repr(result), result._repr_html_()
    assert shown.startswith("12 of 12 rows answered by any; 120 tokens") and shown.endswith("... and 2 more rows")
    assert len(shown) < 3_000 and len(html) < 12_000
    assert "<script>" not in html and "&lt;script&gt;" in html
    echo.rules.append(lambda prompt: refusal(400))
    failed = mmsp_nb.map(["a", "b"], client=echo.client(), resume=False)
    assert "0 of 2 rows answered by any; 2 without an answer" in repr(failed)
    assert repr(failed[0]).startswith("<MapError row 0: HTTPStatusError: ")


def test_a_row_whose_repr_fails_is_shown_all_the_same(echo: Echo):
    class Bad:
        def __repr__(self):
            raise RuntimeError

    result = mmsp_nb.map([Bad()], lambda row: "x", client=echo.client())
    assert "<Bad, whose repr fails: RuntimeError>" in repr(result)


@pytest.mark.parametrize(("at", "words"), [("x", "'x'; that row is at 0$"), ("nowhere", "'nowhere'$"), (1.5, "1.5$")])
def test_an_answer_is_found_by_its_position_and_an_index_label_is_told_where(echo: Echo, at, words):
    result = mmsp_nb.map(FRAME, "{{q}}", client=echo.client())
    with pytest.raises(TypeError, match="answers are found by their position, not by .*" + words):
        result[at]


def test_a_copy_keeps_its_answers_when_the_other_is_asked_again(echo: Echo):
    result = mmsp_nb.map(["a", "b"], "{{1 // (row != 'b')}}{{row}}", client=echo.client())
    for other in (copy.copy(result), copy.deepcopy(result)):
        assert next(iter(other)) == result[0] and not other.ok
        other._slots[1] = other._slots[0]
        assert other.ok and not result.ok


def test_pickling_a_result_says_what_can_be_pickled(echo: Echo):
    result = mmsp_nb.map(["a"], client=echo.client())
    with pytest.raises(TypeError, match=r"pickle list\(answers\) or answers.to_frame\(\)"):
        pickle.dumps(result)
    assert pickle.loads(pickle.dumps(list(result))) == ["<a>"]


def test_a_name_that_no_row_has_is_answered_with_those_that_are_there(echo: Echo):
    factor = 3  # a variable of the caller is not one of the row
    with pytest.raises(InvalidMessageError, match=r"'factor' is not defined; .* q, score, row, index, and what names="):
        mmsp_nb.map(FRAME, "{{q}} {{factor}}", client=echo.client())
    assert mmsp_nb.map(FRAME, "{{q}} {{factor}}", names={"factor": factor}, client=echo.client()).ok
