"""Parallel tool calls: fragments in any order, repeated names, shared indexes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from raw_deltas import Raw, args, assembled, call, done, public, specified, text, thinking

from mmsp_nb.protocol.assembly import Assembler
from mmsp_nb.protocol.errors import StreamProtocolError, ToolCallArgumentParseError


def calls(raws: list[Raw]) -> list[tuple[str, str, dict[str, Any]]]:
    """The calls of a response that must be fine."""
    items = [item for item in done(public(raws)) if item["type"] == "tool_call.done"]
    return [(item["name"], item["tool_call_id"], item["arguments"]) for item in items]


def merges(*sequences: list[Raw]) -> Iterator[list[Raw]]:
    """All the ways in which the sequences can interleave."""
    if not any(sequences):
        yield []
    for number, sequence in enumerate(sequences):
        if sequence:
            rest = [other if n != number else sequence[1:] for n, other in enumerate(sequences)]
            for tail in merges(*rest):
                yield [sequence[0], *tail]


def check_order(items: list[Raw]) -> None:
    """The deltas of one item, then its done, then the next."""
    kind, joined = None, ""
    for item in items:
        this, _, phase = item["type"].partition(".")
        assert kind in (None, this)
        if this == "tool_call":
            if phase == "done":
                assert item["arguments"] == json.loads(joined or "{}")
                joined = ""
            else:
                assert bool(item["name"]) is (kind is None)
                joined += item["arguments"]
        kind = None if phase == "done" else this


A = [call("f", "c1", "", "0"), args('{"a": ', "0"), args('"}{"}', "0")]
B = [call("g", "c2", '{"b": [', "1"), args("1", "1"), args("]}", "1")]
C = [call("h", "c3", "{}", "2")]
WANTED = {"f": ("f", "c1", {"a": "}{"}), "g": ("g", "c2", {"b": [1]}), "h": ("h", "c3", {})}


@pytest.mark.parametrize("sequences", [(A, B), (A, B, C), (A, C), (B, C)], ids=["AB", "ABC", "AC", "BC"])
def test_every_interleaving_of_parallel_calls_gives_the_right_calls_in_the_order_they_began(
    sequences: tuple[list[Raw], ...],
) -> None:
    for raws in merges(*sequences):
        items = public(raws)
        began = [raw["name"] for raw in raws if raw["name"]]
        assert calls(raws) == [WANTED[name] for name in began]
        check_order(items)


def test_a_text_among_the_fragments_of_a_call_waits_for_the_end_of_the_call() -> None:
    for raws in merges(A, [text("x", "t"), text("y", "t")]):
        items = public(raws)
        check_order(items)
        assert calls(raws) == [WANTED["f"]]
        assert "".join(item["text"] for item in done(items) if item["type"] == "text.done") == "xy"


@pytest.mark.parametrize("sequences", [(A, B), (A, [thinking("t", "t"), text("x", "u")]), (A, B, C)])
def test_wherever_a_stream_is_cut_no_call_is_done_with_partial_arguments(sequences: tuple[list[Raw], ...]) -> None:
    whole = list(WANTED.values())
    for raws in merges(*sequences):
        for cut in range(len(raws) + 1):
            out, error = assembled(raws[:cut])
            found = [(i["name"], i["tool_call_id"], i["arguments"]) for i in done(out) if i["type"] == "tool_call.done"]
            # a call of which only the name came is a call without arguments: nothing tells them apart
            assert all(one in whole or one == ("f", "c1", {}) for one in found)
            assert error is None or isinstance(error, ToolCallArgumentParseError)


def test_what_is_complete_goes_out_at_once() -> None:
    assembler, out = Assembler(), []
    for raw in [*C, call("g", "c2", "{", "1")]:
        assembler.push(raw, out)
    assert [item["type"] for item in out] == ["tool_call.delta", "tool_call.done", "tool_call.delta"]


def test_what_waited_goes_out_with_the_fragment_that_completes_the_call_before_it() -> None:
    assembler, out = Assembler(), []
    for raw in [A[0], A[1], *C, text("x", "t")]:
        assembler.push(raw, out)
    assert [item["type"] for item in out] == ["tool_call.delta"] * 2
    out.clear()
    assembler.push(A[2], out)
    assert [item["type"] for item in out] == [
        *("tool_call.delta", "tool_call.done", "tool_call.delta", "tool_call.done", "text.delta"),
    ]
    out.clear()
    assembler.push(text("y", "t"), out)
    assembler.close(out)
    assert [item.get("text") for item in out] == ["y", "xy"]


def test_calls_without_ids_of_their_own_are_closed_by_whatever_follows() -> None:
    raws = [call("f", "c1"), call("g", "c2", "{"), args("}"), text("x")]
    assert (public(raws), None) == specified(raws)


def test_blanks_after_the_arguments_are_harmless_also_when_they_come_late() -> None:
    sequence = [call("f", "c1", "{}", "0"), call("g", "c2", "{}", "1"), args(" \n", "0"), text("x", "t"), args("", "1")]
    assert calls(sequence) == [("f", "c1", {}), ("g", "c2", {})]
    assert calls([call("f", "c1", "{} ", "0"), args("\n", "0")]) == [("f", "c1", {})]


def test_blanks_for_a_call_that_is_done_do_not_split_the_text_around_them() -> None:
    raws = [call("f", "c1", "{}", "0"), text("a", "t"), args(" ", "0"), text("b", "t")]
    assert [item["text"] for item in done(public(raws)) if item["type"] == "text.done"] == ["ab"]


def test_arguments_for_a_call_that_is_done_are_a_fault_when_no_other_call_runs() -> None:
    out, error = assembled([call("f", "c1", "{}", "0"), text("a", "t"), args("{}", "0")])
    assert isinstance(error, StreamProtocolError)
    assert [item["type"] for item in out] == ["tool_call.delta", "tool_call.done", "text.delta", "text.done"]


def test_a_fault_while_something_waits_is_raised_after_what_waited() -> None:
    raws = [call("f", "c1", "", "0"), text("a", "t"), call("g", "", "{}", "1")]
    out, error = assembled(raws)
    assert isinstance(error, StreamProtocolError)
    assert [item["type"] for item in done(out)] == ["tool_call.done", "text.done"]


def test_a_cut_call_is_raised_before_the_fault_that_came_later() -> None:
    raws = [call("f", "c1", "{", "0"), text("a", "t"), {"type": "nonsense"}]
    out, error = assembled(raws)
    assert isinstance(error, ToolCallArgumentParseError)
    assert [item["type"] for item in out] == ["tool_call.delta"]


@pytest.mark.parametrize(
    "pieces", [['{"a', '": 1}'], ["", '{"a": 1}'], ['{"a": 1}', ""], ["", "", '{"a": 1}', " "], ["{", '"a": 1', "}"]]
)
@pytest.mark.parametrize("id", [None, "0"])
@pytest.mark.parametrize("repeated_id", ["c1", ""])
def test_a_name_repeated_on_each_fragment_is_one_call(pieces: list[str], id: str | None, repeated_id: str) -> None:
    raws = [call("f", "c1" if n == 0 else repeated_id, piece, id) for n, piece in enumerate(pieces)]
    items = public(raws)
    assert calls(raws) == [("f", "c1", {"a": 1})]
    assert [item["name"] for item in items[1:-1]] == [""] * (len(items) - 2)


def test_names_repeated_on_interleaved_fragments_are_sorted_by_the_id() -> None:
    one = [call("f", "c1", piece, "0") for piece in ('{"a"', ": 1}")]
    two = [call("f", "c2", piece, "1") for piece in ('{"a"', ": 2}")]
    for raws in merges(one, two):
        assert sorted(call[1:] for call in map(list, calls(raws))) == [["c1", {"a": 1}], ["c2", {"a": 2}]]


def test_an_index_shared_by_complete_calls_does_not_join_them() -> None:
    raws = [call("f", "c1", '{"a": 1}', "0"), call("f", "c2", '{"a": 2}', "0"), call("g", "c3", "{}", "0")]
    assert calls(raws) == [("f", "c1", {"a": 1}), ("f", "c2", {"a": 2}), ("g", "c3", {})]


def test_an_index_shared_by_calls_in_pieces_does_not_join_them() -> None:
    raws = [
        *(call("f", "c1", "", "0"), args('{"a"', "0"), args(": 1}", "0")),
        *(call("f", "c2", "", "0"), args('{"a"', "0"), args(": 2}", "0")),
    ]
    assert calls(raws) == [("f", "c1", {"a": 1}), ("f", "c2", {"a": 2})]


def test_an_index_shared_by_calls_without_arguments_does_not_join_them() -> None:
    assert calls([call("f", "c1", "", "0"), call("f", "c2", "", "0")]) == [("f", "c1", {}), ("f", "c2", {})]


def test_a_server_that_changes_the_call_id_on_each_fragment_still_makes_one_call() -> None:
    raws = [call("f", "c1", '{"a"', "0"), call("f", "c2", ": 1}", "0")]
    assert calls(raws) == [("f", "c1", {"a": 1})]


def test_a_call_keeps_its_fidelity_when_others_come_between() -> None:
    raws = [call("f", "c1", "{", "0"), call("g", "c2", "{}", "1"), thinking("", "0", signature="s"), args("}", "0")]
    first, second = done(public(raws))
    assert first["fidelity"] == {"signature": "s"}
    assert "fidelity" not in second


def test_fidelity_for_a_call_that_waits_reaches_it() -> None:
    raws = [call("f", "c1", "{", "0"), call("g", "c2", "{}", "1"), thinking("", "1", signature="s"), args("}", "0")]
    first, second = done(public(raws))
    assert "fidelity" not in first
    assert second["fidelity"] == {"signature": "s"}


def test_many_small_fragments_of_waiting_calls_take_linear_time() -> None:
    big = '{"a": [' + ", ".join('"x}"' for _ in range(20_000)) + "]}"
    pieces = [big[at : at + 4] for at in range(0, len(big), 4)]
    raws = [call("f", "c1", "", "0"), call("g", "c2", "", "1")]
    for piece in pieces:
        raws += [args(piece, "0"), args(piece, "1")]
    assert [arguments["a"] for _, _, arguments in calls(raws)] == [["x}"] * 20_000] * 2


def test_numbers_are_kept_as_they_were_written() -> None:
    raws = [call("f", "c", '{"a": 0.1, "b": -1e3, "c": 12345678901234567890}')]
    assert calls(raws) == [("f", "c", {"a": 0.1, "b": -1000.0, "c": 12345678901234567890})]


def test_the_name_of_a_call_that_is_done_may_begin_another_under_the_same_id() -> None:
    raws = [call("f", "c1", "{}", "0"), text("a", "t"), call("g", "c2", "", "0"), args("{}", "0")]
    assert calls(raws) == [("f", "c1", {}), ("g", "c2", {})]
