"""A history of each client type goes to each other one, and comes back: every ordered pair of the fourteen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from switch_kinds import KINDS, Kind, entries, exchange, opaque_in, send, user
from wire_rules import check

from mmsp_nb import AutoLLMClient, InvalidMessageError, UnsupportedContentError
from mmsp_nb.providers.vendors import VENDORS
from mmsp_nb.testing import FakeProvider, Reply
from mmsp_nb.testing.wire import embeddings

PAIRS = [(first, second) for first in KINDS.values() for second in KINDS.values()]


def repeats(kind: Kind, body: Any, earlier: Any, *, but_last: bool = False) -> bool:
    """Whether a request begins with the history of an earlier one, byte by byte; maybe without its last message."""
    before = entries(kind, earlier)
    before = before[:-1] if but_last else before
    return json.dumps(entries(kind, body)[: len(before)]) == json.dumps(before)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda kind: kind.name)
async def test_a_history_goes_to_another_vendor_and_back(
    first: Kind, second: Kind, fake_provider: FakeProvider
) -> None:
    home = first.client(fake_provider)
    bodies = await exchange(home, first, fake_provider, "one")
    history = home.get_history()
    own = opaque_in(history)
    stayed = await send(home, user("And then?"), fake_provider, first.says("stayed"))
    for body in (*bodies, stayed):
        check(first, body, own)
    assert opaque_in(stayed) == own

    # away
    away = second.client(fake_provider)
    away.set_history(history)
    shared = own if away.origin == home.origin else set()
    _, report = away.mended_history()
    assert report if own - shared else not own or not report
    bodies = await exchange(away, second, fake_provider, "two")
    made = opaque_in(away.get_history()[len(history) :])
    for body in bodies:
        check(second, body, made | shared)
        wire = json.dumps(body)
        assert all(said in wire for said in ("one: tides?", "Saint-Malo", "one Brest", "one: high tide."))
    assert repeats(second, bodies[1], bodies[0]), "a growing history keeps its beginning, and the vendor its cache"
    assert away.get_history()[: len(history)] == history, "what is recorded stays as it was"

    # and back
    back = first.client(fake_provider)
    back.set_history(away.get_history())
    returned = await send(back, user("And then?"), fake_provider, first.says("three"))
    check(first, returned, own | (made if shared else set()))
    assert repeats(first, returned, stayed, but_last=True), "as if it had never been away"
    assert own <= opaque_in(returned)
    assert "two: high tide." in json.dumps(returned)

    # and there again
    stayed = await send(away, user("And then?"), fake_provider, second.says("stayed"))
    again = second.client(fake_provider)
    again.set_history(back.get_history())
    returned = await send(again, user("Bye"), fake_provider, second.says("four"))
    check(second, returned, made | (opaque_in(back.get_history()) if shared else set()))
    assert repeats(second, returned, stayed, but_last=True)
    assert made <= opaque_in(returned)


# embeddings: a vector is made of what it is given, so a chat is refused; a chat goes on without the vector


def embedder(provider: FakeProvider) -> AutoLLMClient:
    return AutoLLMClient("text-embedding-4", "key", provider.url("/v1"), "openai-embedding")


def vector() -> Reply:
    return Reply.json(embeddings.openai([[0.5, 0.25]]))


@pytest.mark.parametrize("first", KINDS.values(), ids=lambda kind: kind.name)
async def test_a_chat_is_refused_by_an_embedding_model_and_goes_on_unharmed(
    first: Kind, fake_provider: FakeProvider
) -> None:
    home = first.client(fake_provider)
    await exchange(home, first, fake_provider, "one")
    history, requests = home.get_history(), len(fake_provider.requests)
    stayed = await send(home, user("And then?"), fake_provider, first.says("stayed"))
    away = embedder(fake_provider)
    away.set_history(history)
    with pytest.raises(UnsupportedContentError):
        await send(away, user("Brest"), fake_provider, vector())
    assert len(fake_provider.requests) == requests + 1, "nothing was sent"
    assert away.get_history() == history
    fake_provider.reset()
    back = first.client(fake_provider)
    back.set_history(away.get_history())
    returned = await send(back, user("And then?"), fake_provider, first.says("back"))
    assert entries(first, returned)[:-1] == entries(first, stayed)[:-1]


@pytest.mark.parametrize("second", KINDS.values(), ids=lambda kind: kind.name)
async def test_a_chat_goes_on_after_embeddings_without_the_vectors(second: Kind, fake_provider: FakeProvider) -> None:
    home = embedder(fake_provider)
    await send(home, user("Brest"), fake_provider, vector())
    history = home.get_history()
    assert history[1]["content_items"] == [{"type": "embedding.done", "embedding": [0.5, 0.25]}]
    away = second.client(fake_provider)
    away.set_history(history)
    assert "embedding left out" in str(away.mended_history()[1])
    for body in await exchange(away, second, fake_provider, "two"):
        check(second, body, opaque_in(away.get_history()))
        assert "Brest" in json.dumps(body) and "0.25" not in json.dumps(body)
    back = embedder(fake_provider)
    back.set_history(away.get_history())
    with pytest.raises(UnsupportedContentError):
        await send(back, user("Brest"), fake_provider, vector())


async def test_an_embedding_model_refuses_vectors_also_its_own(fake_provider: FakeProvider) -> None:
    home = embedder(fake_provider)
    await send(home, user("Brest"), fake_provider, vector())
    away = embedder(fake_provider)
    away.set_history(home.get_history())
    for client in (home, away):
        with pytest.raises((InvalidMessageError, UnsupportedContentError)):
            await send(client, user("Brest"), fake_provider, vector())


def test_these_are_all_pairs_of_all_client_types() -> None:
    assert {*KINDS, "openai-embedding"} == set(VENDORS)
    assert len(PAIRS) + 2 * len(KINDS) + 1 == 14 * 14


# the rules are worth something: without mending they find what a vendor would refuse


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *(("google-genai", "anthropic-official"), ("google-official", "openai-chat"), ("openai-chat", "ant-messages")),
        *(
            ("anthropic-official", "google-genai"),
            ("anthropic-official", "google-official"),
            ("zai-official", "openai-official"),
        ),
        *(("anthropic-official", "deepseek-official"), ("google-official", "mmsp"), ("mmsp", "moonshot-official")),
    ],
)
async def test_without_an_origin_the_rules_are_broken(first: str, second: str, fake_provider: FakeProvider) -> None:
    home, away = KINDS[first].client(fake_provider), KINDS[second].client(fake_provider)
    await exchange(home, KINDS[first], fake_provider, "one")
    history = home.get_history()
    for message in history:
        del message["origin"]
    away.set_history(history)
    body = await send(away, user("And then?"), fake_provider, KINDS[second].says("two"))
    with pytest.raises(AssertionError):
        check(KINDS[second], body, ())
