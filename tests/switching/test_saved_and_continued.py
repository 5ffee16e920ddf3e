"""A conversation of four vendors, saved, loaded in another process, forked, and continued with a fifth."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from switch_kinds import KINDS, picture
from test_switching_conversation import tide_table, where
from wire_rules import check

from mmsp_nb import Conversation, diff, load
from mmsp_nb.testing import FakeProvider

FOUR = ("anthropic-official", "openai-official", "google-official", "openai-chat")
FIFTH = "moonshot-official"

ELSEWHERE = """
import json, sys
from mmsp_nb import load

path, base_url, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

def tide_table(port: str) -> str:
    "When is high tide?"
    return f"high tide in {port}"

chat = load(path, tools=[tide_table], api_key="key", base_url=base_url)
fork = chat.fork(at=2)
report = fork.switch(**options)
answer = fork.ask("fifth: tides?")
fork.save(path.replace("talk", "fork"))
print(json.dumps({"text": answer.text, "turns": [len(chat.turns), len(fork.turns)], "mended": bool(report)}))
"""


def test_four_vendors_a_file_another_process_a_fork_and_a_fifth(fake_provider: FakeProvider, tmp_path: Path) -> None:
    first = KINDS[FOUR[0]]
    chat = Conversation(first.model, tools=[tide_table], system="Be brief.", **where(first, fake_provider))
    for name in FOUR:
        kind = KINDS[name]
        if name != FOUR[0]:
            chat.switch(kind.model, **where(kind, fake_provider))
        fake_provider.add(kind.asks(name), kind.says(name))
        chat.ask([f"{name}: tides?", picture()])
    path = chat.save(tmp_path / "talk.jsonl")
    other = load(path, tools=[tide_table], api_key="key", base_url=fake_provider.url("/v1"))
    assert not diff(chat, other)

    fifth = KINDS[FIFTH]
    fake_provider.reset()
    fake_provider.add(fifth.asks("fifth"), fifth.says("fifth"))
    options = json.dumps({"model": fifth.model, **where(fifth, fake_provider)})
    command = [sys.executable, "-c", ELSEWHERE, str(path), fake_provider.url("/v1"), options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"text": "fifth: high tide.", "turns": [4, 4], "mended": True}
    for request in fake_provider.requests:
        check(fifth, request.body, set())
    assert "google-official: tides?" in json.dumps(fake_provider.last.body)
    assert "openai-chat: tides?" not in json.dumps(fake_provider.last.body)

    continued = load(tmp_path / "fork.jsonl", tools=[tide_table], api_key="key")
    found = diff(chat, continued)
    assert [pair.status for pair in found] == ["same", "same", "same", "changed"]
    assert [turn.client_type for turn in continued.turns] == [*FOUR[:3], FIFTH]
    assert continued.turns[0].history == other.turns[0].history, "signatures of the first vendor are kept"
