"""Clients of a user that keep the protocol badly: the error names the client and what it gave; nothing is lost."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from mmsp_nb import Conversation
from mmsp_nb.protocol.errors import StreamProtocolError

DELTA = {"event_type": "delta", "content_items": [{"type": "text.delta", "text": "Half"}]}


class Number:
    def streaming_response_stateful(self, message: Any, config: Any) -> Any:
        return 5


class Coroutine:
    async def streaming_response_stateful(self, message: Any, config: Any) -> Any:
        return None


class Generator:
    def streaming_response_stateful(self, message: Any, config: Any) -> Any:
        yield DELTA


class Odd:
    """Gives a piece of text and then ``event``."""

    def __init__(self, event: Any) -> None:
        self.event = event

    async def streaming_response_stateful(self, message: Any, config: Any) -> Any:
        yield DELTA
        yield self.event


class OddWithHistory(Odd):
    def get_history(self) -> list[Any]:
        return []

    def set_history(self, history: Any) -> None:
        pass


@pytest.mark.parametrize("client", [Number(), Coroutine(), Generator()])
def test_a_client_that_gives_no_stream_is_named(client: Any) -> None:
    chat = Conversation(client=client)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StreamProtocolError) as caught:
            chat.ask("hi")
    assert str(caught.value).startswith(f"{type(client).__name__}.streaming_response_stateful() gave ")
    assert str(caught.value).endswith("make it an async generator")
    assert chat.turns[-1].prompt == "hi"


@pytest.mark.parametrize("kind", [Odd, OddWithHistory])
@pytest.mark.parametrize(
    ("event", "what"),
    [
        (None, "gave None,"),
        ("text", "gave 'text',"),
        ({}, "gave an empty dict without 'event_type',"),
        ({"event_type": "delta"}, "gave a dict without 'content_items',"),
        ({"event_type": "delta", "content_items": "nope"}, "gave a dict,"),
        ({"event_type": "delta", "content_items": [{"text": "a"}]}, "gave a dict without 'type',"),
        ({"event_type": "delta", "content_items": [{"type": "text.delta", "text": 5}]}, "gave a dict,"),
        ({"event_type": "delta", "content_items": [{"type": "text.delta"}]}, "gave a dict without 'text',"),
        ({"event_type": None, "content_items": []}, "gave a dict,"),
    ],
)
def test_what_is_no_event_is_named_and_the_text_before_it_is_kept(kind: Any, event: Any, what: str) -> None:
    chat = Conversation(client=kind(event))
    with pytest.raises(StreamProtocolError) as caught:
        chat.ask("hi")
    assert f"{kind.__name__} {what} which is no event of the protocol" in str(caught.value)
    assert (chat.turns[-1].state, chat.turns[-1].text) == ("partial", "Half")
