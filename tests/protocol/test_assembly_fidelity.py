"""Fidelity that comes late, twice, or for another item than the one that is running."""

from __future__ import annotations

from raw_deltas import args, call, data, done, public, text, thinking

from mmsp_nb.protocol.assembly import Assembler


def summary(raws: list) -> list[tuple]:
    """Kind, payload and fidelity of each done item."""
    found = []
    for item in done(public(raws)):
        kind = item["type"].removesuffix(".done")
        found.append((kind, item.get("text", item.get("thinking", item.get("data"))), item.get("fidelity")))
    return found


def test_a_signature_that_comes_after_the_next_item_was_announced_still_reaches_its_item() -> None:
    raws = [thinking("t", "r"), text("", "m"), thinking("", "r", enc="e"), text("a", "m"), text("b", "m")]
    assert public(raws) == [
        {"type": "thinking.delta", "thinking": "t"},
        {"type": "thinking.delta", "thinking": "", "fidelity": {"enc": "e"}},
        {"type": "thinking.done", "thinking": "t", "fidelity": {"enc": "e"}},
        {"type": "text.delta", "text": "a"},
        {"type": "text.delta", "text": "b"},
        {"type": "text.done", "text": "ab"},
    ]


def test_an_announcement_alone_ends_thinking_at_the_end_of_the_stream() -> None:
    assert summary([thinking("t", "r"), text("", "m")]) == [("thinking", "t", None)]


def test_thinking_that_has_its_signature_is_done_as_soon_as_the_next_item_is_announced() -> None:
    assembler, out = Assembler(), []
    for raw in [thinking("t", "r", s=1), text("", "m")]:
        assembler.push(raw, out)
    assert [item["type"] for item in out] == ["thinking.delta", "thinking.done"]


def test_a_signature_that_comes_in_the_middle_of_the_next_item_is_dropped_and_splits_nothing() -> None:
    raws = [thinking("t", "r"), text("a", "m"), thinking("", "r", enc="e"), text("b", "m")]
    assert summary(raws) == [("thinking", "t", None), ("text", "ab", None)]


def test_a_late_signature_in_the_middle_of_a_call_splits_nothing() -> None:
    raws = [thinking("t", "r"), call("f", "c", "{", "1"), thinking("", "r", enc="e"), args("}", "1")]
    assert [item["type"] for item in done(public(raws))] == ["thinking.done", "tool_call.done"]


def test_a_signature_under_a_used_id_at_the_end_is_an_item_of_its_own() -> None:
    raws = [thinking("t", "r"), text("a", "m"), thinking("", "r", enc="e")]
    assert summary(raws) == [("thinking", "t", None), ("text", "a", None), ("thinking", "", {"enc": "e"})]
    raws = [text("a", "m"), call("f", "c", "{}", "1"), text("", "m", sig="s"), thinking("x", "r")]
    assert [(kind, fidelity) for kind, _, fidelity in summary(raws)] == [
        *(("text", None), ("tool_call", None), ("text", {"sig": "s"}), ("thinking", None)),
    ]


def test_the_same_late_signature_twice_is_one_item() -> None:
    raws = [thinking("t", "r"), text("a", "m"), thinking("", "r", enc="e"), thinking("", "r", enc="e")]
    assert [fidelity for _, _, fidelity in summary(raws)] == [None, None, {"enc": "e"}]


def test_two_signed_blocks_in_a_row_are_two_items() -> None:
    assert summary([thinking("", "d", enc="1"), thinking("", "d", enc="2")]) == [
        *(("thinking", "", {"enc": "1"}), ("thinking", "", {"enc": "2"})),
    ]
    assert summary([text("a", "t", s=1), text("b", "t", s=2), text("c", "t")]) == [
        *(("text", "a", {"s": 1}), ("text", "bc", {"s": 2})),
    ]


def test_a_signed_image_does_not_adopt_a_second_signature() -> None:
    raws = [data(b"x", id="1", s=1), thinking("", "1", s=2)]
    assert summary(raws) == [("inline_data", b"x", {"s": 1}), ("thinking", "", {"s": 2})]


def test_the_same_fidelity_again_is_not_sent_again() -> None:
    raws = [data(b"x", id="1", s=1), thinking("", "1", s=1)]
    assert len(public(raws)) == 2


def test_fidelity_on_every_delta_goes_out_once() -> None:
    raws = [thinking(word, "r", field="reasoning") for word in ("a", "b", "c", "d")]
    items = public(raws)
    assert [item.get("fidelity") for item in items] == [
        {"field": "reasoning"},
        None,
        None,
        None,
        {"field": "reasoning"},
    ]


def test_an_item_without_an_id_is_not_mistaken_for_one_with_fidelity() -> None:
    items = public([text("a"), text("b", phase="x"), text("c", phase="x")])
    assert [item.get("fidelity") for item in items] == [None, {"phase": "x"}, None, {"phase": "x"}]


def test_a_decoder_may_use_one_dict_for_all_its_deltas() -> None:
    shared = {"item_id": "1"}
    assembler, out = Assembler(), []
    for id, word in ("1", "a"), ("1", "b"), ("2", "c"):
        shared["item_id"] = id
        assembler.push({"type": "text.delta", "text": word, "fidelity": shared}, out)
    assembler.close(out)
    assert [item["text"] for item in done(out)] == ["ab", "c"]
