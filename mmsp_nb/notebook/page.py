"""What ``%mmsp?`` and ``%%mmsp?`` show: the form, what holds now, and an example that can be pasted."""

from __future__ import annotations

from typing import Any

from .options import OPTIONS, SUBCOMMANDS
from .secrets import mask

__all__ = ["page"]


def page(magics: Any) -> str:
    """The help page, with the settings as they are now."""
    lines = [
        "%%mmsp [options]          ask a model; the prompt stands below, with {{expressions}}",
        "%mmsp SUBCOMMAND          or ask in one line: %mmsp ask PROMPT",
        "",
        "An example:",
        "",
        "%%mmsp -m demo --out answer",
        "What is {{6 * 7}}? Answer briefly.",
        "",
        "What holds now:",
    ]
    for name, trait in magics.traits(config=True).items():
        value = getattr(magics, name)
        source = magics.sources.get(name)
        lines.append(f"  {name:<12} {value!r:<12} {trait.help}" + (f" (from {source})" if source else ""))
    lines += ["", "Options:", *(f"  {name:<14} {option.about}" for name, option in OPTIONS.items())]
    lines += ["", "Subcommands:", *(f"  {name:<10} {about}" for name, about in SUBCOMMANDS.items())]
    return mask("\n".join(lines))
