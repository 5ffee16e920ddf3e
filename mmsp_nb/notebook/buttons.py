"""Two buttons below calls that wait: they do what ``%mmsp approve`` and ``%mmsp deny`` in the next cell would do."""

from __future__ import annotations

from typing import Any

__all__ = ["show"]

CHAT = "_mmsp_deciding"
"""The variable that holds the conversation while a button's cell runs."""


def show(shell: Any, turn: Any, chat: Any) -> bool:
    """Display the buttons for the calls of ``turn``. False where there are no widgets.

    They are a convenience and never the record: the panel above them says the same as text.
    """
    try:
        from ipywidgets import Button, HBox, Output, VBox
    except ImportError:
        return False
    from IPython.display import display

    approve = Button(description="Approve", button_style="warning", icon="check")
    deny = Button(description="Deny", icon="times")
    output = Output()
    box = VBox([HBox([approve, deny]), output])

    def decide(word: str) -> None:
        approve.disabled = deny.disabled = True
        with output:
            if not chat.turns or chat.turns[-1] is not turn:
                print("This has been decided, or something else was asked.")
                return
            # as a cell of its own, so that the answer is drawn and its tools behave as in one
            shell.user_ns[CHAT] = chat
            try:
                shell.run_cell(f"{CHAT}.{word}();", store_history=False)
            finally:
                shell.user_ns.pop(CHAT, None)

    approve.on_click(lambda _: decide("approve"))
    deny.on_click(lambda _: decide("deny"))
    display(box)
    return True
