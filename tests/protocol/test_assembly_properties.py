"""What holds for every stream, whatever a decoder yields."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from raw_deltas import Raw, args, assembled, call, data, done, embedding, specified, text, thinking

from mmsp_nb.protocol.assembly import EventStream
from mmsp_nb.protocol.errors import EmptyResponseError, MMSPError, StreamProtocolError, ToolCallArgumentParseError
from mmsp_nb.protocol.items import PAYLOAD_FIELD

USAGE, FINISH = {"type": "usage", "prompt_tokens": 1}, {"type": "finish", "finish_reason": "stop"}
OBJECTS = st.dictionaries(st.sampled_from("ab"), st.sampled_from([1, "}", [{}], {"c": '\\"'}, None]), max_size=2)

ids = st.sampled_from([None, "", "1", "2", "3"])
marks = st.sampled_from([{}, {}, {}, {"s": 1}, {"s": 2}])
words = st.sampled_from(["", "a", "bc", " "])
fragments = st.sampled_from(["", " ", "{", "}", "{}", '{"a": ', '"x"}', "1}", "[", '"', "\\"])
mimes = st.sampled_from(["image/png", "audio/wav", "audio/l16; rate=1", "IMAGE/GIF"])


def _raw(make: Any, **strategies: Any) -> st.SearchStrategy[Raw]:
    def build(mark: dict[str, Any], **arguments: Any) -> Raw:
        return make(**arguments, **mark)

    return st.builds(build, mark=marks, id=ids, **strategies)


anything = st.one_of(
    _raw(text, value=words),
    _raw(thinking, value=words),
    _raw(data, value=st.sampled_from([b"", b"x"]), mime=mimes, thought=st.booleans()),
    _raw(call, name=st.sampled_from(["f", "g", ""]), call_id=st.sampled_from(["c1", "c2", ""]), arguments=fragments),
    _raw(args, arguments=fragments),
    st.builds(embedding, st.just(1.0)),
    st.sampled_from([{"type": "text.done", "text": "x"}, {"type": "nonsense"}]),
)


def check_runs(items: list[Raw], *, complete: bool) -> None:
    """S2 to S6 and S9, for the items of a stream or for the part of it before a fault."""
    run: list[Raw] = []
    for item in items:
        kind, _, phase = item["type"].partition(".")
        assert all(before["type"] == f"{kind}.delta" for before in run)
        assert "item_id" not in item.get("fidelity", {})
        assert item.get("fidelity") != {}
        if phase == "delta":
            run.append(item)
            continue
        assert phase == "done"
        assert run
        check_done(kind, run, item)
        run = []
    assert not (complete and run)


def check_done(kind: str, run: list[Raw], item: Raw) -> None:
    field = PAYLOAD_FIELD[kind]
    joined = run[0][field]
    for other in run[1:]:
        joined = joined + other[field]
    if kind == "tool_call":
        joined = json.loads(joined or "{}")
        assert isinstance(joined, dict)
        assert item["name"]
        assert item["tool_call_id"]
    marks = [other["fidelity"] for other in run if "fidelity" in other]
    assert marks == ([item["fidelity"]] if "fidelity" in item else [])
    first = {key: value for key, value in run[0].items() if key != "fidelity"}
    rest = {key: value for key, value in item.items() if key != "fidelity"}
    assert rest == {**first, "type": f"{kind}.done", field: joined}


@given(st.lists(anything, max_size=12))
def test_items_come_run_by_run_up_to_the_end_or_to_a_fault(raws: list[Raw]) -> None:
    out, error = assembled(raws)
    assert error is None or isinstance(error, StreamProtocolError | ToolCallArgumentParseError)
    check_runs(out, complete=error is None)


@given(st.lists(anything, max_size=12), st.integers(1, 4))
def test_a_stream_is_deltas_and_one_stop_or_ends_in_a_documented_error(raws: list[Raw], size: int) -> None:
    stream, out = EventStream(), []
    together = [*raws, USAGE, FINISH]
    try:
        for at in range(0, len(together), size):
            stream.push(together[at : at + size], out)
        stream.close(out)
    except MMSPError as error:
        assert isinstance(error, StreamProtocolError | ToolCallArgumentParseError | EmptyResponseError)
        assert all(event["event_type"] == "delta" for event in out)
        assert stream.message is None
        return
    *deltas, stop = out
    assert stop["event_type"] == "stop"
    assert stop["content_items"] == []
    assert set(stop["usage_metadata"]) == {"cached_tokens", "prompt_tokens", "thoughts_tokens", "response_tokens"}
    for event in deltas:
        assert event["event_type"] == "delta"
        assert len(event["content_items"]) == 1
        assert event["usage_metadata"] is event["finish_reason"] is None
    items = [event["content_items"][0] for event in deltas]
    assert stream.message is not None
    assert stream.message["content_items"] == done(items)
    assert any("thinking" not in item["type"] for item in done(items))


@given(st.lists(anything, max_size=12), st.integers(0, 12))
def test_what_was_delivered_at_a_cut_is_the_beginning_of_the_whole(raws: list[Raw], cut: int) -> None:
    """A provider's stream may fail at any time: nothing that went out until then depends on the rest."""
    stream, before = EventStream(now=lambda: 0), []
    after: list[Any] = []
    try:
        stream.push(raws[:cut], before)
        after = list(before)
        stream.push(raws[cut:], after)
        stream.close(after)
    except MMSPError:
        pass
    assert after[: len(before)] == before or not after
    check_runs([event["content_items"][0] for event in before], complete=False)


without_fidelity = st.one_of(
    st.builds(text, words, ids),
    st.builds(thinking, words, ids),
    st.builds(data, st.sampled_from([b"", b"x"]), mimes.filter(lambda m: m.startswith("audio")), ids),
    st.builds(data, st.sampled_from([b"", b"x"]), mimes, ids, thought=st.just(True)),
    st.builds(
        call, st.sampled_from(["f", "g"]), st.sampled_from(["c1", "c2"]), st.sampled_from(["{}", '{"a": 1}', "[]"])
    ),
    st.builds(embedding, st.just(1.0)),
)


@given(st.lists(without_fidelity, max_size=12))
def test_without_fidelity_and_parallel_calls_everything_is_as_specified(raws: list[Raw]) -> None:
    out, error = assembled(raws)
    assert (out, error and type(error)) == specified(raws)


@st.composite
def orderly(draw: st.DrawFn) -> list[Raw]:
    """A response as vendors mean it: one item after the other, each under an id of its own."""
    raws: list[Raw] = []
    with_ids = draw(st.booleans())
    for number in range(draw(st.integers(0, 5))):
        id = str(number) if with_ids else None
        kind = draw(st.sampled_from(["text", "thinking", "image", "call", *(["audio"] if with_ids else [])]))
        mark = draw(st.sampled_from([{}, {"s": id}]))
        first, last = (mark, {}) if draw(st.booleans()) else ({}, mark)
        pieces = draw(st.lists(st.sampled_from(["a", "b", ""]), max_size=3))
        if kind == "call":
            whole = json.dumps(draw(OBJECTS))
            split = draw(st.integers(0, len(whole)))
            raws += [call("f", f"c{number}", "", id, **first), args(whole[:split], id), args(whole[split:], id, **last)]
        elif kind in ("text", "thinking"):
            make = text if kind == "text" else thinking
            raws += [make("", id, **first), *(make(piece, id) for piece in pieces), make("", id, **last)]
        else:
            mime = f"{kind}/x"
            raws += [data(b"x", mime, id, **first), *(data(b"y", mime, id) for _ in pieces if kind == "audio")]
            if last and id:
                raws.append(thinking("", id, **last))
    return raws


@given(orderly())
def test_an_orderly_response_is_as_specified(raws: list[Raw]) -> None:
    out, error = assembled(raws)
    assert (out, error and type(error)) == specified(raws)


@st.composite
def interleaved(draw: st.DrawFn) -> tuple[list[Raw], dict[str, Any]]:
    """The fragments of several parallel calls in any order, and the arguments by call id."""
    queues, wanted = [], {}
    for number in range(draw(st.integers(1, 5))):
        name, call_id, id = f"f{number % 2}", f"c{number}", str(number)
        wanted[call_id] = draw(OBJECTS)
        whole = json.dumps(wanted[call_id])
        cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=4)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        repeated = draw(st.booleans())
        opening = call(name, call_id, "", id)
        queues.append([opening, *(call(name, call_id, p, id) if repeated else args(p, id) for p in pieces)])
    raws: list[Raw] = []
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        raws.append(queue.pop(0))
    return raws, wanted


@given(interleaved())
def test_parallel_calls_in_any_order_keep_their_arguments(case: tuple[list[Raw], dict[str, Any]]) -> None:
    raws, wanted = case
    out, error = assembled(raws)
    assert error is None
    check_runs(out, complete=True)
    assert {item["tool_call_id"]: item["arguments"] for item in done(out)} == wanted
    assert len(done(out)) == len(wanted)
