"""Two buttons below calls that wait: they do what ``%mmsp approve`` and ``%mmsp deny`` in the next cell would do."""

from __future__ import annotations

from contextvars import ContextVar
from itertools import pairwise
from typing import Any

from .sanitize import clean, single_line
from .secrets import mask

__all__ = ["decided", "pressed", "show"]

CHAT = "_mmsp_deciding"
"""The variable that holds the conversation while a button's cell runs."""

pressed: ContextVar[bool] = ContextVar("pressed", default=False)
"""Whether a button's cell runs. Its output is a widget's, in which front ends change nothing that has been shown."""


def decided(turn: Any, chat: Any) -> str:
    """What became of the calls that wait in ``turn``, in a line; empty while they still wait."""
    turns = chat.turns
    if turns and turns[-1] is turn:
        return ""
    after = next((after for before, after in pairwise(turns) if before is turn), None)
    if after is None or not after.resumes:
        return "Not decided: something else was asked."
    waited = {call.id for call in turn.waiting}
    fates: dict[str, list[str]] = {}
    for outcome in after.outcomes:
        if outcome.call["tool_call_id"] in waited:
            fates.setdefault("Denied" if outcome.status == "denied" else "Approved", []).append(outcome.name)
    return "; ".join(f"{fate}: {_names(names)}" for fate, names in fates.items()) or "Decided."


def show(shell: Any, turn: Any, chat: Any) -> bool:
    """Display the buttons for the calls of ``turn``. False where there are no widgets.

    They are a convenience and never the record: the panel above them says the same as text. Once there is a decision,
    by them or in a cell, a line that says which stands in their place; when it is undone they come back.
    """
    try:
        from ipywidgets import Button, HBox, Label, Output, VBox
    except ImportError:
        return False
    from IPython.display import display

    names = _names(call.name for call in turn.waiting)
    approve = Button(description="Approve", button_style="warning", icon="check", tooltip=f"Run {names}")
    deny = Button(description="Deny", icon="times", tooltip=f"Do not run {names}")
    pair, said, output = HBox([approve, deny]), Label(), Output()
    box = VBox([pair, output])

    def update(line: str) -> None:
        approve.disabled = deny.disabled = bool(line)
        said.value = line
        box.children = (said if line else pair, output)

    def follow(_: Any, event: Any) -> None:
        if event is None:  # a turn began or ended, or turns were changed: perhaps by a cell that decided
            update(decided(turn, chat))

    def decide(word: str, line: str) -> None:
        if approve.disabled:  # a second click that was on its way
            return
        update(line)
        with output:
            # as a cell of its own, so that the answer is drawn and its tools behave as in one
            shell.user_ns[CHAT] = chat
            token = pressed.set(True)
            try:
                shell.run_cell(f"{CHAT}.{word}();", store_history=False)
            finally:
                pressed.reset(token)
                shell.user_ns.pop(CHAT, None)

    approve.on_click(lambda _: decide("approve", f"Approved: {names}"))
    deny.on_click(lambda _: decide("deny", f"Denied: {names}"))
    chat.watch(follow)
    display(box)
    return True


def _names(names: Any) -> str:
    """Names of tools, each once."""
    return ", ".join(dict.fromkeys(single_line(clean(mask(name)), 40) for name in names))
