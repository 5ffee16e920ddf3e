"""Legacy names, time stamps and copies of messages."""

from __future__ import annotations

import copy
import time
import warnings
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from mmsp_nb.protocol import history
from mmsp_nb.protocol.copying import copy_item, copy_message, copy_messages
from mmsp_nb.protocol.history import normalize_legacy_messages, now_ms, stamp

KINDS = ("text", "image_url", "inline_data", "thinking", "inline_thinking", "tool_call", "tool_result", "embedding")


@pytest.fixture(autouse=True)
def not_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_warned", False)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_legacy_name_gets_its_phase(kind: str) -> None:
    old = {"role": "user", "content_items": [{"type": kind, "x": 1}, {"type": "text.done", "text": "new"}], "note": 2}
    before = copy.deepcopy(old)
    (new,) = normalize_legacy_messages([old])
    assert new["content_items"] == [{"type": f"{kind}.done", "x": 1}, {"type": "text.done", "text": "new"}]
    assert new["note"] == 2
    assert old == before
    assert new["content_items"][1] is old["content_items"][1]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_partial_call_is_left_out_even_if_nothing_remains() -> None:
    (new,) = normalize_legacy_messages([{"role": "assistant", "content_items": [{"type": "partial_tool_call"}]}])
    assert new["content_items"] == []


def test_a_message_that_needs_no_change_is_the_same_object() -> None:
    messages: list[Any] = [
        {"role": "user", "content_items": [{"type": "text.done", "text": "a"}, {"type": "weird"}]},
        {"role": "user", "content_items": [{"type": "text.delta"}, "x", {}, {"type": 5}]},
        {"role": "user", "content_items": []},
        {"role": "user", "content_items": None},
        {"role": "user"},
        "Hi",
        None,
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        normalized = normalize_legacy_messages(messages)
    assert all(a is b for a, b in zip(normalized, messages, strict=True))


def test_only_the_first_conversion_warns_and_points_at_the_caller() -> None:
    old = [{"role": "user", "content_items": [{"type": "text", "text": "a"}]}]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        normalize_legacy_messages(old)
        normalize_legacy_messages(old)
    assert [warning.category for warning in caught] == [FutureWarning]
    assert caught[0].filename == __file__


def test_a_stamp_is_set_only_where_there_is_none_and_in_place() -> None:
    messages: list[Any] = [{"role": "user"}, {"created_at": None}, {"created_at": 5}, {"created_at": 0}]
    stamp(messages, 7)
    assert [message["created_at"] for message in messages] == [7, 7, 5, 0]


def test_what_is_no_message_is_not_stamped() -> None:
    frozen = MappingProxyType({"role": "user"})
    stamp(["Hi", None, frozen])
    assert "created_at" not in frozen


def test_the_clock_of_a_stamp_counts_milliseconds() -> None:
    message: dict[str, Any] = {}
    before = time.time()
    stamp([message])
    assert abs(message["created_at"] / 1000 - before) < 60
    assert isinstance(now_ms(), int)


MESSAGE = {
    "role": "assistant",
    "content_items": [
        {"type": "text.done", "text": "a", "fidelity": {"details": [{"x": [1]}]}},
        {"type": "tool_call.done", "name": "f", "arguments": {"a": [{"b": None}]}, "tool_call_id": "c"},
        {"type": "inline_data.done", "data": b"x", "mime_type": "image/png"},
        {"type": "embedding.done", "embedding": [1.0, 2.0]},
    ],
    "usage_metadata": {"cached_tokens": None},
    "created_at": 5,
}


def containers(value: Any) -> list[int]:
    """The ids of all mutable parts of ``value``."""
    found = []
    if isinstance(value, dict | list):
        found.append(id(value))
        for inner in value.values() if isinstance(value, dict) else value:
            found += containers(inner)
    return found


@pytest.mark.parametrize("make", [copy_message, copy_item, lambda message: copy_messages([message])[0]])
def test_a_copy_is_equal_and_shares_nothing_that_can_change(make: Any) -> None:
    copied = make(MESSAGE)
    assert copied == MESSAGE
    assert not set(containers(copied)) & set(containers(MESSAGE))


def test_objects_of_other_types_are_copied_as_deeply() -> None:
    mine = SimpleNamespace(values=[1])
    copied = copy_message({"content_items": [], "mine": mine, "pair": ([1], 2)})
    assert copied["mine"].values == [1]
    assert copied["mine"].values is not mine.values
    assert copied["pair"] == ([1], 2)
