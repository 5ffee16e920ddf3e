"""Answers in terminal IPython, on a real pseudo-terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pexpect = pytest.importorskip("pexpect", reason="there are no pseudo-terminals here")

pytestmark = pytest.mark.kernel

SETUP = """
from IPython import get_ipython
get_ipython().run_line_magic("load_ext", "mmsp_nb")
from scripted import *
from mmsp_nb import Conversation, tool
@tool
def tide(port: str):
    "Tide of a port"
    return 5
def talk(*scripts, pace=0.0, tools=()):
    chat = Conversation(client=Scripted(*scripts, pace=pace), tools=list(tools))
    get_ipython().magics_manager.registry["MMSPMagics"].chats._chats["main"] = chat
"""
PROMPT = r"In \[\d+\]: "


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """``terminal(**variables)``: IPython at its first prompt."""
    started: list[Any] = []
    (tmp_path / "setup.py").write_text(SETUP)

    def start(**more: str) -> Any:
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "MMSP_MODEL": "demo", "TERM": "xterm"}
        env |= {"IPYTHONDIR": str(tmp_path), **more}
        env.pop("PYTEST_CURRENT_TEST", None)
        command = [
            "-m",
            "IPython",
            "--simple-prompt",
            "--no-banner",
            "--colors=NoColor",
            "-i",
            str(tmp_path / "setup.py"),
        ]
        child = pexpect.spawn(sys.executable, command, env=env, encoding="utf-8", dimensions=(30, 60), timeout=40)
        child.setecho(False)
        started.append(child)
        child.expect(PROMPT)
        return child

    yield start
    for child in started:
        child.close(force=True)


def said(child: Any, line: str) -> str:
    """What comes of a line until the next prompt."""
    child.sendline(line)
    child.expect(PROMPT)
    return str(child.before).replace("\r\n", "\n")


def test_text_streams_thinking_is_dim_and_a_call_is_a_line(terminal: Callable[..., Any]) -> None:
    child = terminal()
    said(
        child,
        "talk([thinking('Hm, ', 'tides.'), text('Let me see.'), call('tide', port='Brest')],"
        " [text('At **5**, ', '漢字 ' * 40)], tools=[tide], pace=0.01)",
    )
    shown = said(child, "%mmsp ask When is high water?")
    assert "\x1b[2m[thinking] \x1b[22m" in shown
    plain = re.sub(r"\x1b\[2?2?m", "", shown)
    assert "\x1b" not in plain, "nothing is moved or erased"
    assert "\r" not in plain
    order = ["[thinking] Hm, tides.", "Let me see.", '● tide(port="Brest")', '✓ tide(port="Brest") → 5', "At **5**"]
    assert [plain.index(part) for part in order] == sorted(plain.index(part) for part in order)
    assert plain.count("漢字 ") == 40


def test_without_colour_no_escape_is_written(terminal: Callable[..., Any]) -> None:
    child = terminal(NO_COLOR="1")
    said(child, "talk([thinking('Hm.'), text('Yes.')])")
    shown = said(child, "%mmsp ask Really?")
    assert "[thinking] Hm." in shown
    assert "\x1b" not in shown


def test_what_is_no_json_is_said(terminal: Callable[..., Any]) -> None:
    child = terminal()
    said(child, """talk([text('{"a": 1}')], [text('Sorry, no.')])""")
    assert "not JSON" not in said(child, "%mmsp ask --format json Really?")
    assert "Sorry, no.\n[the answer is not JSON: Expecting value" in said(child, "%mmsp ask --format json Really?")


def test_control_c_keeps_what_had_come_and_the_shell(terminal: Callable[..., Any]) -> None:
    child = terminal()
    said(child, "talk([text('The tide is rising. ')[0], 60], [text('As I said.')])")
    child.sendline("%mmsp ask Go on.")
    child.expect("rising")
    child.sendintr()
    child.expect(PROMPT)
    assert "[stopped after" in child.before
    assert "Traceback" not in child.before.replace("Traceback (most recent call last)", "", 1)
    assert "rising" in said(child, "print(_mmsp.text)")
    assert "As I said." in said(child, "%mmsp ask And?")
