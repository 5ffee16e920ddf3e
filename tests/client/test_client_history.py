import asyncio
import copy
import time

import pytest
from talk import collect, user

from mmsp_nb import (
    AutoLLMClient,
    ConcurrentCallError,
    EmptyResponseError,
    HTTPStatusError,
    IncompleteStreamError,
    InvalidMessageError,
    MMSPError,
    UnsupportedParameterError,
)
from mmsp_nb.testing import Gate, Reply, faults, streams

TEXT = streams.reply("text", "chat")
TOOLS = streams.reply("tools", "chat")


def texts(history):
    return [item.get("text", item["type"]) for message in history for item in message["content_items"]]


async def test_a_turn_is_recorded_with_what_the_stop_says(client, provider):
    provider.add(TOOLS)
    message = user("tides?")
    events = await collect(client.streaming_response_stateful(message))
    sent, answer = client.get_history()
    origin = {"origin": client.origin}
    assert sent == {**message, **origin}
    stop = events[-1]
    assert answer == {
        "role": "assistant",
        "content_items": [i for e in events for i in e["content_items"] if i["type"].endswith(".done")],
        "usage_metadata": stop["usage_metadata"],
        "finish_reason": "tool_call",
        "created_at": stop["created_at"],
        **origin,
    }
    assert answer == {**client.concat_uni_events_to_uni_message(events), **origin}


async def test_it_is_recorded_ahead_of_the_stop(client, provider):
    provider.add(TEXT)
    seen = []
    async for event in client.streaming_response_stateful(user("hi")):
        seen.append((event["event_type"], len(client.get_history())))
        if event["event_type"] == "stop":
            break
    assert seen[-2:] == [("delta", 0), ("stop", 2)]
    assert len(client.get_history()) == 2


async def test_the_next_call_sends_the_history(client, provider):
    provider.add(TEXT, TEXT)
    await collect(client.streaming_response_stateful(user("one")))
    await collect(client.streaming_response_stateful(user("two")))
    roles = [message["role"] for message in provider.last.body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert len(client.get_history()) == 4


async def test_stateless_calls_touch_no_history(client, provider):
    provider.add(TEXT)
    await collect(client.streaming_response([user("a")]))
    assert client.get_history() == []


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply.json({}, 400), HTTPStatusError),
        (faults.reply("error-in-stream"), MMSPError),
        (faults.reply("cut-after"), MMSPError),
        (faults.reply("bad-arguments"), MMSPError),
        (faults.reply("no-usage"), IncompleteStreamError),
        (faults.reply("nothing-said"), EmptyResponseError),
        (faults.reply("not-json"), MMSPError),
    ],
)
async def test_a_failure_records_nothing_and_the_same_message_may_be_sent_again(client, provider, reply, error):
    provider.add(TEXT, reply, TEXT)
    await collect(client.streaming_response_stateful(user("before")))
    message = user("again")
    before = client.get_history()
    with pytest.raises(error):
        await collect(client.streaming_response_stateful(message))
    assert client.get_history() == before
    await collect(client.streaming_response_stateful(message))
    assert texts(client.get_history())[2] == "again"


async def test_leaving_early_records_nothing(client, provider):
    provider.add(TEXT)
    async for _ in client.streaming_response_stateful(user("hi")):
        break
    assert client.get_history() == []


# copies


async def test_nobody_shares_anything_with_the_history(client, provider):
    provider.add(TOOLS)
    message = user("hi")
    done = []
    async for event in client.streaming_response_stateful(message):
        for item in event["content_items"]:
            if item["type"] == "tool_call.done":
                item["arguments"]["port"] = "changed"
                done.append(item)
    message["content_items"][0]["text"] = "changed"
    client.get_history()[0]["content_items"].clear()
    client.get_history()[1]["content_items"][0]["thinking"] = "changed"
    sent, answer = client.get_history()
    assert done and texts([sent]) == ["hi"]
    assert answer["content_items"][0]["thinking"] == "Two ports, two calls."
    assert [i["arguments"]["port"] for i in answer["content_items"][1:]] == ["Brest", "Saint-Malo"]


async def test_what_was_sent_is_recorded_even_if_the_message_changes_meanwhile(client, provider):
    provider.add(TEXT)
    message = user("as sent")
    async for _ in client.streaming_response_stateful(message):
        message["content_items"][0]["text"] = "changed"
    assert texts(client.get_history())[0] == "as sent"


def test_set_history_takes_a_copy(client):
    history = [user("a"), {"role": "assistant", "content_items": [{"type": "text.done", "text": "b"}]}]
    given = copy.deepcopy(history)
    client.set_history(history)
    history[0]["content_items"].clear()
    assert client.get_history() == given


async def test_stateless_messages_are_left_as_they_are_but_for_the_stamp(client, provider):
    provider.add(TEXT)
    message = user("a")
    before = copy.deepcopy(message)
    await collect(client.streaming_response([message]))
    assert message.pop("created_at")
    assert message == before


# created_at


async def test_created_at_is_set_where_it_is_missing(client, provider):
    provider.add(TEXT, TEXT)
    start = time.time() * 1000 - 1
    old, new = user("old", created_at=5), user("new", created_at=None)
    client.set_history([user("a"), user("b", created_at=7)])
    assert "created_at" not in client.get_history()[0]
    await collect(client.streaming_response([old, new]))
    assert old["created_at"] == 5
    assert new["created_at"] >= start
    message = user("c")
    events = await collect(client.streaming_response_stateful(message))
    stamps = [m["created_at"] for m in client.get_history()]
    assert stamps[0] >= start
    assert stamps[1] == 7
    assert stamps[2] == message["created_at"] >= start
    assert stamps[3] == events[-1]["created_at"] >= stamps[2]


async def test_created_at_is_set_even_when_the_message_is_refused(client):
    message = {"role": "user", "content_items": []}
    with pytest.raises(InvalidMessageError):
        await collect(client.streaming_response([message]))
    assert message["created_at"]


# edits during a call


async def test_clear_history_does_not_end_a_running_call(client, provider):
    gate = Gate()
    provider.add(TEXT, Reply([*TEXT.body[:2], gate, *TEXT.body[2:]]))
    await collect(client.streaming_response_stateful(user("one")))
    stream = client.streaming_response_stateful(user("two"))
    await anext(stream)
    client.clear_history()
    assert client.get_history() == []
    gate.open()
    await collect(stream)
    assert len(provider.last.body["messages"]) == 3
    assert texts(client.get_history())[0] == "two"
    assert len(client.get_history()) == 2


async def test_set_history_during_a_call_gets_the_turn_at_its_end(client, provider):
    gate = Gate()
    provider.add(Reply([*TEXT.body[:2], gate, *TEXT.body[2:]]))
    stream = client.streaming_response_stateful(user("two"))
    await anext(stream)
    client.set_history([user("other")])
    gate.open()
    await collect(stream)
    assert texts(client.get_history())[:2] == ["other", "two"]


# legacy names, validation


async def test_legacy_item_names_are_understood(client, provider):
    provider.add(TEXT, TEXT)
    legacy = {"role": "user", "content_items": [{"type": "text", "text": "old"}]}
    client.set_history([legacy])
    assert client.get_history()[0]["content_items"][0]["type"] == "text.done"
    given = copy.deepcopy(legacy)
    await collect(client.streaming_response_stateful(given))
    assert given == legacy  # a legacy message is copied before it is stamped
    assert texts(client.get_history())[:2] == ["old", "old"]
    await collect(client.streaming_response([given]))
    assert given["created_at"]
    assert given["content_items"][0]["type"] == "text"


async def test_a_bad_message_in_a_set_history_is_found_at_the_next_send(client, provider):
    provider.add(TEXT)
    client.set_history([user("a"), {"role": "user", "content_items": []}])
    with pytest.raises(InvalidMessageError) as caught:
        await collect(client.streaming_response_stateful(user("b")))
    assert caught.value.message_index == 1
    client.set_history([user("a")])
    await collect(client.streaming_response_stateful(user("b")))


@pytest.mark.parametrize("history", ["text", {"role": "user"}, None, 3])
def test_a_history_that_is_none_is_refused(client, history):
    with pytest.raises(InvalidMessageError, match="list of messages"):
        client.set_history(history)


@pytest.mark.parametrize("messages", ["hi", user("hi"), None])
async def test_messages_that_are_no_list_are_refused(client, messages):
    with pytest.raises(InvalidMessageError, match="list of messages"):
        await collect(client.streaming_response(messages))


async def test_a_message_that_is_none_is_refused(client):
    with pytest.raises(InvalidMessageError) as caught:
        await collect(client.streaming_response_stateful("hi"))
    assert caught.value.message_index == 0
    assert client.get_history() == []


async def test_the_index_of_a_refused_message_counts_from_the_start_of_the_history(client, provider):
    client.set_history([user("a"), user("b")])
    with pytest.raises(InvalidMessageError) as caught:
        await collect(client.streaming_response_stateful({"role": "user", "content_items": []}))
    assert caught.value.message_index == 2


BAD_ITEM = {"role": "user", "content_items": [{"type": "text.done"}]}


@pytest.mark.parametrize(
    ("messages", "config", "error"),
    [
        ([user("a"), {"role": "user", "content_items": []}, BAD_ITEM], {"temprature": 1}, "message_index"),
        ([BAD_ITEM], {"temprature": 1}, "temprature"),
        ([BAD_ITEM], {"prompt_caching": "disable"}, "prompt_caching"),
        ([BAD_ITEM], {}, "item_type"),
    ],
    ids=["empty message first", "unknown config key next", "then what the vendor rejects in it", "then items"],
)
async def test_order_of_the_checks(client, provider, messages, config, error):
    with pytest.raises((InvalidMessageError, UnsupportedParameterError)) as caught:
        await collect(client.streaming_response(messages, config))
    found = caught.value
    if error == "message_index":
        assert found.message_index == 1
    elif error == "item_type":
        assert found.item_type == "text"
    else:
        assert found.parameter == error
    assert found.client == "OpenaiChatClient"
    assert provider.requests == []


async def test_nothing_happens_before_the_first_step(client, provider):
    message = user("a")
    client.streaming_response([message])
    client.streaming_response([], {"nonsense": 1})
    client.streaming_response_stateful(message)
    assert "created_at" not in message
    assert provider.requests == []


# one call at a time


async def test_a_second_stateful_call_is_refused_and_disturbs_nothing(client, provider):
    gate = Gate()
    provider.add(Reply([*TEXT.body[:2], gate, *TEXT.body[2:]]), TEXT)
    first = client.streaming_response_stateful(user("one"))
    await anext(first)
    with pytest.raises(ConcurrentCallError, match="aclose") as caught:
        await anext(client.streaming_response_stateful(user("two")))
    assert caught.value.client == "OpenaiChatClient"
    assert len(provider.requests) == 1
    gate.open()
    await collect(first)
    await collect(client.streaming_response_stateful(user("three")))
    assert texts(client.get_history())[::2] == ["one", "three"]


async def test_stateless_calls_never_conflict(client, provider):
    gate = Gate()
    provider.add(Reply([*TEXT.body[:2], gate, *TEXT.body[2:]]), TEXT, TEXT)
    first = client.streaming_response_stateful(user("one"))
    await anext(first)
    await collect(client.streaming_response([user("x")]))
    await collect(client.streaming_response([user("y")]))
    gate.open()
    await collect(first)


async def test_a_call_that_was_never_started_holds_nothing(client, provider):
    provider.add(TEXT)
    waiting = client.streaming_response_stateful(user("one"))
    await collect(client.streaming_response_stateful(user("two")))
    assert texts(client.get_history())[0] == "two"
    await waiting.aclose()


async def test_after_break_the_next_call_is_free_at_once(client, provider):
    endless = Reply(TEXT.body[:2]).endless(b": ping\n\n")
    provider.add(endless, TEXT)
    async for _ in client.streaming_response_stateful(user("one")):
        break
    await collect(client.streaming_response_stateful(user("two")))
    assert texts(client.get_history())[0] == "two"
    assert len(client.get_history()) == 2


async def test_a_dropped_iterator_holds_nothing_either(client, provider):
    provider.add(Reply(TEXT.body[:2]).endless(b": ping\n\n"), TEXT)
    stream = client.streaming_response_stateful(user("one"))
    await anext(stream)
    del stream
    await collect(client.streaming_response_stateful(user("two")))
    assert texts(client.get_history())[0] == "two"


async def test_a_closed_iterator_holds_nothing(client, provider):
    provider.add(Reply(TEXT.body[:2]).endless(b": ping\n\n"), TEXT)
    stream = client.streaming_response_stateful(user("one"))
    await anext(stream)
    await stream.aclose()
    await collect(client.streaming_response_stateful(user("two")))
    assert stream is not None


async def test_a_recorded_turn_holds_nothing_although_its_iterator_was_not_read_to_the_end(client, provider):
    provider.add(TEXT, TEXT)
    first = client.streaming_response_stateful(user("one"))
    while (await anext(first))["event_type"] != "stop":
        pass
    await collect(client.streaming_response_stateful(user("two")))
    assert len(client.get_history()) == 4
    await first.aclose()


async def test_an_iterator_that_is_only_awaited_still_counts(client, provider):
    gate = Gate()
    provider.add(Reply([gate, *TEXT.body]))
    pending = asyncio.ensure_future(anext(client.streaming_response_stateful(user("one"))))
    await gate.wait_arrived()
    with pytest.raises(ConcurrentCallError):
        await anext(client.streaming_response_stateful(user("two")))
    gate.open()
    await pending


def test_a_call_left_behind_in_a_closed_loop_holds_nothing(client, provider):
    provider.add(Reply(TEXT.body[:2]).endless(b": ping\n\n"), TEXT)
    kept = []

    async def leave():
        kept.append(client.streaming_response_stateful(user("one")))
        await anext(kept[0])

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()
    asyncio.run(collect(client.streaming_response_stateful(user("two"))))
    assert texts(client.get_history())[0] == "two"


async def test_a_failed_check_of_a_second_call_leaves_the_first_alone(client, provider):
    gate = Gate()
    provider.add(Reply([*TEXT.body[:2], gate, *TEXT.body[2:]]))
    first = client.streaming_response_stateful(user("one"))
    await anext(first)
    with pytest.raises(ConcurrentCallError):  # ahead of any other check
        await anext(client.streaming_response_stateful({"role": "user", "content_items": []}))
    gate.open()
    await collect(first)
    assert len(client.get_history()) == 2


def test_two_clients_share_no_history(make_client):
    one, two = make_client(), make_client()
    one.set_history([user("a")])
    assert two.get_history() == []
    assert isinstance(one, AutoLLMClient)
