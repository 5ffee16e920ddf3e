"""Making a history sendable to another vendor."""

from __future__ import annotations

import base64
import copy
import string
from typing import Any

import pytest

from mmsp_nb.protocol.items import REDACTED_THINKING
from mmsp_nb.protocol.repairs import (
    BEGINNING,
    IMAGE_ABOVE,
    IMAGE_BELOW,
    IMAGE_GONE,
    NO_RESULT,
    NO_THOUGHT,
    RepairReport,
    Traits,
    repair,
)
from mmsp_nb.protocol.validation import check_messages

STRICT = Traits(
    empty_text="none",
    thinking="signed",
    refused=frozenset({"inline_data", "inline_thinking", "embedding"}),
    assistant_images=False,
    silent_messages=False,
    paired_calls=True,
    id_characters=string.ascii_letters + string.digits + "_-",
    id_length=64,
    unique_ids=True,
    user_first=True,
    alternating=True,
)


def user(*items: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content_items": [text(i) if isinstance(i, str) else i for i in items], **more}


def assistant(*items: Any, **more: Any) -> dict[str, Any]:
    return {**user(*items), "role": "assistant", **more}


def text(value: str, **fidelity: Any) -> dict[str, Any]:
    return {"type": "text.done", "text": value, **({"fidelity": fidelity} if fidelity else {})}


def thinking(value: str, **fidelity: Any) -> dict[str, Any]:
    return {"type": "thinking.done", "thinking": value, **({"fidelity": fidelity} if fidelity else {})}


def call(id: str, name: str = "f") -> dict[str, Any]:
    return {"type": "tool_call.done", "name": name, "arguments": {}, "tool_call_id": id}


def result(id: str, value: str = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result.done", "text": value, "tool_call_id": id, **more}


def image(mime_type: str = "image/png") -> dict[str, Any]:
    return {"type": "inline_data.done", "data": b"png", "mime_type": mime_type}


URL = {"type": "image_url.done", "image_url": "https://x/y.png"}


def repaired(messages: list[Any], traits: Traits = STRICT, **options: Any) -> tuple[list[Any], RepairReport]:
    """The outcome, checked for what holds of every repair."""
    before = copy.deepcopy(messages)
    out, report = repair(messages, traits=traits, **options)
    assert messages == before
    check_messages(out)
    again, nothing = repair(out, traits=traits)
    assert (again, bool(nothing)) == (out, False)
    return out, report


def whats(report: RepairReport) -> list[tuple[int, str]]:
    return [(change.message, change.what) for change in report.changes]


ORDINARY = [
    user("What's the tide?", URL, created_at=1),
    assistant(thinking("Hm.", signature="s"), "I look.", call("c1"), call("c2"), usage_metadata=None),
    user(result("c2"), result("c1", images=["https://x/y.png"]), "And?"),
    assistant("High.", finish_reason="stop"),
    user("Thanks"),
]


def test_an_ordinary_history_comes_out_as_the_same_objects() -> None:
    out, report = repaired(ORDINARY)
    assert out is not ORDINARY
    assert all(a is b for a, b in zip(out, ORDINARY, strict=True))
    assert not report
    assert str(report) == "nothing to repair"


def test_the_default_traits_change_nothing_however_odd_the_history() -> None:
    odd = [
        assistant("", thinking("x"), image(), call("a b"), call("a b")),
        *(assistant(thinking("y")), user(result("zz")), user("", result("zz"))),
    ]
    out, report = repair(odd)
    assert all(a is b for a, b in zip(out, odd, strict=True))
    assert not report


def test_messages_that_need_nothing_stay_the_same_objects_beside_those_that_do() -> None:
    messages = [user("a"), assistant(thinking("x"), "b"), user("c")]
    out, _ = repaired(messages)
    assert out[0] is messages[0]
    assert out[2] is messages[2]
    assert out[1] == assistant("b")


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_empty_texts_are_left_out(blank: str) -> None:
    out, report = repaired([user("a"), assistant("b", blank), user("c")])
    assert out[1] == assistant("b")
    assert whats(report) == [(1, "an empty text left out")]


def test_thinking_without_a_signature_is_left_out() -> None:
    kept = thinking("b", signature="s")
    out, report = repaired([user("q"), assistant(thinking("a"), kept, thinking("c", other=1), "d"), user("q")])
    assert out[1] == assistant(kept, "d")
    assert whats(report) == [(1, "unsigned thinking left out")] * 2


def test_a_target_without_thinking_gets_none() -> None:
    out, _ = repaired([user("q"), assistant(thinking("a", signature="s"), "d"), user("q")], Traits(thinking="none"))
    assert out[1] == assistant("d")


def test_the_fidelity_of_another_vendor_is_left_out_where_it_is_said_to_be_foreign() -> None:
    messages = [
        user("q"),
        assistant(thinking("a", signature="theirs"), text("b", phase="x"), call("c")),
        user(result("c")),
        assistant(thinking("d", signature="ours"), "e"),
        user("q"),
    ]
    out, report = repaired(messages, foreign={1})
    assert out[1] == assistant("b", call("c"))
    assert out[3] is messages[3]
    assert [message for message, _ in whats(report)] == [1, 1, 1]
    out, _ = repaired(messages, Traits(), foreign=[1])
    assert out[1] == assistant(thinking("a"), "b", call("c"))


def test_an_inline_image_becomes_an_image_url_for_those_who_take_only_that() -> None:
    out, report = repaired([user("a", image()), assistant("b"), user("c")])
    url = "data:image/png;base64," + base64.b64encode(b"png").decode()
    assert out[0] == user("a", {"type": "image_url.done", "image_url": url})
    assert whats(report) == [(0, "an inline image sent as an image URL")]


def test_data_that_cannot_be_sent_leaves_a_word_behind() -> None:
    messages = [user("a", image("audio/wav")), assistant("b", image("audio/wav"), "d"), user("c")]
    out, report = repaired(messages)
    assert out[0] == user("a", "[audio/wav left out]")
    assert out[1] == assistant("b", "[audio/wav left out]", "d")
    assert whats(report) == [(0, "inline_data left out"), (1, "inline_data left out")]


def test_images_that_a_model_made_are_shown_in_the_users_next_message_after_the_results() -> None:
    messages = [user("a"), assistant("b", image(), URL, call("c1")), user(result("c1"), "c"), assistant("d"), user("e")]
    out, report = repaired(messages)
    png = {"type": "image_url.done", "image_url": "data:image/png;base64," + base64.b64encode(b"png").decode()}
    assert out[1] == assistant("b", IMAGE_BELOW, IMAGE_BELOW, call("c1"))
    assert out[2] == user(result("c1"), IMAGE_ABOVE, png, URL, "c")
    assert out[3:] == messages[3:]
    assert whats(report) == [(1, "an inline image sent as an image URL"), (2, "2 images of the message above put here")]


def test_an_image_that_a_model_made_is_left_out_where_no_message_can_take_it() -> None:
    out, report = repaired([user("a"), assistant("b", URL)])
    assert out[1] == assistant("b", IMAGE_GONE)
    assert whats(report) == [(1, "image_url left out")]


def test_a_model_without_eyes_gets_no_images() -> None:
    messages = [user("a", URL), assistant(call("c")), user(result("c", "plot", images=["https://x/y.png"]))]
    out, _ = repaired(messages, Traits(refused=frozenset({"image_url"})))
    assert out[0] == user("a", "[image left out]")
    assert out[2] == user(result("c", "plot\n[images left out]", images=None))


def test_an_empty_list_of_images_goes_too_where_there_may_be_none() -> None:
    messages = [user("a"), assistant(call("c")), user(result("c", images=[]))]
    out, report = repaired(messages, Traits(refused=frozenset({"image_url"})))
    assert out[2] == user(result("c", images=None))
    assert not report


def test_thinking_that_says_nothing_without_its_fidelity_is_left_out() -> None:
    hidden = thinking("", encrypted_content="ZW5j")
    messages = [user("a"), assistant(hidden, thinking(REDACTED_THINKING, signature="s"), "b"), user("c")]
    out, report = repaired(messages, Traits(unique_ids=True), foreign={1})
    assert out[1] == assistant("b")
    assert [what for _, what in whats(report)].count("thinking without a text left out") == 2
    assert repaired(messages, Traits(unique_ids=True))[0] == messages


def test_an_empty_text_stays_for_its_signature_where_that_counts() -> None:
    messages = [user("a"), assistant("b", text("", signature="s"), text(" ", phase="x")), user("c")]
    assert repaired(messages, Traits(empty_text="signed"))[0][1] == assistant("b", text("", signature="s"))


def test_calls_get_a_word_in_place_of_thinking_that_is_not_known() -> None:
    messages = [
        *(user("a"), assistant(thinking("Hm."), call("c1")), user(result("c1"))),
        *(assistant("I look.", call("c2")), user(result("c2")), assistant("b"), user("c")),
    ]
    out, report = repaired(messages, Traits(thought_calls=True))
    assert out[3] == assistant(thinking(NO_THOUGHT), "I look.", call("c2"))
    assert whats(report) == [(3, "a word put where thinking is missing")]


def test_own_messages_stay_as_they_are() -> None:
    messages = [
        assistant("", thinking("x"), image(), call("a.b")),
        user("so:", result("a.b"), image("audio/wav")),
        assistant(thinking("y"), "b", call("a.b"), call("a_b")),
        user(result("a_b"), result("a.b")),
    ]
    out, report = repair(messages, traits=STRICT, own=range(4))
    assert all(a is b for a, b in zip(out, messages, strict=True))
    assert not report


def test_own_messages_get_what_is_missing_around_them() -> None:
    messages = [
        *(user("a"), assistant(call("x.y"), call("z")), user("b", result("x.y"))),
        *(assistant(call("z")), user("c")),
    ]
    out, report = repair(messages, traits=STRICT, own={2, 3})
    assert out[1] == assistant(call("x_y"), call("z_2"))
    assert out[2] == user(result("z_2", NO_RESULT), result("x_y"), "b")
    assert out[3] is messages[3]
    assert out[4] == user(result("z", NO_RESULT), "c")
    assert report.ids == {"x_y": "x.y", "z_2": "z"}


def test_where_more_follows_the_last_message_may_go_as_well() -> None:
    messages = [user("a"), assistant(thinking("x"))]
    assert repair(messages, traits=STRICT)[0] == messages
    assert repair(messages, traits=STRICT, whole=False)[0] == [user("a")]


def test_interim_images_and_embeddings_vanish() -> None:
    interim = {"type": "inline_thinking.done", "data": b"x", "mime_type": "image/png"}
    messages = [user("a"), assistant(interim, {"type": "embedding.done", "embedding": [1.0]}, "b"), user("c")]
    assert repaired(messages)[0][1] == assistant("b")


def test_an_open_call_is_answered_as_interrupted_in_the_next_message() -> None:
    messages = [user("a"), assistant(call("c1"), call("c2")), user(result("c1"), "b")]
    out, report = repaired(messages)
    assert out[2] == user(result("c2", NO_RESULT), result("c1"), "b")
    assert whats(report) == [(1, "an open tool call answered as interrupted")]


def test_an_open_call_before_an_answer_gets_a_message_of_its_own() -> None:
    messages = [user("a"), assistant(call("c1")), assistant("b"), user("c")]
    out, _ = repaired(messages)
    assert out == [messages[0], messages[1], user(result("c1", NO_RESULT)), messages[2], messages[3]]


def test_an_open_call_at_the_very_end_is_answered_too() -> None:
    out, _ = repaired([user("a"), assistant(call("c1"))])
    assert out[2] == user(result("c1", NO_RESULT))


def test_a_result_that_came_late_moves_up_to_its_call() -> None:
    messages = [user("a"), assistant(call("c1")), user("wait"), assistant("ok"), user(result("c1", "late"), "b")]
    out, report = repaired(messages)
    assert out[2] == user(result("c1", "late"), "wait")
    assert out[4] == user("b")
    assert whats(report) == [(1, "a tool result moved up to its call")]


def test_a_message_that_held_only_such_a_result_goes() -> None:
    out, _ = repaired([user("a"), assistant(call("c1")), user("wait"), user(result("c1", "late"))])
    assert out == [user("a"), assistant(call("c1")), user(result("c1", "late"), "wait")]


def test_a_result_without_a_call_is_left_out() -> None:
    messages = [
        user("a"),
        assistant("b"),
        user(result("zz"), "c"),
        assistant(call("c1")),
        user(result("c1"), result("c1")),
    ]
    out, report = repaired(messages)
    assert out[2] == user("c")
    assert out[4] == user(result("c1"))
    assert whats(report) == [(2, "a tool result without a call left out"), (4, "a tool result without a call left out")]


def test_results_come_before_the_text_of_their_message() -> None:
    out, _ = repaired([user("a"), assistant(call("c1")), user("so:", result("c1"))])
    assert out[2] == user(result("c1"), "so:")


ODD_IDS = {
    "call.1/ü": "call_1__",
    "x" * 70: "x" * 64,
    "fine-1": "fine-1",
}


@pytest.mark.parametrize("original", ODD_IDS)
def test_an_id_that_the_target_forbids_is_changed_in_the_call_and_in_its_result(original: str) -> None:
    new = ODD_IDS[original]
    messages = [user("a"), assistant(call(original)), user(result(original))]
    out, report = repaired(messages)
    assert out == [user("a"), assistant(call(new)), user(result(new))]
    assert report.ids == ({} if new == original else {new: original})


def test_ids_used_twice_are_told_apart_call_by_call() -> None:
    turn = [assistant(call("f"), call("f")), user(result("f", "1"), result("f", "2"))]
    out, report = repaired([user("a"), *turn, *copy.deepcopy(turn)])
    assert out[1:] == [
        *(assistant(call("f"), call("f_2")), user(result("f", "1"), result("f_2", "2"))),
        *(assistant(call("f_3"), call("f_4")), user(result("f_3", "1"), result("f_4", "2"))),
    ]
    assert report.ids == {"f_2": "f", "f_3": "f", "f_4": "f"}


def test_different_ids_stay_different_when_they_are_changed() -> None:
    traits = Traits(id_characters="abcd", id_length=4)
    out, report = repaired(
        [assistant(call("a.b"), call("a:b"), call("aab")), user(result("a:b"), result("a.b"))], traits
    )
    ids = [item["tool_call_id"] for item in out[0]["content_items"]]
    assert len(set(ids)) == 3
    assert all(set(id) <= set("abcd") and len(id) <= 4 for id in ids)
    assert [item["tool_call_id"] for item in out[1]["content_items"]] == [ids[1], ids[0]]
    assert [report.ids[id] for id in ids] == ["a.b", "a:b", "aab"]


def test_an_id_that_is_the_tools_name_is_changed_where_it_may_not_be() -> None:
    messages = [user("a"), assistant(call("f"), call("f_2")), user(result("f"), result("f_2"))]
    out, report = repaired(messages, Traits(named_ids=False, unique_ids=True))
    assert out[1:] == [assistant(call("f_2"), call("f_2_2")), user(result("f_2"), result("f_2_2"))]
    assert report.ids == {"f_2": "f", "f_2_2": "f_2"}
    out, _ = repaired([*messages, *messages[1:]], Traits(named_ids=False))
    assert out[3:] == out[1:3] == [assistant(call("f_2"), call("f_2_2")), user(result("f_2"), result("f_2_2"))]


def test_a_longer_history_is_repaired_as_the_shorter_one_was() -> None:
    start = [user("a"), assistant(call("x y"), call("x_y")), user(result("x y"), result("x_y")), user("b")]
    more = [assistant(call("x y")), user(result("x y"))]
    short, _ = repaired(start)
    long, _ = repaired([*start, *more])
    assert long[: len(short)] == short


def test_messages_without_anything_to_send_are_left_out_but_never_the_last() -> None:
    messages = [user("a"), assistant(thinking("x")), user(" "), assistant(thinking("y", signature="s")), user("")]
    out, report = repair(messages, traits=STRICT)
    assert out == [user("a"), user("")]
    assert [message for message, what in whats(report) if what.startswith("left out")] == [1, 2, 3]


def test_two_messages_of_one_role_become_one() -> None:
    messages = [user("a", created_at=1), user("b", created_at=2), assistant("c"), assistant("d"), user("e")]
    out, report = repaired(messages)
    assert out == [user("a", "b", created_at=1), assistant("c", "d"), user("e")]
    assert [message for message, _ in whats(report)] == [1, 3]


def test_a_history_that_begins_with_the_assistant_gets_a_user_message_in_front() -> None:
    out, report = repaired([assistant("a"), user("b")])
    assert out == [user(BEGINNING), assistant("a"), user("b")]
    assert whats(report) == [(0, "a user message put in front")]


def test_the_report_reads_as_one_line_in_message_order() -> None:
    _, report = repaired([user("a"), assistant("", call("c")), user("b"), assistant(thinking("x"), "y"), user("z")])
    assert report
    assert str(report) == (
        "message 1: an empty text left out; message 1: an open tool call answered as interrupted; "
        "message 3: unsigned thinking left out"
    )


def test_no_messages_need_no_repair() -> None:
    assert repair([], traits=STRICT) == ([], RepairReport())


def test_ids_that_may_repeat_are_changed_alike_everywhere_also_in_results_that_stand_alone() -> None:
    traits = Traits(id_characters="abc_")
    turn = [assistant(call("a.b")), user(result("a.b"))]
    out, report = repaired([user(result("c:c")), *turn, *copy.deepcopy(turn)], traits)
    assert out == [user(result("c_c")), *[assistant(call("a_b")), user(result("a_b"))] * 2]
    assert report.ids == {"a_b": "a.b", "c_c": "c:c"}
