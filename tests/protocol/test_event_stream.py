"""Events: usage, finish reasons, the stop, what is recorded, and which error wins at the end."""

from __future__ import annotations

import copy
from itertools import count
from typing import Any

import pytest
from raw_deltas import args, call, data, embedding, text, thinking
from test_assembly_table import spoil

from mmsp_nb.protocol.assembly import EventStream, concat_uni_events_to_uni_message
from mmsp_nb.protocol.errors import (
    EmptyResponseError,
    IncompleteStreamError,
    MMSPError,
    StreamProtocolError,
    ToolCallArgumentParseError,
)

USAGE = {"type": "usage", "cached_tokens": 1, "prompt_tokens": 2, "thoughts_tokens": None, "response_tokens": 3}
FINISH = {"type": "finish", "finish_reason": "stop"}


def streamed(*raws: dict[str, Any]) -> tuple[EventStream, list[Any]]:
    """A complete stream of ``raws``, one vendor event each, at the times 1, 2, 3, ..."""
    clock = count(1)
    stream, out = EventStream("TestClient", now=lambda: next(clock)), []
    for raw in raws:
        stream.push([raw], out)
    stream.close(out)
    return stream, out


def failing(*raws: dict[str, Any]) -> tuple[list[Any], MMSPError]:
    stream, out = EventStream("TestClient"), []
    with pytest.raises(MMSPError) as caught:
        stream.push(raws, out)
        stream.close(out)
    assert stream.message is None
    return out, caught.value


def test_items_become_delta_events_and_the_stop_says_the_rest() -> None:
    _, out = streamed(text("a"), USAGE, FINISH)
    usage = {key: value for key, value in USAGE.items() if key != "type"}
    frame = {"role": "assistant", "event_type": "delta", "usage_metadata": None, "finish_reason": None}
    assert out == [
        {**frame, "content_items": [{"type": "text.delta", "text": "a"}], "created_at": 1},
        {**frame, "content_items": [{"type": "text.done", "text": "a"}], "created_at": 2},
        {
            "role": "assistant",
            "event_type": "stop",
            "content_items": [],
            "usage_metadata": usage,
            "finish_reason": "stop",
            "created_at": 3,
        },
    ]


def test_usage_comes_in_pieces_and_the_last_count_wins_field_by_field() -> None:
    stream, out = streamed(
        {"type": "usage", "prompt_tokens": 5, "cached_tokens": 7},
        text("a"),
        {"type": "usage", "prompt_tokens": None, "cached_tokens": 8, "response_tokens": 0},
        FINISH,
    )
    expected = {"cached_tokens": 8, "prompt_tokens": 5, "thoughts_tokens": None, "response_tokens": 0}
    assert out[-1]["usage_metadata"] == expected
    assert stream.usage == expected


def test_a_piece_of_usage_without_any_count_is_usage() -> None:
    _, out = streamed(text("a"), {"type": "usage"}, FINISH)
    assert set(out[-1]["usage_metadata"].values()) == {None}
    assert len(out[-1]["usage_metadata"]) == 4


def test_the_last_finish_reason_that_is_one_wins() -> None:
    reasons = ["length", "stop", "", None]
    _, out = streamed(text("a"), USAGE, *({"type": "finish", "finish_reason": reason} for reason in reasons))
    assert out[-1]["finish_reason"] == "stop"


def test_the_message_is_what_the_events_add_up_to() -> None:
    stream, out = streamed(thinking("t", "1", s="x"), text("a"), call("f", "c", '{"a": 1}'), USAGE, FINISH)
    assert stream.message == concat_uni_events_to_uni_message(out)
    assert stream.message["content_items"] == stream.items
    assert stream.message["created_at"] == out[-1]["created_at"]


def test_a_consumer_cannot_change_the_message_through_the_events() -> None:
    raws = [text("a", "1", s=["x"]), call("f", "c", '{"a": [1]}'), data(b"x"), embedding(1.0), USAGE, FINISH]
    expected = copy.deepcopy(streamed(*raws)[0].message)
    clock = count(1)
    stream, out = EventStream(now=lambda: next(clock)), []
    for raw in copy.deepcopy(raws):
        stream.push([raw], out)
        spoil(out)
        out.clear()
    stream.close(out)
    spoil(out)
    assert stream.message is not None
    assert expected is not None
    assert {**stream.message, "created_at": 0} == {**expected, "created_at": 0}


def test_concatenation_without_a_stop_knows_no_usage() -> None:
    _, out = streamed(text("a"), USAGE, FINISH)
    message = concat_uni_events_to_uni_message(out[:-1])
    assert message["content_items"] == [{"type": "text.done", "text": "a"}]
    assert (message["usage_metadata"], message["finish_reason"], message["created_at"]) == (None, None, None)


def test_a_concatenated_message_shares_nothing_with_the_events() -> None:
    _, out = streamed(call("f", "c", '{"a": [1]}'), USAGE, FINISH)
    message = concat_uni_events_to_uni_message(out)
    expected = copy.deepcopy(message)
    spoil(out)
    assert message == expected


@pytest.mark.parametrize(
    ("raws", "missing"),
    [
        ([], ("usage_metadata", "finish_reason")),
        ([text("a"), USAGE], ("finish_reason",)),
        ([text("a"), FINISH], ("usage_metadata",)),
        ([thinking("only")], ("usage_metadata", "finish_reason")),
    ],
)
def test_a_stream_that_ends_early_says_what_never_came(raws: list[Any], missing: tuple[str, ...]) -> None:
    out, error = failing(*raws)
    assert isinstance(error, IncompleteStreamError)
    assert error.missing == missing
    assert error.client == "TestClient"
    assert error.finish_reason == (None if "finish_reason" in missing else "stop")
    assert (error.usage_metadata is None) is ("usage_metadata" in missing)
    assert [event["content_items"][0]["type"].partition(".")[2] for event in out] == ["delta", "done"][: len(out)]


@pytest.mark.parametrize("raws", [[], [thinking("t")], [data(b"x", thought=True)], [text("")]])
def test_an_answer_of_nothing_or_of_thinking_alone_is_an_error(raws: list[Any]) -> None:
    out, error = failing(*raws, USAGE, FINISH)
    assert isinstance(error, EmptyResponseError)
    assert (error.client, error.finish_reason) == ("TestClient", "stop")
    assert error.usage_metadata["prompt_tokens"] == 2
    assert "stop" not in [event["event_type"] for event in out]


def test_bad_arguments_win_over_a_missing_finish_and_an_empty_answer() -> None:
    out, error = failing(thinking("t"), call("f", "c", "{"))
    assert isinstance(error, ToolCallArgumentParseError)
    assert [event["content_items"][0]["type"] for event in out] == [
        *("thinking.delta", "thinking.done", "tool_call.delta"),
    ]


def test_events_before_a_fault_are_delivered_although_they_came_together_with_it() -> None:
    out, error = failing(text("a"), text("b"), args("{}"), text("never"))
    assert isinstance(error, StreamProtocolError)
    assert [event["content_items"][0].get("text") for event in out] == ["a", "b", "ab"]


@pytest.mark.parametrize(("reason", "named"), [("length", True), ("stop", False)])
def test_arguments_that_the_token_budget_cut_name_the_budget(reason: str, named: bool) -> None:
    _, error = failing(call("f", "c", '{"a": '), USAGE, {"type": "finish", "finish_reason": reason})
    assert isinstance(error, ToolCallArgumentParseError)
    assert ("raise max_tokens" in str(error)) is named
    assert str(copy.copy(error)) == str(error)
