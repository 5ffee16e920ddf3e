"""How a stream was cut into pieces on its way makes no difference."""

from __future__ import annotations

from typing import Any

import pytest
from clients import CLIENTS, events_of, make_client, user

from mmsp_nb.testing import Reply, Style, faults, streams

STYLES = {
    "plain": Style(),
    "crlf": Style(newline="\r\n"),
    "cr": Style(newline="\r"),
    "bom and comments": Style(bom=True, comments=2, ids=True),
    "no space, several lines": Style(space=False, multiline=True),
}
ANSWERS = [
    (client_type, name)
    for client_type, (dialect, _) in CLIENTS.items()
    for name in streams.NAMES
    if name not in ("images", "audio") or dialect in ("interactions", "generate_content", "mmsp")
]


def options(client_type: str) -> dict[str, Any]:
    return {"calls_at_end": True} if client_type == "minimax-official" else {}


@pytest.mark.parametrize(("client_type", "name"), ANSWERS)
async def test_any_cutting_into_chunks_gives_the_same_events(client_type, name, provider):
    dialect, _ = CLIENTS[client_type]
    whole = streams.reply(name, dialect, **options(client_type))
    cuttings = [whole, whole.joined(), whole.bytewise(), whole.split(7), *(whole.shuffled(seed) for seed in range(6))]
    provider.add(*cuttings)
    client = make_client(provider, client_type)
    seen = [await events_of(client.streaming_response([user("Q")])) for _ in cuttings]
    assert seen[0][-1]["event_type"] == "stop"
    for events in seen[1:]:
        assert events == seen[0]


@pytest.mark.parametrize("client_type", CLIENTS)
async def test_any_style_of_frames_gives_the_same_events(client_type, provider):
    dialect, _ = CLIENTS[client_type]
    client = make_client(provider, client_type)
    for name in ("thinking", "tools"):
        written = [streams.reply(name, dialect, style=style, **options(client_type)) for style in STYLES.values()]
        replies = [reply for plain in written for reply in (plain, plain.bytewise(), plain.shuffled(1, 5))]
        provider.add(*replies)
        seen = [await events_of(client.streaming_response([user("Q")])) for _ in replies]
        assert all(events == seen[0] for events in seen)


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("client_type", CLIENTS)
async def test_any_framing_of_the_body_gives_the_same_events(client_type, framing, provider):
    dialect, _ = CLIENTS[client_type]
    frames = streams.frames("tools", dialect, **options(client_type))
    provider.add(Reply.stream(frames), Reply.stream(frames, framing=framing))
    client = make_client(provider, client_type)
    first, second = [await events_of(client.streaming_response([user("Q")])) for _ in range(2)]
    assert first == second


@pytest.mark.parametrize("fault", ["crlf", "cr", "bom", "no-space", "comments", "multiline", "drops-connection"])
@pytest.mark.parametrize("client_type", CLIENTS)
async def test_odd_servers_are_understood(client_type, fault, provider):
    dialect, _ = CLIENTS[client_type]
    provider.add(faults.reply(fault, dialect), faults.reply(fault, dialect))
    client = make_client(provider, client_type)
    for _ in range(2):
        assert (await events_of(client.streaming_response([user("Q")])))[-1]["event_type"] == "stop"
