"""What the client mends, what it leaves alone, and how often."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from switch_kinds import KINDS, entries, exchange, opaque_in, send, user
from wire_rules import check

from mmsp_nb import InvalidMessageError
from mmsp_nb.mending import Mender
from mmsp_nb.protocol.repairs import NO_RESULT, Traits
from mmsp_nb.testing import FakeProvider

GEMINI, CLAUDE, GPT, KIMI, MMSP = (
    KINDS[name] for name in ("google-genai", "anthropic-official", "openai-official", "moonshot-official", "mmsp")
)
INLINE = {"type": "inline_data.done", "data": b"png", "mime_type": "image/png"}
OPEN_CALL = {"type": "tool_call.done", "name": "f", "arguments": {}, "tool_call_id": "a/b"}


def assistant(*items: Any) -> dict[str, Any]:
    return {**user(*items), "role": "assistant"}


CLAUDE_TRAITS = Traits(empty_text="none", refused=frozenset({"inline_data"}), paired_calls=True)


async def foreign_history(provider: FakeProvider) -> list[Any]:
    home = GEMINI.client(provider)
    await exchange(home, GEMINI, provider, "one")
    return home.get_history()


async def test_recorded_messages_say_their_origin_and_events_do_not(fake_provider: FakeProvider) -> None:
    client = CLAUDE.client(fake_provider)
    fake_provider.add(CLAUDE.says("one"))
    message = user("Hi")
    events = [event async for event in client.streaming_response_stateful(message)]
    assert all("origin" not in event for event in events) and "origin" not in message
    assert [message["origin"] for message in client.get_history()] == ["anthropic"] * 2
    assert client.origin == "anthropic"


async def test_a_stored_history_keeps_its_origins(fake_provider: FakeProvider) -> None:
    home = CLAUDE.client(fake_provider)
    await exchange(home, CLAUDE, fake_provider, "one")
    away = GPT.client(fake_provider)
    away.set_history(json.loads(json.dumps(home.get_history())))
    check(GPT, await send(away, user("And?"), fake_provider, GPT.says("two")), ())


async def test_a_history_that_nobody_has_marked_is_sent_as_it_is(fake_provider: FakeProvider) -> None:
    client = CLAUDE.client(fake_provider)
    client.set_history([assistant("", OPEN_CALL), user("Well?")])
    assert not client.mended_history()[1]
    body = await send(client, user("And?"), fake_provider, CLAUDE.says("one"))
    assert [block["type"] for block in body["messages"][0]["content"]] == ["text", "tool_use"]
    client.set_history([user(INLINE)])
    with pytest.raises(InvalidMessageError):
        await send(client, user("And?"), fake_provider, CLAUDE.says("two"))


async def test_what_a_vendor_has_taken_counts_as_its_own(fake_provider: FakeProvider) -> None:
    client = CLAUDE.client(fake_provider)
    client.set_history([user("Hi"), assistant("Hello.")])
    with pytest.raises(InvalidMessageError):
        await send(client, user(INLINE), fake_provider, CLAUDE.says("one"))
    assert all("origin" not in message for message in client.get_history())
    await send(client, user("Well?"), fake_provider, CLAUDE.says("one"))
    assert [message["origin"] for message in client.get_history()] == ["anthropic"] * 4


async def test_what_was_mended_is_not_taken_for_its_own(fake_provider: FakeProvider) -> None:
    client = CLAUDE.client(fake_provider)
    unmarked = [user("Look", INLINE), assistant("Nice.")]
    client.set_history([*unmarked, *await foreign_history(fake_provider)])
    for tag in ("one", "two"):
        check(
            CLAUDE, await send(client, user("Well?"), fake_provider, CLAUDE.says(tag)), opaque_in(client.get_history())
        )
    origins = [message.get("origin") for message in client.get_history()]
    assert origins == [None] * 2 + ["google"] * 4 + ["anthropic"] * 4


async def test_a_new_message_is_refused_where_it_is_wrong_also_after_a_foreign_history(
    fake_provider: FakeProvider,
) -> None:
    client = CLAUDE.client(fake_provider)
    client.set_history(await foreign_history(fake_provider))
    with pytest.raises(InvalidMessageError):
        await send(client, user(INLINE), fake_provider, CLAUDE.says("two"))


async def test_a_message_that_was_first_sent_elsewhere_stays_foreign(fake_provider: FakeProvider) -> None:
    client = CLAUDE.client(fake_provider)
    moved = {**user("Look", INLINE), "origin": "google"}
    await send(client, moved, fake_provider, CLAUDE.says("one"))
    body = await send(client, user("Well?"), fake_provider, CLAUDE.says("two"))
    assert [block["type"] for block in body["messages"][0]["content"]] == ["text", "image"]
    assert client.get_history()[0]["content_items"][1] == INLINE


async def test_calls_made_elsewhere_can_be_answered_here(fake_provider: FakeProvider) -> None:
    home = GEMINI.client(fake_provider)
    await send(home, user("Tides?"), fake_provider, GEMINI.asks("one"))
    results = [
        {"type": "tool_result.done", "text": port, "tool_call_id": "tide_table"} for port in ("Brest", "Saint-Malo")
    ]
    away = CLAUDE.client(fake_provider)
    away.set_history(home.get_history())
    body = await send(away, user(*results), fake_provider, CLAUDE.says("two"))
    check(CLAUDE, body, ())
    calls = {
        block["id"]: block["input"]["port"] for block in body["messages"][1]["content"] if block["type"] == "tool_use"
    }
    answers = {block["tool_use_id"]: block["content"][0]["text"] for block in body["messages"][2]["content"]}
    assert calls == answers and len(calls) == 2
    assert away.get_history()[2]["content_items"] == results
    later = await send(away, user("Thanks"), fake_provider, CLAUDE.says("three"))
    assert entries(CLAUDE, later)[:3] == entries(CLAUDE, body)


async def test_calls_left_open_elsewhere_are_answered_before_the_question(fake_provider: FakeProvider) -> None:
    home = GEMINI.client(fake_provider)
    await send(home, user("Tides?"), fake_provider, GEMINI.asks("one"))
    away = CLAUDE.client(fake_provider)
    away.set_history(home.get_history())
    body = await send(away, user("Never mind."), fake_provider, CLAUDE.says("two"))
    check(CLAUDE, body, ())
    blocks = body["messages"][2]["content"]
    assert [block["type"] for block in blocks] == ["tool_result", "tool_result", "text"]
    assert blocks[0]["content"][0]["text"] == NO_RESULT
    assert away.get_history()[2]["content_items"] == user("Never mind.")["content_items"]


async def test_stateless_calls_mend_as_well_and_touch_nothing(fake_provider: FakeProvider) -> None:
    messages = [*await foreign_history(fake_provider), user("And?")]
    before = copy.deepcopy(messages)
    client = KIMI.client(fake_provider)
    for _ in range(2):
        fake_provider.add(KIMI.says("two"))
        async for _ in client.streaming_response(messages):
            pass
        check(KIMI, fake_provider.last.body, ())
    before[-1]["created_at"] = messages[-1]["created_at"]
    assert messages == before and client.get_history() == []
    messages[0]["content_items"][0]["text"] = "changed"
    fake_provider.add(KIMI.says("three"))
    async for _ in client.streaming_response(messages):
        pass
    assert "changed" in json.dumps(fake_provider.last.body)


async def test_the_report_says_what_is_mended_and_the_history_stays(fake_provider: FakeProvider) -> None:
    history = await foreign_history(fake_provider)
    client = CLAUDE.client(fake_provider)
    client.set_history(history)
    mended, report = client.mended_history()
    assert report.ids == {"tide_table_2": "tide_table"}
    assert "message 1: another vendor's fidelity of a thinking left out" in str(report)
    mended[0]["content_items"].clear()
    assert client.get_history() == history
    assert client.mended_history()[0][0]["content_items"]
    client.set_history([{"role": "user", "content_items": "?"}])
    with pytest.raises(InvalidMessageError):
        client.mended_history()


# an MMSP server judges for itself


async def test_an_mmsp_server_sees_no_origin(fake_provider: FakeProvider) -> None:
    client = MMSP.client(fake_provider)
    await exchange(client, MMSP, fake_provider, "one")
    body = await send(client, user("And?"), fake_provider, MMSP.says("two"))
    assert client.get_history()[0]["origin"] == "mmsp@127.0.0.1/fast"
    sent = client.get_history()[: len(body["messages"])]
    assert body["messages"] == [{key: value for key, value in m.items() if key != "origin"} for m in sent]


async def test_an_mmsp_server_hears_of_messages_that_are_none(fake_provider: FakeProvider) -> None:
    client = MMSP.client(fake_provider)
    client.set_history([{**user("Hi"), "origin": "google"}, {**assistant({"type": "odd.done"}), "origin": "google"}])
    body = await send(client, {"role": "user", "content_items": [None]}, fake_provider, MMSP.says("one"))
    assert [m["content_items"] for m in body["messages"][1:]] == [[{"type": "odd.done"}], [None]]
    assert "origin" not in json.dumps(body)


# once


def marked(origin: str, *items: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content_items": user(*items)["content_items"], "origin": origin}


def test_what_was_mended_is_kept_for_the_next_call() -> None:
    mender = Mender("here", Traits(empty_text="none"))
    history = [marked("there", "a", ""), marked("there", "b", "", role="assistant"), marked("here", "c")]
    first, report = mender(history, keep=True)
    second, same = mender([*history, marked("here", "d", role="assistant"), user("e")], keep=True)
    assert all(a is b for a, b in zip(first, second, strict=False)) and same is report
    assert first[0] is not history[0] and len(second) == 5
    mender.forget()
    assert mender(history, keep=True)[0][0] is not first[0]


def test_nothing_is_kept_of_messages_that_somebody_may_modify() -> None:
    mender = Mender("here", Traits(empty_text="none"))
    history = [marked("there", "a", "")]
    first, _ = mender(history)
    history[0]["content_items"][0]["text"] = "changed"
    assert mender(history, keep=True)[0][0]["content_items"][0]["text"] == "changed"
    assert first[0]["content_items"] is not history[0]["content_items"]


def test_a_foreign_message_is_found_also_behind_messages_that_were_looked_at() -> None:
    mender = Mender("here", Traits(empty_text="none"))
    own = [marked("here", "a", ""), marked("here", "b", role="assistant")]
    assert mender(own, keep=True)[0] is own
    grown = [*own, marked("there", "c", ""), marked("here", "d", role="assistant")]
    out, _ = mender(grown, keep=True)
    assert out[2] is not grown[2] and out[3] is grown[3]
    out, _ = mender([*grown, user("e")], keep=True)
    assert out[2] is not grown[2] and len(out) == 5
    back = [*own, user("f")]
    assert mender(back, keep=True)[0] is back


def test_another_history_is_not_taken_for_the_kept_one() -> None:
    mender = Mender("here", Traits(empty_text="none"))
    mender([marked("there", "a", "")], keep=True)
    assert mender([marked("there", "b", "")], keep=True)[0][0]["content_items"] == user("b")["content_items"]


@pytest.mark.parametrize("origin", [None, 5, ["x"], "here"])
def test_without_a_foreign_origin_it_is_the_very_same_list(origin: Any) -> None:
    history = [{**user("", INLINE), "origin": origin}, assistant(OPEN_CALL)]
    given = [*history, None, "no message"]
    out, report = Mender("here", CLAUDE_TRAITS)(given)
    assert out is given and not report


def test_messages_of_ones_own_among_foreign_ones_stay_the_same_objects() -> None:
    own = marked("here", "", INLINE, role="assistant")
    history = [marked("there", "a"), own, marked("there", "b", "")]
    out, _ = Mender("here", CLAUDE_TRAITS)(history)
    assert out[0] is history[0] and out[1] is own and out[2] is not history[2]
