"""How answers and conversations look as the result of a cell: rendered, bounded, and without keys."""

from __future__ import annotations

import contextlib
from typing import Any

from .host import in_kernel

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

    if not in_kernel(shell) and not isinstance(shell.display_trap.hook, _Hook):
        shell.display_trap.hook = _Hook(shell.display_trap.hook)


class _Hook:
    """A terminal's display hook that shows nothing of an answer that was just drawn: no bare ``Out[3]:`` either."""

    def __init__(self, hook: Any) -> None:
        self.hook = hook

    def __call__(self, result: Any = None) -> None:
        if (
            type(result).__name__ == "Answer"
            and getattr(result, "shown", False)
            and hasattr(self.hook, "update_user_ns")
        ):
            result.shown = False
            self.hook.check_for_underscore()
            self.hook.update_user_ns(result)
            self.hook.fill_exec_result(result)
        else:
            self.hook(result)


def unregister(shell: Any) -> None:
    """Go back to the objects' own representations."""
    if isinstance(hook := shell.display_trap.hook, _Hook):
        shell.display_trap.hook = hook.hook
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
