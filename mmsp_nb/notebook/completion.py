"""Tab completion after ``%mmsp`` and ``%%mmsp``, and of variables inside ``{{``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion, context_matcher

from .options import FORMATS, HELP, OPTIONS, SHORT, SUBCOMMANDS, THINKING, quoted
from .recordings import candidates as candidates_of_recordings

if TYPE_CHECKING:
    from .magics import MMSPMagics

__all__ = ["candidates", "matcher"]

MAX_FILES = 500

MAX_CELLS = 20
"""Executions that are offered, the last first."""

OPEN = ("system", "max_tokens", "temperature", "top_p", "seed", "stop", "max_turns", "max_calls", "budget")
"""Options whose values nobody can guess."""

_LINE = re.compile(r"^\s*(?:[\w.,\[\] ]+=\s*)?%(?P<cell>%?)mmsp\s+(?P<rest>.*)$")
_OPEN = re.compile(r"(?<!\\)\{\{(?P<inside>(?:(?!\}\}).)*)$")
_CELL = re.compile(r"\bcell\(\s*[\"'](?P<typed>[^\"']*)$")
_ATTRIBUTE = re.compile(r"[\w\]\)]\.\w*$")


def candidates(line: str, in_cell: bool, namespace: dict[str, Any], magics: MMSPMagics) -> list[str]:
    """What can stand at the end of ``line``, which begins with the magic or is part of its cell; best first."""
    match = _LINE.match(line)
    if (expression := _OPEN.search(line)) and (in_cell or match):
        return _in_expression(expression["inside"], namespace, magics)
    if not match:
        return []
    words = match["rest"].split()
    typing = "" if line.endswith((" ", "\t")) else words.pop() if words else ""
    name, equals, rest = typing.partition("=")
    if equals and name in _VALUES:
        return _VALUES[name](rest, namespace, magics)
    before = SHORT.get(words[-1], words[-1]) if words else ""
    if before in _VALUES:
        return _VALUES[before](typing, namespace, magics)
    if match["cell"]:
        return list(OPTIONS) if typing.startswith("-") or not typing else []
    if not words:
        return [*SUBCOMMANDS, *(HELP if typing.startswith("-") else ())]
    if words[0] in ("ask", "retry", "continue"):
        return list(OPTIONS) if typing.startswith("-") else []
    return _WORDS[words[0]](words[1:], typing, namespace, magics) if words[0] in _WORDS else []


def _in_expression(inside: str, namespace: dict[str, Any], magics: MMSPMagics) -> list[str]:
    """Names inside ``{{``; in ``cell("`` ids and tags."""
    if _CELL.search(inside):
        return [] if magics.cells is None else magics.cells.sources.known()
    if _ATTRIBUTE.search(inside):
        return []  # of an object: IPython knows it better
    return [*_variables(namespace), *(name for name in ("Err", "cell") if name not in namespace)]


def _models(magics: MMSPMagics) -> list[str]:
    """Those that are configured or in use first, then those that need no key or have one."""
    from mmsp_nb.providers import catalog

    from .listing import usable

    chat = magics.chats.find()
    first = [magics.model, None if chat is None else chat.model]
    rows = sorted(catalog.models(), key=lambda row: not usable(row))
    return list(dict.fromkeys([*filter(None, first), "demo", "local", *(row.model for row in rows)]))


def _variables(namespace: dict[str, Any]) -> list[str]:
    return sorted(name for name in namespace if not name.startswith("_"))


def _types(namespace: dict[str, Any]) -> list[str]:
    """Classes that a person has made, and the plainest ones."""
    own = [name for name in _variables(namespace) if isinstance(namespace[name], type)]
    return [*own, "str", "int", "float", "bool", "list[", "dict[", "Literal["]


def _client_types() -> list[str]:
    from mmsp_nb.providers.vendors import VENDORS

    return list(VENDORS)


def _conversations(namespace: dict[str, Any], magics: MMSPMagics) -> list[str]:
    names = magics.chats.names()
    return [*names, *(name for name in magics.chats.variables() if name not in names)]


def _cells(magics: MMSPMagics) -> list[str]:
    """The last executions, and ids and tags."""
    if magics.cells is None:
        return []
    sources = magics.cells.sources
    last = len(sources.history()) - 1
    return [*(f"In[{n}]" for n in range(last, max(last - MAX_CELLS, 0), -1)), *sources.known()]


def _traces() -> list[str]:
    from mmsp_nb.traces import trace_files
    from mmsp_nb.tracing import trace_directory

    root = trace_directory()
    try:
        return [path.relative_to(root).with_suffix("").as_posix() for path in trace_files(root)]
    except OSError:
        return []


def _waiting(magics: MMSPMagics) -> list[str]:
    chat = magics.chats.find()
    return [] if chat is None else list(dict.fromkeys(call.name for call in chat.awaiting))


def _model_words(given: list[str], magics: MMSPMagics) -> list[str]:
    return _models(magics) if not given else _client_types() if len(given) == 1 or given[-1] == "--client-type" else []


def _tool_words(given: list[str], namespace: dict[str, Any]) -> list[str]:
    if not given:
        return ["add", "remove"]
    return _tools(namespace if given[0] == "add" else {})


def _record_words(given: list[str]) -> list[str]:
    return [*candidates_of_recordings(), "off"] if not given else ["all", "once", "new"]


_VALUES: dict[str, Callable[[str, dict[str, Any], MMSPMagics], list[str]]] = {
    "--model": lambda typed, names, magics: _models(magics),
    "--client": lambda typed, names, magics: _clients(names),
    "--client-type": lambda typed, names, magics: _client_types(),
    "--chat": lambda typed, names, magics: _conversations(names, magics),
    "--tools": lambda typed, names, magics: _tools({}),
    "--ask": lambda typed, names, magics: [*_tools({}), "*"],
    "--type": lambda typed, names, magics: _types(names),
    "--thinking": lambda typed, names, magics: list(THINKING),
    "--format": lambda typed, names, magics: list(FORMATS),
    "--compare": lambda typed, names, magics: [*_clients(names), *_models(magics)],
    "--image": lambda typed, names, magics: [*_variables(names), *_files(typed)],
    "--file": lambda typed, names, magics: _files(typed),
    "--trace": lambda typed, names, magics: _traces(),
    "--edit": lambda typed, names, magics: _cells(magics),
    "--out": lambda typed, names, magics: _variables(names),
    **dict.fromkeys(
        [name for name, option in OPTIONS.items() if option.read is not None and option.attribute in OPEN],
        lambda typed, names, magics: [],
    ),
}
"""What can be the value of an option: of each that takes one."""

_WORDS: dict[str, Callable[[list[str], str, dict[str, Any], MMSPMagics], list[str]]] = {
    "model": lambda given, typed, names, magics: _model_words(given, magics),
    "models": lambda given, typed, names, magics: _models(magics),
    "tools": lambda given, typed, names, magics: _tool_words(given, names),
    "mcp": lambda given, typed, names, magics: ["add", "remove"] if not given else [],
    "approve": lambda given, typed, names, magics: _waiting(magics),
    "rerun": lambda given, typed, names, magics: ["--dry-run"] if given else ["stale"],
    "apply": lambda given, typed, names, magics: [] if given else magics.waiting.names(),
    "branch": lambda given, typed, names, magics: [] if given else _of_chat("branch", magics),
    "keep": lambda given, typed, names, magics: [] if given else _of_chat("keep", magics),
    "use": lambda given, typed, names, magics: [] if given else _conversations(names, magics),
    "stop": lambda given, typed, names, magics: [] if given else magics.chats.names(),
    **dict.fromkeys(("save", "load", "export"), lambda given, typed, names, magics: [] if given else _files(typed)),
    "record": lambda given, typed, names, magics: _record_words(given),
    "replay": lambda given, typed, names, magics: [] if given else [*candidates_of_recordings(), "off"],
    "traces": lambda given, typed, names, magics: [] if given else _traces(),
    "help": lambda given, typed, names, magics: (
        [] if given else [*SUBCOMMANDS, *OPTIONS, *magics.trait_names(config=True)]
    ),
}
"""What can follow a subcommand that takes words."""


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
        token = re.search(r"[^\s{,=(\"']*$", line)
        start = token.group() if token else ""
        found = [each for each in candidates(line, in_cell, shell.user_ns, magics) if each.startswith(start)]
        if not line.removesuffix(start).endswith(("'", '"')):
            found = [quoted(each) for each in found]
        return {
            "completions": [SimpleCompletion(text=each, type="mmsp") for each in found],
            "matched_fragment": start,
            "ordered": True,
            "suppress": bool(found),
        }

    return mmsp_matcher
