"""The pytest plugin, as users have it: it is there because the package is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from mmsp_nb import AutoLLMClient, Conversation, Transport, TransportError
from mmsp_nb.testing import Reply, assert_called, assert_not_called, assert_said, streams
from mmsp_nb.testing.plugin import VARIABLES


def test_the_provider_is_running_and_empty(fake_provider):
    fake_provider.add(Reply.json(1))
    assert httpx.get(fake_provider.url("/")).json() == 1
    assert len(fake_provider.requests) == 1


@pytest.fixture
def keys(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, "sk-from-the-environment")


def test_keys_and_endpoints_are_out_of_sight(keys, no_provider_keys):
    assert [name for name in VARIABLES if name in os.environ] == []


def test_every_vendors_variables_are_covered():
    from mmsp_nb.providers.vendors import VENDORS

    used = {name for vendor in VENDORS.values() for name in (vendor.api_key_env, vendor.base_url_env)}
    assert used - {None} <= set(VARIABLES)


def test_importing_the_plugin_imports_little():
    code = "import sys, mmsp_nb.testing.plugin; print([m for m in sys.modules if m.startswith(('mmsp_nb.', 'httpx'))])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(re.findall(r"'([\w.]+)'", ran.stdout)) == {
        "mmsp_nb._version",
        "mmsp_nb.testing",
        "mmsp_nb.testing.plugin",
    }


async def test_a_request_to_the_world_is_refused():
    client = AutoLLMClient("gpt-5.5", "a key", transport=Transport(retries=0))
    with pytest.raises(TransportError, match=r"request to api\.openai\.com was refused"):
        await client.list_models()


# looking at what a conversation did


def tide_table(port: str, days: int = 1) -> str:
    """Times and heights of the tides."""
    return f"{port}: high at noon"


@pytest.fixture
def chat(fake_provider):
    fake_provider.add(streams.reply("tools", "chat"), streams.reply("text", "chat"))
    chat = Conversation(
        "m", tools=[tide_table], api_key="k", base_url=fake_provider.url("/v1"), client_type="openai-chat"
    )
    chat.ask("When?")
    return chat


def test_calls_are_found_by_name_and_arguments(chat):
    assert len(assert_called(chat, "tide_table")) == 2
    [call] = assert_called(chat.turns[-1], "tide_table", port="Brest")
    assert call.result == "Brest: high at noon"
    assert_not_called(chat, "tide_table", port="Calais")
    assert_not_called(chat, "weather")
    assert_said(chat, "high tide in brest")


def test_a_failed_assertion_says_what_happened(chat):
    happened = r"calls were tide_table\(port='Brest', days=1\), tide_table\(port='Saint-Malo', days=2\)"
    with pytest.raises(AssertionError, match=rf"^tide_table\(port='Calais'\) was not called; {happened}$"):
        assert_called(chat, "tide_table", port="Calais")
    with pytest.raises(AssertionError, match="was called"):
        assert_not_called(chat)
    with pytest.raises(AssertionError, match="does not hold 'ebb'; it is 'High tide"):
        assert_said(chat, "ebb")
    with pytest.raises(TypeError, match="not int"):
        assert_called(3, "tide_table")


# a project of a user

TESTS = """
import os
import pytest
from mmsp_nb import Conversation

def ask(prompt="Hello"):
    return Conversation("demo", client_type="openai-chat").ask(prompt).text

@pytest.mark.mmsp_cassette
def test_by_name():
    assert ask()

@pytest.mark.mmsp_cassette("one.jsonl", strict=True)
def test_by_path(mmsp_cassette):
    assert ask("What is 3 + 4?")
    if os.environ.get("MORE") or mmsp_cassette.records:
        assert ask("What is 3 + 5?")

def test_without(mmsp_cassette):
    assert mmsp_cassette is None
    assert os.environ["MMSP_REQUESTS"] == "loopback"

@pytest.mark.mmsp_allow_requests
def test_open():
    assert "MMSP_REQUESTS" not in os.environ
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS)
    return tmp_path


def run(project: Path, *arguments: str, **environ: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments]
    ran = subprocess.run(
        command, cwd=project, capture_output=True, text=True, env={**os.environ, **environ}, timeout=120
    )
    return ran.stdout + ran.stderr


def test_recordings_of_a_users_tests(project):
    missing = run(project)
    assert "2 passed, 2 errors" in missing
    assert "record it with pytest --mmsp-record once" in missing
    assert "4 passed" in run(project, "--mmsp-record", "once")
    assert (project / "cassettes" / "test_mine" / "test_by_name.jsonl").exists()
    assert (project / "one.jsonl").exists()
    assert "4 passed" in run(project, MORE="1")
    unused = run(project)
    assert "3 passed, 1 error" in unused or "4 passed, 1 error" in unused
    assert "not asked for: POST /v1/chat/completions 'What is 3 + 5?'" in unused
