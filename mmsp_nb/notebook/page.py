"""What ``%mmsp?`` and ``%%mmsp?`` show: the form, what holds now, and an example that can be pasted."""

from __future__ import annotations

from typing import Any

from .options import OPTIONS, SUBCOMMANDS, spelled
from .sanitize import single_line
from .secrets import mask

__all__ = ["page"]


_NOW = {"--model": "model", "--client-type": "client_type", "--system": "system", "--max-turns": "max_turns"}
"""Options, and the settings that hold without them."""

_CELL = "%%mmsp [options]          ask a model; the prompt stands below, with {{expressions}}"
_LINE = "%mmsp SUBCOMMAND          or ask in one line: %mmsp ask [options] PROMPT"


def page(magics: Any, *, cell: bool = False) -> str:
    """The help page of the line or the cell magic, with the settings as they are now."""
    example = ["%%mmsp -m demo --out answer", "What is {{6 * 7}}? Answer briefly."]
    if not cell:
        example = ["answer = %mmsp ask -m demo What is {{6 * 7}}? Answer briefly."]
    lines = [*((_CELL, _LINE) if cell else (_LINE, _CELL)), "", "An example:", "", *example, "", "What holds now:"]
    for name, trait in magics.traits(config=True).items():
        value = getattr(magics, name)
        source = magics.sources.get(name)
        lines.append(f"  {name:<13} {value!r:<12} {trait.help}" + (f" (from {source})" if source else ""))
    chat = magics.chats.find()
    if chat is not None:
        lines.append(f"  {'chat':<13} {magics.chats.current!r:<12} with {chat.model}, {len(chat.turns)} turns")
    options = [
        "",
        "Options:",
        *(f"  {spelled(name):<14} {option.about}{_now(magics, name)}" for name, option in OPTIONS.items()),
    ]
    commands = ["", "Subcommands:", *(f"  {name:<10} {about}" for name, about in SUBCOMMANDS.items())]
    return mask("\n".join([*lines, *(options + commands if cell else commands + options)]))


def _now(magics: Any, name: str) -> str:
    """What holds without the option, if that is set."""
    setting = _NOW.get(name)
    value = None if setting is None else getattr(magics, setting)
    chat = magics.chats.find()
    if setting == "model" and chat is not None:
        value = chat.model
    elif name == "--budget" and chat is not None:
        value = chat.max_cost
    return "" if value is None else f" (now {single_line(str(value), 40)})"
