"""The inspector in a notebook: one anywidget for a conversation or a trace, and what shows where there is no widget."""

from __future__ import annotations

import html
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from .assets import bundle, static_text
from .desk import Desk

__all__ = ["History", "Inspector", "chat", "inspect", "static_text"]


class Inspector(anywidget.AnyWidget):
    """Shows a conversation, and follows it while it runs. Make one with `Conversation.browse` or `inspect`.

    What the notebook's file keeps of it is bounded: the page's code, and a static view of the last turns beside it.

    Attributes:
        conversation: What it shows.
        twin: Whether its output has the static view too. False where that stands in an output of its own.
    """

    twin = True
    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, conversation: Any, *, writable: bool = True) -> None:
        self.conversation = conversation
        super().__init__(_esm=bundle("widget.js"), _css=static_text("inspector.css"))
        mine = weakref.ref(self)

        def send(message: dict[str, Any]) -> None:
            widget = mine()
            if widget is not None and widget.comm is not None:
                widget.send(message)

        self._desk = Desk(conversation, send, writable=writable, namespace=_variables, folder=Path)
        self.on_msg(_received)

    def close(self) -> None:
        """Follow the conversation no longer, and take the view away."""
        if hasattr(self, "_desk"):
            self._desk.close()
        super().close()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        made = super()._repr_mimebundle_(**options)
        data, metadata = made if isinstance(made, tuple) else (made or {}, {})
        data = {**data, "text/plain": repr(self)}
        if self.twin:
            data["text/html"] = self.conversation._repr_html_()
        return data, metadata

    def __repr__(self) -> str:
        return f"Inspector of {html.unescape(repr(self.conversation).splitlines()[0])}"


class History:
    """What ``%mmsp history`` shows: the conversation's static view, and where somebody watches its widget above that.

    They are outputs of their own: a front end shows one part of an output only, and a notebook that is opened without
    its kernel has no widget.
    """

    def __init__(self, conversation: Any, *, live: bool) -> None:
        self.conversation = conversation
        self.live = live

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if self.live:
            widget = Inspector(self.conversation)
            widget.twin = False
            display(widget)
        display(self.conversation)


def _variables() -> Mapping[str, Any]:
    """What expressions in the box see: the user's variables."""
    from IPython import get_ipython

    shell = get_ipython()
    return {} if shell is None else shell.user_ns


def _received(widget: Inspector, message: Any, buffers: Any) -> None:
    if isinstance(message, dict):
        widget._desk.handle(message)


def inspect(what: Any) -> Inspector:
    """Look into a conversation, a file of one, or a trace file: a widget for a notebook.

    Args:
        what: A `Conversation`, whose widget also asks, edits and branches; or a path, which is only looked at.

    Raises:
        ConversationFileError, OSError: The file cannot be read.
    """
    if isinstance(what, str | Path):
        from mmsp_nb.files import load

        return Inspector(load(what), writable=False)
    if not hasattr(what, "turns"):
        raise TypeError(f"inspect() takes a Conversation or a path, not {type(what).__name__}")
    return Inspector(what)


def chat(model: str | None = None, **options: Any) -> Inspector:
    """A chat without writing cells: the inspector of a new conversation, with a box to type in.

    Args:
        model: As for `Conversation`; an existing Conversation goes on in the box.
        options: Those of `Conversation`. ``tools`` is by default what ``%%mmsp`` uses: the functions marked as tools.

    Returns:
        The widget; the conversation is its ``conversation``.
    """
    from mmsp_nb.conversation import Conversation
    from mmsp_nb.tools import registry

    if isinstance(model, Conversation):
        if options:
            raise TypeError("options are for a new conversation")
        return Inspector(model)
    options.setdefault("tools", registry)
    options.setdefault("name", "Chat")
    return Inspector(Conversation(model, **options))
