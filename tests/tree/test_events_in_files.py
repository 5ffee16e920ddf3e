"""The events of answers are in a file when they are asked for: as they came, and without keys in pieces."""

from __future__ import annotations

import json

import pytest
from agent_scripted import ScriptedClient, call, text, thinking

from mmsp_nb import Conversation, load
from mmsp_nb.restoring import ConversationFileError

KEY = "sk-proj-aB3dE5gH7jK9mN1pQ3s"


def look(where: str = "") -> str:
    """Look."""
    return "seen"


@pytest.fixture
def chat():
    client = ScriptedClient([thinking("hm", "m"), text("a ", "b"), call("look")], [text("end")], [text("x", "y")])
    chat = Conversation(client=client, tools=[look])
    chat.ask("go")
    chat.ask("on")
    return chat


def test_they_come_back_as_they_were(chat, tmp_path):
    path = chat.save(tmp_path / "talk.jsonl", events=True)
    other = load(path, client=ScriptedClient(), tools=[look])
    for mine, theirs in zip(chat.turns, other.turns, strict=True):
        assert [event for _, event in theirs.log] == [event for _, event in mine.log]
        assert [at for at, _ in theirs.log] == pytest.approx([at for at, _ in mine.log], abs=1e-3)
    assert other.save(tmp_path / "again.jsonl", events=True).read_bytes() == path.read_bytes()


def test_they_are_left_out_unless_they_are_asked_for(chat, tmp_path):
    path = chat.save(tmp_path / "talk.jsonl", times=True)
    assert '"is": "event"' not in path.read_text()
    assert all(turn.log is None for turn in load(path, client=ScriptedClient(), tools=[look]).turns)


def test_no_part_of_a_key_is_in_them(tmp_path):
    pieces = [KEY[:9], KEY[9:18], KEY[18:]]
    client = ScriptedClient(
        [thinking("I see ", *pieces), text("it is ", *pieces, ", yes"), call("look", where=KEY)],
        [text("harm", "less")],
    )
    chat = Conversation(client=client, tools=[look])
    chat.ask("go")
    written = chat.save(tmp_path / "talk.jsonl", events=True).read_text()
    assert not [piece for piece in (KEY, *pieces[1:]) if piece in written]
    said = [
        item["text"]
        for _, event in load(tmp_path / "talk.jsonl", client=ScriptedClient()).turns[0].log
        for item in event["content_items"]
        if item["type"] == "text.delta"
    ]
    assert said == ["it is sk-proj-***, yes", "", "", "", "", "harm", "less"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"at": "soon"}, "'at'"),
        ({"event": {}}, "is missing"),
        ({"event": None}, "'event'"),
        (lambda record: record["event"]["content_items"].append({"type": 3}), "without a type"),
        (lambda record: record["event"]["content_items"].append({"type": "text.delta"}), "a piece without its text"),
    ],
)
def test_a_damaged_one_is_named(chat, tmp_path, change, what):
    path = chat.save(tmp_path / "talk.jsonl", events=True)
    lines = path.read_text().splitlines()
    number = next(n for n, line in enumerate(lines) if '"is": "event"' in line)
    record = json.loads(lines[number])
    if callable(change):
        change(record)
    else:
        record |= change
    path.write_text("\n".join([*lines[:number], json.dumps(record), *lines[number + 1 :]]) + "\n")
    with pytest.raises(ConversationFileError, match=f"event record is damaged: .*{what}") as caught:
        load(path, client=ScriptedClient())
    assert caught.value.line == number + 1
