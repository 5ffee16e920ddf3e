"""Tab completion after ``%mmsp`` and ``%%mmsp``, and of variables inside ``{{``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion, context_matcher

from .options import FORMATS, OPTIONS, SUBCOMMANDS, THINKING
from .recordings import candidates as candidates_of_recordings

if TYPE_CHECKING:
    from .magics import MMSPMagics

__all__ = ["candidates", "matcher"]

MAX_FILES = 500

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
    if before == "--client-type":
        from mmsp_nb.providers.vendors import VENDORS

        return list(VENDORS)
    if before == "--client":
        return _clients(namespace)
    if before == "--compare":
        return [*_clients(namespace), *_models()]
    if before == "--format":
        return list(FORMATS)
    if before == "--image":
        return [*(name for name in namespace if not name.startswith("_")), *_files(typing)]
    if before == "--file" or (not match["cell"] and words in (["save"], ["load"], ["export"])):
        return _files(typing)
    if not match["cell"] and words in (["branch"], ["keep"]):
        return _of_chat(words[0], magics)
    if before == "--chat" or (not match["cell"] and words in (["use"], ["stop"])):
        return magics.chats.names()
    if before in ("record", "replay") and not match["cell"]:
        return candidates_of_recordings()
    if before == "tools":
        return ["add", "remove"]
    return list(SUBCOMMANDS) if not match["cell"] and not words else []


def _models() -> list[str]:
    from mmsp_nb.providers import catalog

    return ["demo", "local", *dict.fromkeys(row.model for row in catalog.models())]


def _clients(namespace: dict[str, Any]) -> list[str]:
    """Variables that hold a client."""
    return [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and not isinstance(value, type) and hasattr(value, "streaming_response_stateful")
    ]


def _files(typed: str) -> list[str]:
    """Files and folders that what was typed may become."""
    folder, slash, _ = typed.rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").expanduser().iterdir())[:MAX_FILES]
    except (OSError, ValueError, RuntimeError):
        return []
    return [f"{folder}{slash}{path.name}{'/' if path.is_dir() else ''}" for path in found if path.name[0] != "."]


def _of_chat(command: str, magics: MMSPMagics) -> list[str]:
    """The branches of the chat, or the answers that it can keep."""
    chat = magics.chats.find()
    if chat is None:
        return []
    if command == "branch":
        return list(chat.branches)
    compared = magics.chats.compared.get(chat)
    return [] if compared is None else compared.labels


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
