"""Asks the person at a terminal whether a call may run. The only place where `input` is used."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from mmsp_nb.tools import Verdict

if TYPE_CHECKING:
    from mmsp_nb.approval import PendingCall

__all__ = ["can_ask", "decide"]


def can_ask() -> bool:
    """Whether somebody sits at a terminal and this thread may talk to them."""
    try:
        interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
    except (AttributeError, ValueError):  # closed, or replaced by something else
        return False
    return interactive and threading.current_thread() is threading.main_thread()


def decide(
    calls: list[PendingCall], *, read: Callable[[str], str] = input, write: Callable[[str], object] = print
) -> list[Verdict | None]:
    """A verdict for each call. Everything but a clear yes leaves the function alone; at the end of input it stays open.

    Args:
        calls: What is to be decided.
        read: Asks for a line, like `input`.
        write: Shows a text, like `print`.
    """
    verdicts: list[Verdict | None] = []
    for call in calls:
        write(f"The model wants to run a tool ({call.reason}):\n{call}")
        try:
            verdicts.append(_verdict(call, read, write))
        except EOFError:
            verdicts.append(None)
    return verdicts


def _verdict(call: PendingCall, read: Callable[[str], str], write: Callable[[str], object]) -> Verdict:
    while True:
        answer = read("Run it? [y]es, [n]o, [e]dit the arguments, or a reason against it: ").strip()
        word = answer.lower()
        if word in ("y", "yes"):
            return Verdict(True)
        if word in ("", "n", "no"):
            return Verdict(False)
        if word not in ("e", "edit"):
            return Verdict(False, answer)
        try:
            arguments = json.loads(read("Arguments as a JSON object: "))
        except ValueError as error:
            write(f"That is no JSON: {error}")
            continue
        if isinstance(arguments, dict):
            return Verdict(True, arguments=arguments)
        write("That is no JSON object.")
