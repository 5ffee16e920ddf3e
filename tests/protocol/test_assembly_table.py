"""The worked edge cases of the protocol, row by row, and what an assembler refuses."""

from __future__ import annotations

from typing import Any

import pytest
from raw_deltas import args, assembled, call, data, done, embedding, public, specified, text, thinking

from mmsp_nb.protocol.assembly import Assembler
from mmsp_nb.protocol.errors import MMSPError, StreamProtocolError, ToolCallArgumentParseError

PHASE = {"phase": "p"}


def delta(kind: str, payload: Any, **more: Any) -> dict[str, Any]:
    field = {"text": "text", "thinking": "thinking", "inline_data": "data", "embedding": "embedding"}[kind]
    return {"type": f"{kind}.delta", field: payload, **more}


def finished(kind: str, payload: Any, **more: Any) -> dict[str, Any]:
    return {**delta(kind, payload, **more), "type": f"{kind}.done"}


def call_delta(arguments: str, name: str = "", call_id: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "tool_call.delta", "name": name, "arguments": arguments, "tool_call_id": call_id, **more}


def call_done(name: str, call_id: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "tool_call.done", "name": name, "arguments": arguments, "tool_call_id": call_id, **more}


PNG = {"mime_type": "image/png"}

ROWS: dict[str, tuple[list[Any], list[Any]]] = {
    "a delta without an id continues the item": (
        [text("a", "1"), text("b")],
        [delta("text", "a"), delta("text", "b"), finished("text", "ab")],
    ),
    "an item without an id takes the first that comes": (
        [text("a"), text("b", "1"), text("c", "2")],
        [delta("text", "a"), delta("text", "b"), finished("text", "ab"), delta("text", "c"), finished("text", "c")],
    ),
    "an empty delta under a new id ends the item": (
        [text("a", "1"), text("", "2"), text("b", "2")],
        [delta("text", "a"), finished("text", "a"), delta("text", "b"), finished("text", "b")],
    ),
    "an item of another kind that stays empty vanishes, but it ended the one before": (
        [text("a", "1"), thinking("", "2"), text("b", "1")],
        [delta("text", "a"), finished("text", "a"), delta("text", "b"), finished("text", "b")],
    ),
    "fidelity may come first, in an empty delta": (
        [text("", "1", **PHASE), text("a", "1")],
        [delta("text", "", fidelity=PHASE), delta("text", "a"), finished("text", "a", fidelity=PHASE)],
    ),
    "fidelity may come last, in an empty delta": (
        [text("a"), text("", **PHASE)],
        [delta("text", "a"), delta("text", "", fidelity=PHASE), finished("text", "a", fidelity=PHASE)],
    ),
    "the same fidelity goes out once, another one begins an item": (
        [text("a", p=1), text("b", p=1), text("c", p=2)],
        [
            *(delta("text", "a", fidelity={"p": 1}), delta("text", "b"), finished("text", "ab", fidelity={"p": 1})),
            *(delta("text", "c", fidelity={"p": 2}), finished("text", "c", fidelity={"p": 2})),
        ],
    ),
    "an item adopts the fidelity that comes under its id in an empty delta of another kind": (
        [data(b"x", id="1"), thinking("", "1", s=1)],
        [
            delta("inline_data", b"x", **PNG),
            delta("inline_data", b"", **PNG, fidelity={"s": 1}),
            finished("inline_data", b"x", **PNG, fidelity={"s": 1}),
        ],
    ),
    "fidelity under another id is an item of its own": (
        [data(b"x", id="1"), thinking("", "2", s=1)],
        [
            *(delta("inline_data", b"x", **PNG), finished("inline_data", b"x", **PNG)),
            *(delta("thinking", "", fidelity={"s": 1}), finished("thinking", "", fidelity={"s": 1})),
        ],
    ),
    "arguments under an id that no call has continue the running call": (
        [call("f", "c1", "{", "a"), call("", "c9", "}", "b")],
        [call_delta("{", "f", "c1"), call_delta("}", "", "c9"), call_done("f", "c1", {})],
    ),
    "a name begins a call": (
        [call("f", "c1", "{}"), call("f", "c1", "{}")],
        [call_delta("{}", "f", "c1"), call_done("f", "c1", {}), call_delta("{}", "f", "c1"), call_done("f", "c1", {})],
    ),
    "a completely empty first delta does no harm": (
        [args(""), call("f", "c", "{}")],
        [call_delta("{}", "f", "c"), call_done("f", "c", {})],
    ),
    "arguments may be missing altogether": (
        [call("f", "c")],
        [call_delta("", "f", "c"), call_done("f", "c", {})],
    ),
    "sound goes on although the details of its type change": (
        [data(b"x", "audio/a"), data(b"y", "audio/b; rate=1")],
        [
            delta("inline_data", b"x", mime_type="audio/a"),
            delta("inline_data", b"y", mime_type="audio/b; rate=1"),
            finished("inline_data", b"xy", mime_type="audio/a"),
        ],
    ),
    "each image is an item": (
        [data(b"x"), data(b"y")],
        [
            *(delta("inline_data", b"x", **PNG), finished("inline_data", b"x", **PNG)),
            *(delta("inline_data", b"y", **PNG), finished("inline_data", b"y", **PNG)),
        ],
    ),
    "sound after an image is another item": (
        [data(b"x", id="1"), data(b"y", "audio/a", "1"), data(b"z", "audio/a", "1")],
        [
            *(delta("inline_data", b"x", **PNG), finished("inline_data", b"x", **PNG)),
            *(delta("inline_data", b"y", mime_type="audio/a"), delta("inline_data", b"z", mime_type="audio/a")),
            finished("inline_data", b"yz", mime_type="audio/a"),
        ],
    ),
    "each embedding is an item, an empty one too": (
        [embedding(1.0), embedding()],
        [
            *(delta("embedding", [1.0]), finished("embedding", [1.0])),
            *(delta("embedding", []), finished("embedding", [])),
        ],
    ),
    "what else the first delta holds stays on the done item": (
        [{**text("a"), "note": [1]}, {**text("b"), "other": 2}],
        [delta("text", "a", note=[1]), delta("text", "b", other=2), finished("text", "ab", note=[1])],
    ),
    "an id that is empty counts as none": (
        [text("a", "1"), text("b", "")],
        [delta("text", "a"), delta("text", "b"), finished("text", "ab")],
    ),
    "nothing comes of nothing": ([text(""), thinking("", "1")], []),
}
# The rows in which the package does better than the plain algorithm, on purpose.
BETTER = {
    "the same fidelity goes out once, another one begins an item",
    "sound after an image is another item",
}


@pytest.mark.parametrize("row", ROWS)
def test_raw_deltas_become_public_items(row: str) -> None:
    raws, expected = ROWS[row]
    assert public(raws) == expected


@pytest.mark.parametrize("row", ROWS)
def test_the_plain_algorithm_agrees_where_nothing_was_improved(row: str) -> None:
    raws, expected = ROWS[row]
    assert (specified(raws) == (expected, None)) is (row not in BETTER)


FAULTS: dict[str, tuple[list[Any], type[MMSPError], list[str]]] = {
    "no delta": ([text("a"), {"type": "text.done", "text": "b"}], StreamProtocolError, ["text.delta"]),
    "unknown kind": ([{"type": "video.delta", "video": b""}], StreamProtocolError, []),
    "no type": ([{"text": "a"}], StreamProtocolError, []),
    "call without name and id": ([text("a"), args("{}")], StreamProtocolError, ["text.delta", "text.done"]),
    "call without name": ([call("", "c", "{}")], StreamProtocolError, []),
    "call without id": ([call("f", "", "{}")], StreamProtocolError, []),
    "two fidelities": ([call("f", "c", "", "1", s=1), args("{}", "1", s=2)], StreamProtocolError, ["tool_call.delta"]),
    "payload of a wrong type": ([text("a"), {"type": "text.delta", "text": 5}], StreamProtocolError, ["text.delta"]),
    "name of a wrong type": ([{**call("f", "c"), "name": 5}], StreamProtocolError, []),
    "data without a type": ([{"type": "inline_data.delta", "data": b"", "mime_type": 1}], StreamProtocolError, []),
    "array": ([call("f", "c", "[1]")], ToolCallArgumentParseError, ["tool_call.delta"]),
    "string": ([call("f", "c", '"a"')], ToolCallArgumentParseError, ["tool_call.delta"]),
    "not a number": ([call("f", "c", '{"a": NaN}')], ToolCallArgumentParseError, ["tool_call.delta"]),
    "infinite": ([call("f", "c", '{"a": -Infinity}')], ToolCallArgumentParseError, ["tool_call.delta"]),
    "a number out of range": ([call("f", "c", '{"a": 1e999}')], ToolCallArgumentParseError, ["tool_call.delta"]),
    "nested beyond reason": ([call("f", "c", '{"a":' * 200_000)], ToolCallArgumentParseError, ["tool_call.delta"]),
    "cut": ([call("f", "c", '{"a": '), args("1")], ToolCallArgumentParseError, ["tool_call.delta"] * 2),
    "cut, then another call": (
        [text("x"), call("f", "c", '{"a": '), call("g", "d", "{}")],
        ToolCallArgumentParseError,
        ["text.delta", "text.done", "tool_call.delta"],
    ),
    "cut, then text": (
        [call("f", "c", "{}"), call("g", "d", "{"), text("x")],
        ToolCallArgumentParseError,
        ["tool_call.delta", "tool_call.done", "tool_call.delta"],
    ),
    "two objects": ([call("f", "c", "{}", "1"), args("{}", "1")], ToolCallArgumentParseError, ["tool_call.delta"] * 2),
}  # fmt: skip


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_raises_after_everything_before_it_was_delivered(what: str) -> None:
    raws, expected, before = FAULTS[what]
    out, error = assembled(raws)
    assert type(error) is expected
    assert [item["type"] for item in out] == before
    assert error.client == "TestClient"


def test_a_payload_that_is_none_counts_as_empty() -> None:
    assert public([text("a"), {"type": "text.delta", "text": None}]) == public([text("a")])


def test_missing_strings_of_a_call_count_as_empty() -> None:
    raws = [call("f", "c", "{"), {"type": "tool_call.delta", "name": None, "arguments": "}", "tool_call_id": None}]
    assert done(public(raws)) == [call_done("f", "c", {})]


def test_data_may_come_as_any_kind_of_bytes() -> None:
    raws = [data(bytearray(b"a"), "audio/a"), data(memoryview(b"b"), "audio/a")]  # type: ignore[arg-type]
    items = public(raws)
    assert [type(item["data"]) for item in items] == [bytes] * 3
    assert items[-1]["data"] == b"ab"


def test_the_parse_error_says_which_call_and_shows_both_ends_of_its_arguments() -> None:
    broken = '{"a": "' + "x" * 200
    _, error = assembled([call("tide", "c-1", broken)])
    assert isinstance(error, ToolCallArgumentParseError)
    assert (error.tool_name, error.tool_call_id, error.raw_arguments_length) == ("tide", "c-1", 207)
    assert error.raw_arguments_preview == broken[:72] + "...[truncated]..." + broken[-72:]
    assert "tide" in str(error)
    assert "\n" not in str(error)


def test_the_recorded_items_are_those_delivered() -> None:
    assembler, out = Assembler(), []
    for raw in [thinking("t", s=1), text("a"), call("f", "c", '{"a": [1]}'), embedding(1.0)]:
        assembler.push(raw, out)
    assembler.close(out)
    assert assembler.items == done(out)


def test_a_consumer_that_changes_what_it_gets_changes_nothing_that_is_recorded() -> None:
    raws = [
        *({**text("a", "1", s=[1]), "note": {"n": [1]}}, text("b", "1"), call("f", "c", '{"a": [1]}', "2", k={"x": 1})),
        *(data(b"x"), embedding(1.0, 2.0)),
    ]
    untouched, _ = assembled(raws)
    assembler, out = Assembler(), []
    for raw in raws:
        assembler.push(raw, out)
        for item in out:
            spoil(item)
    assembler.close(out)
    assert assembler.items == done(untouched)


def spoil(value: Any) -> None:
    """Change whatever can be changed in ``value``, however deep."""
    if isinstance(value, dict):
        for inner in value.values():
            spoil(inner)
        value["spoilt"] = True
    elif isinstance(value, list):
        for inner in value:
            spoil(inner)
        value.append("spoilt")
