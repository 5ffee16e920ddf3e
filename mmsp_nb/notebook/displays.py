"""How answers and conversations look as the result of a cell: rendered, bounded, and without keys."""

from __future__ import annotations

import contextlib
from typing import Any

# what draws is loaded when the first answer is drawn
__all__ = ["register", "unregister"]

LIMIT = 40_000
"""Characters of an answer that are rendered; the object has all of it."""

_TYPES = (("mmsp_nb.answer", "Answer"), ("mmsp_nb.conversation", "Conversation"))


def register(shell: Any) -> None:
    """Use our representations in this shell. The types themselves are not loaded before they exist."""
    for module, name in _TYPES:
        formatters = shell.display_formatter.formatters
        formatters["text/plain"].for_type_by_name(module, name, _plain)
        formatters["text/html"].for_type_by_name(module, name, _answer if name == "Answer" else _conversation)


def unregister(shell: Any) -> None:
    """Go back to the objects' own representations."""
    for module, name in _TYPES:
        for kind in ("text/plain", "text/html"):
            with contextlib.suppress(KeyError):
                shell.display_formatter.formatters[kind].pop(f"{module}.{name}")


def _plain(value: Any, printer: Any, cycle: bool) -> None:
    from .sanitize import clean
    from .secrets import mask

    printer.text(clean(mask(repr(value))))


def _answer(answer: Any) -> str:
    from mmsp_nb.exports import note_of

    from .render import note_html, text_html, wrap
    from .sanitize import shorten
    from .secrets import mask

    note = note_of(answer.turn)
    return wrap(text_html(shorten(mask(answer.text), LIMIT)), extra=note_html(mask(note)) if note else "")


def _conversation(chat: Any) -> str:
    from .sanitize import clean
    from .secrets import mask

    return clean(mask(str(chat._repr_html_())))
