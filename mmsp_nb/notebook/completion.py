"""Tab completion after ``%mmsp`` and ``%%mmsp``, and of variables inside ``{{``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion, context_matcher

from .options import OPTIONS, SUBCOMMANDS, THINKING
from .recordings import candidates as candidates_of_recordings

if TYPE_CHECKING:
    from .magics import MMSPMagics

__all__ = ["candidates", "matcher"]

_LINE = re.compile(r"^\s*(?:\w+\s*=\s*)?%(?P<cell>%?)mmsp\s+(?P<rest>.*)$")
_EXPRESSION = re.compile(r"(?<!\\)\{\{\s*(?P<name>[A-Za-z_]\w*)?$")


def candidates(line: str, in_cell: bool, namespace: dict[str, Any], magics: MMSPMagics) -> list[str]:
    """What can stand at the end of ``line``, which begins with the magic or is part of its cell."""
    expression = _EXPRESSION.search(line)
    if expression and (in_cell or _LINE.match(line)):
        return sorted(name for name in namespace if not name.startswith("_"))
    match = _LINE.match(line)
    if not match:
        return []
    words = match["rest"].split()
    typing = "" if line.endswith((" ", "\t")) else words.pop() if words else ""
    before = words[-1] if words else ""
    if typing.startswith("-"):
        return list(OPTIONS)
    if before in ("-m", "--model") or (not match["cell"] and words == ["model"]):
        return _models()
    if before in ("--tools", "add", "remove"):
        return _tools(namespace if before == "add" else {})
    if before == "--thinking":
        return list(THINKING)
    if before == "--client":
        from mmsp_nb.providers.vendors import VENDORS

        return list(VENDORS)
    if before in ("--chat", "use"):
        return magics.chats.names()
    if before in ("record", "replay") and not match["cell"]:
        return candidates_of_recordings()
    if before == "tools":
        return ["add", "remove"]
    return list(SUBCOMMANDS) if not match["cell"] and not words else []


def _models() -> list[str]:
    from mmsp_nb.providers import catalog

    return ["demo", "local", *dict.fromkeys(row.model for row in catalog.models())]


def _tools(namespace: dict[str, Any]) -> list[str]:
    from mmsp_nb.tools import registry

    functions = [name for name, value in namespace.items() if callable(value) and not name.startswith("_")]
    return [*registry.names(), *functions]


def matcher(shell: Any, magics: MMSPMagics) -> Any:
    """A matcher for ``shell.Completer.custom_matchers``."""

    @context_matcher()
    def mmsp_matcher(context: Any) -> Any:
        text = context.full_text
        lines = text.splitlines() or [""]
        line = lines[context.cursor_line][: context.cursor_position] if context.cursor_line < len(lines) else ""
        in_cell = context.cursor_line > 0 and lines[0].startswith("%%mmsp")
        token = re.search(r"[^\s{,=]*$", line)
        start = token.group() if token else ""
        found = [each for each in candidates(line, in_cell, shell.user_ns, magics) if each.startswith(start)]
        return {
            "completions": [SimpleCompletion(text=each, type="mmsp") for each in found],
            "matched_fragment": start,
            "suppress": bool(found),
        }

    return mmsp_matcher
