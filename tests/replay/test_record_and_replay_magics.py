"""``%mmsp record`` and ``%mmsp replay``: for everything in a shell, chats that are there included."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mmsp_nb.notebook.chats import Chats, Defaults
from mmsp_nb.notebook.options import OptionError
from mmsp_nb.notebook.recordings import record, replay, replaying
from mmsp_nb.transport.cassette import use

CELLS = """
%load_ext mmsp_nb
%mmsp record talk.jsonl
%mmsp ask -q -o first What is 3 + 4?
%mmsp record off
%mmsp replay talk.jsonl
%mmsp ask -q -o second --new What is 3 + 4?
assert first.text == second.text
%mmsp replay
"""


@pytest.fixture
def chats(tmp_path, monkeypatch, no_provider_keys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MMSP_MODEL", "demo")
    yield Chats(lambda: Defaults(), {})
    use(None)


def test_what_was_asked_in_a_chat_is_answered_again(chats):
    assert "nothing is recorded" in replay(chats)
    assert record(chats, "talk.jsonl").startswith("recording to talk.jsonl")
    first = chats.get().ask("What is 3 + 4?").text
    assert record(chats) == "recording talk.jsonl (all): 1 answer so far"
    assert record(chats, "off") == "done with talk.jsonl: 1 answer"
    assert replay(chats, "talk.jsonl") == "replaying talk.jsonl: 1 answer, without a key and a network"
    assert replaying()
    assert replay(chats).splitlines()[1].startswith("not asked for yet: POST /v1/chat/completions 'What is 3 + 4?'")
    assert chats.renew().ask("What is 3 + 4?").text == first
    assert replay(chats) == "replaying talk.jsonl: 1 answer"
    replay(chats, "off")
    assert not replaying()


def test_a_chat_goes_on_after_the_replay(chats):
    record(chats, "talk.jsonl")
    chats.get().ask("My name is Ada.")
    replay(chats, "talk.jsonl")
    chat = chats.renew()
    chat.ask("My name is Ada.")
    replay(chats, "off")
    assert "Ada" in chat.ask("What is my name?").text


def test_a_replay_with_the_rhythm_is_watched(chats):
    record(chats, "talk.jsonl")
    chats.get().ask("Hello")
    replay(chats, "talk.jsonl", "50x")
    assert not replaying()
    assert chats.renew().ask("Hello").text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("record", "a.jsonl", "onse"), "did you mean 'once'"),
        (("record", "a.jsonl", "none"), "once, new, all"),
        (("replay", "a.jsonl"), "there is no recording 'a.jsonl': make one with %mmsp record a.jsonl"),
        (("replay", "a.jsonl", "fast"), "the speed of a replay is a number"),
        (("replay", "a.jsonl", "0"), "must be above 0"),
    ],
)
def test_what_cannot_be_done_is_said(chats, words, message):
    with pytest.raises(OptionError, match=message):
        {"record": record, "replay": replay}[words[0]](chats, *words[1:])


def test_in_a_shell(tmp_path, no_provider_keys):
    code = "import sys\nfrom IPython.core.interactiveshell import InteractiveShell\n"
    code += "shell = InteractiveShell.instance(colors='NoColor')\n"
    code += "sys.exit(not all(shell.run_cell(line).success for line in sys.stdin.read().strip().splitlines()))"
    env = {**os.environ, "MMSP_MODEL": "demo", "IPYTHONDIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", code], input=CELLS, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=60
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.rstrip().endswith("replaying talk.jsonl: 1 answer")
