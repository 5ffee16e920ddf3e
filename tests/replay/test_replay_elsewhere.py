"""What was recorded is the same in another process, without a network and without a key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from talks import CLIENTS, KEY, demo, talk

from mmsp_nb import Conversation
from mmsp_nb.testing import FakeProvider, Reply, streams
from mmsp_nb.testing.plugin import VARIABLES
from mmsp_nb.testing.streams import PNG
from mmsp_nb.transport.cassette import Cassette, record

HERE = Path(__file__).parent


def replayed(path: Path, client_type: str, address: str = "") -> dict:
    environ = {name: value for name, value in os.environ.items() if name not in (*VARIABLES, "MMSP_MODEL")}
    command = [sys.executable, str(HERE / "talks.py"), str(path), client_type, address]
    ran = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout)


def script(provider: FakeProvider, dialect: str) -> None:
    provider.add(streams.reply("tools", dialect), streams.reply("text", dialect), streams.reply("thinking", dialect))
    provider.when("/chart.png", Reply.data(PNG, "image/png"))
    names = {"data": [{"id": "m-1"}, {"id": "m-2"}], "models": [{"name": "models/m-1"}, {"name": "models/m-2"}]}
    provider.when("/models", Reply.json({**names, "has_more": False}))


@pytest.mark.parametrize("client_type", CLIENTS)
async def test_every_dialect_is_the_same_elsewhere(client_type, tmp_path, monkeypatch):
    monkeypatch.setenv("SOMEBODYS_API_KEY", "a-key-in-the-environment")
    path = tmp_path / "talk.jsonl"
    with FakeProvider() as provider:
        script(provider, CLIENTS[client_type][0])
        address = provider.url()
        first = await talk(record(path), client_type, address, KEY)
        assert any(KEY in str(dict(request.headers)) for request in provider.requests)
    assert first["events"] and first["more"] and first["models"] == ["m-1", "m-2"]
    text = path.read_text()
    for secret in (KEY, KEY[3:], "a-key-in-the-environment", "authorization", "api-key"):
        assert secret not in text.lower()
    again = replayed(path, client_type, address)
    assert again.pop("unused") == []
    assert again == first


def test_the_demo_is_the_same_elsewhere(tmp_path, no_provider_keys, monkeypatch):
    monkeypatch.setenv("MMSP_MODEL", "demo")
    path = tmp_path / "talk.jsonl"
    first = demo(Cassette(path, "once"))
    assert json.loads(path.read_text().splitlines()[0])["model"] == "demo"
    again = replayed(path, "demo")
    assert again.pop("unused") == []
    assert again == first


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_recording_is_replayed_with_the_model_it_was_made_with(tmp_path, no_provider_keys, monkeypatch, everywhere):
    def ask(mode: str) -> str:
        cassette = Cassette(tmp_path / "talk.jsonl", mode)
        if not everywhere:
            return Conversation(cassette=cassette).ask("Hello").text
        with cassette.everywhere():
            return Conversation().ask("Hello").text

    monkeypatch.setenv("MMSP_MODEL", "demo")
    first = ask("all")
    monkeypatch.setenv("MMSP_MODEL", "gpt-5.5")
    assert ask("none") == first
