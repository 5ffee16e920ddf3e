"""Bodies of stateful calls are made of what earlier calls left; they are what a new client would send."""

import copy

import pytest
from talk import CLIENTS, collect, user

from mmsp_nb import MMSPError
from mmsp_nb.testing import Reply, streams


def said(*items, **more):
    return {"role": "assistant", "content_items": [*items], "created_at": 1, **more}


@pytest.fixture(params=CLIENTS)
def dialect(request):
    return request.param


@pytest.fixture
def client(make_client, dialect):
    client_type, path = CLIENTS[dialect]
    return make_client(client_type, path=path)


@pytest.fixture
def ask(client, provider, dialect):
    """Asks, and checks that a new client with the same history sends the same."""

    async def ask(text="and now?", reply="text"):
        history, message = client.get_history(), user(text, created_at=1)
        if history and any(item["type"] == "tool_call.done" for item in history[-1]["content_items"]):
            message["content_items"] = [
                {"type": "tool_result.done", "text": "r", "tool_call_id": item["tool_call_id"]}
                for item in history[-1]["content_items"]
                if item["type"] == "tool_call.done"
            ]
        provider.add(streams.reply(reply, dialect), streams.reply(reply, dialect))
        await collect(client.streaming_response_stateful(copy.deepcopy(message)))
        sent = provider.last.body
        other = client.sibling()
        other.set_history(history)
        await collect(other.streaming_response_stateful(message))
        assert provider.last.body == sent

    return ask


async def test_turn_after_turn(client, ask):
    for reply in ("tools", "thinking", "text", "tools", "text"):
        await ask(reply=reply)
    assert len(client.get_history()) == 10


async def test_after_the_last_turn_was_taken_back(client, ask):
    await ask("one")
    await ask("two")
    client.set_history(client.get_history()[:2])
    await ask("another two")
    await ask("three")


async def test_after_an_earlier_message_was_edited(client, ask, provider):
    await ask("one")
    await ask("two")
    history = client.get_history()
    history[0]["content_items"][0]["text"] = "edited"
    client.set_history(history)
    await ask("three")
    assert "edited" in str(provider.last.body) and "'one'" not in str(provider.last.body)


async def test_what_the_caller_does_to_copies_is_not_sent(client, ask, provider):
    mine = [user("one", created_at=1), said({"type": "text.done", "text": "1"})]
    client.set_history(mine)
    await ask("two")
    for message in (*mine, *client.get_history()):
        message["content_items"][0]["text"] = "spoiled"
    await ask("three")
    assert "spoiled" not in str(provider.last.body)


async def test_after_the_history_was_cleared(client, ask, provider):
    await ask("one")
    client.clear_history()
    await ask("two")
    assert "'one'" not in str(provider.last.body)


async def test_after_a_call_that_failed(client, ask, provider, dialect):
    await ask("one")
    await ask("two")
    provider.add(Reply.json({"error": {"message": "no"}}, 400))
    with pytest.raises(MMSPError):
        await collect(client.streaming_response_stateful(user("refused")))
    await ask("three")
    assert "refused" not in str(provider.last.body)


async def test_with_a_history_of_another_vendor(client, ask, provider):
    thought = {"type": "thinking.done", "thinking": "hm", "fidelity": {"signature": "Zm9yZWlnbg=="}}
    answer = said(thought, {"type": "text.done", "text": "1"}, origin="elsewhere")
    client.set_history([user("one", created_at=1), answer])
    await ask("two")
    await ask("three")
    await ask("four")
    assert "Zm9yZWlnbg" not in str(provider.last.body)


async def test_with_pictures_from_the_web(client, ask, provider):
    provider.when("/a.png", Reply.data(streams.PNG, "image/png"))
    picture = {"type": "image_url.done", "image_url": provider.url("/a.png")}
    question = {"role": "user", "content_items": [picture], "created_at": 1}
    client.set_history([question, said({"type": "text.done", "text": "a picture"})])
    for text in ("sure?", "really?"):
        await ask(text)
