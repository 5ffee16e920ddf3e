"""Token counts that are none: the answer is whole, the conversation goes on, and its file can be read again."""

from __future__ import annotations

import re

import pytest
from clients import CLIENTS, make_client

from mmsp_nb import Conversation
from mmsp_nb.protocol import usage as tokens
from mmsp_nb.testing import Reply, streams

COUNT = re.compile(rb'"(\w*(?:[Tt]okens|TokenCount))":\d+')
ODD = ["null", "1.5", "1e400", "NaN", "-7", "true", '"many"', "[1]", '{"a": 1}']


def with_counts(dialect: str, written: str) -> Reply:
    """The canonical text, with ``written`` in the place of each count that says how many tokens there were."""
    content = COUNT.sub(lambda match: b'"%b":%b' % (match[1], written.encode()), streams.reply("text", dialect).content)
    return Reply([content], headers={"content-type": "text/event-stream"})


@pytest.mark.parametrize("written", ODD)
@pytest.mark.parametrize("client_type", [each for each in CLIENTS if each != "google-genai"])
def test_a_count_that_is_no_number_of_tokens_is_not_reported(client_type, written, provider, tmp_path):
    dialect, _ = CLIENTS[client_type]
    chat = Conversation(client=make_client(provider, client_type))
    provider.add(with_counts(dialect, written), streams.reply("text", dialect))
    whole = streams.parts("text")
    said = "".join("".join(part.pieces) for part in whole)
    assert chat.ask("Q1").text == said
    assert set(chat.turns[0].usage.values()) == {None}
    assert chat.ask("Q2").text == said
    assert chat.usage == chat.turns[1].usage
    assert tokens.cost(chat.usage, {"prompt_tokens": 1, "cached_tokens": 1, "response_tokens": 1, "thoughts_tokens": 1})
    chat.save(tmp_path / "chat.json")
    loaded = Conversation.load(tmp_path / "chat.json", client=make_client(provider, client_type))
    assert loaded.usage == chat.usage


@pytest.mark.parametrize("written", ["12.0", '"12"', "1.2e1"])
@pytest.mark.parametrize("client_type", CLIENTS)
def test_a_count_may_be_written_as_gateways_write_it(client_type, written, provider):
    dialect, _ = CLIENTS[client_type]
    chat = Conversation(client=make_client(provider, client_type))
    provider.add(with_counts(dialect, written))
    chat.ask("Q")
    counts = [value for value in chat.turns[0].usage.values() if value]
    assert counts and all(value.__class__ is int and value % 12 == 0 for value in counts)
