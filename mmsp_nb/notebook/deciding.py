"""``%mmsp approve`` and ``%mmsp deny``: what is typed becomes a decision; and the panel that shows what waits."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol.suggestions import did_you_mean
from mmsp_nb.styles import WRAPPED

from .options import OptionError
from .render import note_html, wrap
from .sanitize import clean, escape
from .secrets import mask

if TYPE_CHECKING:
    from mmsp_nb.approval import PendingCall

__all__ = ["Decision", "panel", "parse"]

_EDIT = re.compile(r"(?P<name>\w+)=")
_END = re.compile(r"[\"'\])}](?=\s|\Z)")
"""Where a value of Python may end."""

_BOX = "border:1px solid var(--jp-warn-color1,#f57c00);border-radius:4px;padding:.4em .8em;margin:.4em 0"
_PRE = f"{WRAPPED};margin:.3em 0"


@dataclass
class Decision:
    """A word about the calls that wait. ``names`` empty: all of them; ``arguments`` None: as the model gave them."""

    approved: bool
    names: list[str] = field(default_factory=list)
    arguments: dict[str, Any] | None = None
    reason: str = ""


def parse(command: str, text: str, waiting: Sequence[PendingCall]) -> Decision:
    """``approve [NAMES] [argument=value ...]`` or ``deny [REASON]``, for the calls that wait.

    A value is JSON, or a literal of Python, or a word. Raises OptionError for what fits none of them.
    """
    if not waiting:
        raise OptionError(f"there is nothing to {command}: no call waits for a word")
    text = text.strip()
    if command == "deny":
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
            text = text[1:-1]
        return Decision(False, reason=text)
    names: list[str] = []
    while text and not _EDIT.match(text):
        word, _, text = text.partition(" ")
        text = text.lstrip()
        names += [name for name in word.split(",") if name]
    for name in names:
        if not any(name in (call.name, call.id) for call in waiting):
            near = did_you_mean(name, [call.name for call in waiting])
            raise OptionError(f"no call {name!r} waits{near}; %mmsp approve without a name approves all")
    if not text:
        return Decision(True, names)
    chosen = [call for call in waiting if not names or call.name in names or call.id in names]
    if len(chosen) != 1:
        raise OptionError(f"arguments can be changed for one call, and {len(chosen)} are meant: name one by its id")
    return Decision(True, [chosen[0].id], {**chosen[0].arguments, **_edits(text, chosen[0])})


def _edits(text: str, call: PendingCall) -> dict[str, Any]:
    found: dict[str, Any] = {}
    known = list(call.tool.parameters.get("properties", {}))
    while text:
        match = _EDIT.match(text)
        if match is None:
            raise OptionError(f"after the names come changes like argument=value, not {text.split()[0]!r}")
        if known and match["name"] not in known:
            raise OptionError(f"{call.name} has no argument {match['name']!r}{did_you_mean(match['name'], known)}")
        text = text[match.end() :]
        try:
            value, end = json.JSONDecoder().raw_decode(text)
            if text[end : end + 1].strip():
                raise ValueError
        except ValueError:
            word = text.split(maxsplit=1)[0] if text.strip() and not text[0].isspace() else ""
            if not word or word[0] in "\"'[{(":
                if (literal := _literal(text)) is None:
                    raise OptionError(f"the value of {match['name']} is neither JSON nor Python nor a word") from None
                value, end = literal
            else:
                value, end = {"True": True, "False": False, "None": None}.get(word, word), len(word)
        found[match["name"]] = value
        text = text[end:].lstrip()
    return found


def _literal(text: str) -> tuple[Any, int] | None:
    """The string, list or dict of Python at the start of ``text``, and where it ends; None when there is none."""
    for match in _END.finditer(text):
        try:
            value = ast.literal_eval(text[: match.end()])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        return (list(value) if isinstance(value, tuple) else value), match.end()
    return None


def panel(waiting: Sequence[PendingCall]) -> dict[str, str]:
    """What waits, with every argument in full, as HTML and as text."""
    title = "Waits for your word:" if len(waiting) == 1 else f"{len(waiting)} calls wait for your word:"
    shown = [clean(mask(str(call))) for call in waiting]
    first = waiting[0]
    which = "" if len(waiting) == 1 else f" {first.id}"
    change = next(iter(first.arguments), "")
    lines = ["%mmsp approve", '%mmsp deny "why not"', *([f"%mmsp approve{which} {change}=VALUE"] if change else [])]
    blocks = [
        f'<pre style="{_PRE}">{escape(text, tex=False)}</pre>'
        f'<div style="font-size:.85em;opacity:.65">{escape(clean(call.reason))}'
        f"{escape(f' · id {clean(call.id)}') if len(waiting) > 1 else ''}</div>"
        for call, text in zip(waiting, shown, strict=True)
    ]
    html = f'<div style="{_BOX}"><b>{title}</b>{"".join(blocks)}{note_html(" · ".join(lines))}</div>'
    return {"text/html": wrap(html), "text/plain": "\n".join([title, *shown, " · ".join(lines)])}
