"""What the subcommands of ``%mmsp`` do and print. Asking is in `asking`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol.suggestions import did_you_mean

from . import recordings
from .chats import Chats
from .listing import models_page
from .options import OPTIONS, SHORT, SUBCOMMANDS, OptionError, spelled
from .sanitize import single_line
from .secrets import mask
from .turn_commands import TurnCommands, named

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation
    from mmsp_nb.tools import ToolRegistry

__all__ = ["Commands", "choice"]

_TAKES = {
    **dict.fromkeys(
        ("apply", "branch", "cells", "export", "fork", "help", "keep", "mcp", "new", "save", "stop", "traces", "use"), 1
    ),
    "load": 2,
    "model": 3,
    "models": 9,
    "record": 2,
    "replay": 2,
    "tools": 99,
}
"""Words that a subcommand can use; the others can use none."""


def choice(model: str | None, source: str | None = None) -> tuple[str, str]:
    """The model that a new chat would use, and why: ``source`` is where a configured one comes from."""
    if model:
        return model, f"from {source}" if source else "MMSPMagics.model is set"
    from mmsp_nb.choosing import choose

    chosen = choose()
    return chosen.model, chosen.why


class Commands(TurnCommands):
    """The subcommands that ask nothing: ``run(name, words)`` returns text, or an object to display.

    Args:
        chats: The conversations.
        model: The configured model, for chats that have not begun.
        source: Where it comes from, if it was not set in the session.
    """

    def __init__(
        self, chats: Chats, model: Callable[[], str | None], source: Callable[[], str | None] = lambda: None
    ) -> None:
        self._chats = chats
        self._configured = model
        self._source = source
        self.live: Callable[[], bool] = lambda: False
        """Whether somebody watches, in a front end that shows widgets."""
        self.apply: Callable[[str | None], str] = lambda name: ""
        """Puts the new version of a cell, or a block of code, into the next cell."""

    def run(self, name: str, words: list[str]) -> Any:
        """Run one subcommand. OptionError for words it cannot use."""
        takes = _TAKES.get(name, 0)
        if len(words) > takes:
            raise OptionError(f"%mmsp {name} cannot use {words[takes]!r}; {usage(name)}")
        command: Callable[..., Any] = getattr(self, f"do_{name}")
        result = command(*words)
        return mask(result) if isinstance(result, str) else result

    def do_status(self) -> str:
        chat = self._chats.find()
        if chat is None:
            model, why = choice(self._configured(), self._source())
            lines = [f"chat   {self._chats.current}, not begun", f"model  {model} ({why})"]
        else:
            lines = [f"chat   {self._chats.current}, {_count(len(chat.turns), 'turn')}"]
            lines.append(f"model  {chat.model}" + (f" ({chat.why})" if chat.why else ""))
            if stale := sum(turn.stale for turn in chat.turns):
                lines.append(f"stale  {_count(stale, 'turn')}: asked on a history that has changed since")
            if len(chat.branches) > 1:
                lines.append(f"branch {chat.branch}, one of {len(chat.branches)}; %mmsp branch")
            if chat.system:
                lines.append(f"system {single_line(chat.system, 70)}")
            if spent := _spent(chat):
                lines.append(f"spent  {spent}")
            lines += _budgets(chat)
        if behind := self._chats.behind.count():
            lines.append(f"behind {_count(behind, 'question')} in the background; %mmsp stop")
        names = self._tools(chat).names()
        lines.append(f"tools  {', '.join(names)}" if names else "tools  none; decorate a function with @mmsp_nb.tool")
        return "\n".join([*lines, "help   %mmsp help"])

    def do_apply(self, name: str | None = None) -> str:
        return self.apply(name)

    def do_model(self, *words: str) -> str:
        model, kind = _model_words(words)
        if model is None:
            chat = self._chats.find()
            name, why = choice(self._configured(), self._source()) if chat is None else (chat.model, chat.why)
            return (
                f"{name}" + (f" ({why})" if why else "") + "\nchange it with %mmsp model ID, or for a cell with -m ID"
            )
        before = self._chats.find()
        known = before is not None and bool(before.turns)
        chat = self._chats.get(model=model, client=kind)
        return f"{chat.model} answers from now on" + (", and knows what was said before" if known else "")

    def do_models(self, *words: str) -> str:
        return models_page(" ".join(words))

    def do_tools(self, *words: str) -> str:
        from mmsp_nb.tools import ToolDefinitionError

        registry = self._tools(self._chats.find())
        if words:
            verb, names = words[0], [name for word in words[1:] for name in word.split(",") if name]
            if verb not in ("add", "remove"):
                raise OptionError(f"%mmsp tools {verb}: write add or remove{did_you_mean(verb, ['add', 'remove'])}")
            if not names:
                raise OptionError(f"%mmsp tools {verb} needs the name of a function")
            if verb == "add":
                try:
                    from .builtins import find

                    registry.add(*(name if name in registry else find(name) or name for name in names))
                except ToolDefinitionError as error:
                    raise OptionError(str(error)) from None
            else:
                for name in names:
                    if name not in registry:
                        raise OptionError(f"there is no tool {name!r}{did_you_mean(name, registry.names())}")
                for name in names:
                    registry.remove(name)
        tools = list(registry)
        lines = [f"{tool.usage}\n    {single_line(tool.description, 90)}" for tool in tools]
        return "\n".join(lines) or "no tools: decorate a function with @mmsp_nb.tool, or %mmsp tools add NAME"

    def do_mcp(self, text: str = "") -> str:
        from . import mcp

        return mcp.run(text, self._tools(self._chats.find()))

    def do_history(self) -> Any:
        chat = self._chats.find()
        if chat is None or not chat.turns:
            return "nothing has been said yet"
        from .inspector import History

        return History(chat, live=self.live())

    def do_cells(self, file: str | None = None) -> Any:
        from .documents import cells

        return self._tried(cells, self._begun("put into cells"), file)

    def do_browse(self) -> Any:
        return self._chats.get().browse()

    def do_traces(self, name: str | None = None) -> Any:
        from mmsp_nb.traces import find, traces

        if name is None:
            return traces()
        from .inspector import inspect

        try:
            return inspect(find(name))
        except OSError as error:
            raise OptionError(str(error)) from None

    def do_reset(self) -> str:
        chat = self._begun("reset")
        if not (count := len(chat.turns)):
            return "nothing has been said yet"
        self._tried(chat.reset)
        return f"forgot {_count(count, 'turn')}; %mmsp undo brings them back"

    def do_undo(self) -> str:
        chat = self._begun("undo")
        empty = not chat.turns
        if not (chat.running or chat._can_undo()) and (before := self._chats.bring_back()) is not None:
            return f"brought back {before.name} as it was before it was begun anew, {_count(len(before.turns), 'turn')}"
        concerned = self._tried(chat.undo)
        if empty:
            return f"brought back {_count(len(concerned), 'turn')}"
        return f"took back: {named(concerned)}" if concerned else "there was nothing to take back"

    def do_new(self, name: str | None = None) -> str:
        if name is not None and self._chats.find(name) is not None:
            raise OptionError(
                f"there is a chat {name!r} already: %mmsp use {name}, or --new for a cell that begins it anew"
            )
        chat = self._chats.renew(name or self._free_name())
        self._chats.current = str(chat.name)
        return f"new chat {chat.name} with {chat.model}"

    def do_chats(self) -> str:
        names = self._chats.names()
        if not names:
            return "no chat has begun"
        lines = []
        for name in names:
            chat = self._chats.find(name)
            if chat is not None:
                mark = "*" if name == self._chats.current else " "
                last = single_line(chat.turns[-1].prompt, 50) if chat.turns else ""
                lines.append(
                    f"{mark} {name}  {chat.model}, {_count(len(chat.turns), 'turn')}" + (f": {last}" if last else "")
                )
        return "\n".join(lines)

    def do_use(self, name: str | None = None) -> str:
        if name is None:
            raise OptionError("%mmsp use needs the name of a chat; %mmsp chats lists them")
        chat = self._chats.use(name)
        return f"chat {name} with {chat.model}, {_count(len(chat.turns), 'turn')}"

    def do_record(self, *words: str) -> str:
        return recordings.record(self._chats, *words)

    def do_replay(self, *words: str) -> str:
        return recordings.replay(self._chats, *words)

    def do_help(self, name: str | None = None) -> str:
        if name is not None:
            return _help_about(name)
        lines = ["%%mmsp [options]", "the prompt, with {{expressions}}", "", "options"]
        lines += [f"  {spelled(name):<14} {option.about}" for name, option in OPTIONS.items()]
        lines += ["", "%mmsp SUBCOMMAND"]
        lines += [f"  {name:<10} {about}" for name, about in SUBCOMMANDS.items()]
        return "\n".join([*lines, "", "%mmsp? shows what holds now. The last answer is in _mmsp."])

    def _begun(self, command: str) -> Conversation:
        chat = self._chats.find()
        if chat is None:
            raise OptionError(f"nothing to {command}: this chat has not begun")
        return chat

    def _free_name(self) -> str:
        names = self._chats.names()
        return next(name for number in range(2, len(names) + 3) if (name := f"chat{number}") not in names)

    def _tools(self, chat: Conversation | None) -> ToolRegistry:
        from mmsp_nb.tools import registry

        return registry if chat is None else chat.tools


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _model_words(words: tuple[str, ...]) -> tuple[str | None, str | None]:
    """``ID [CLIENT_TYPE]``, the type also as ``--client-type TYPE``."""
    plain = [part for word in words for part in (word.split("=", 1) if word.startswith("--client-type=") else [word])]
    kind: str | None = None
    if "--client-type" in plain:
        place = plain.index("--client-type")
        kind = plain[place + 1] if place + 1 < len(plain) else ""
        del plain[place : place + 2]
    elif len(plain) == 2:
        kind = plain.pop()
    if len(plain) > 1 or any(word.startswith("-") for word in plain):
        raise OptionError(f"%mmsp model cannot use {plain[-1]!r}; {usage('model')}")
    if kind is not None:
        from mmsp_nb.providers.vendors import ALIASES, VENDORS

        if kind.lower() not in (known := {**VENDORS, **ALIASES}):
            raise OptionError(f"%mmsp model cannot use {kind!r}: it is no client type{did_you_mean(kind, known)}")
        if not plain:
            raise OptionError("%mmsp model needs the id of a model beside the client type")
    return (plain[0] if plain else None), kind


def _help_about(name: str) -> str:
    """The line about an option or a subcommand."""
    option = OPTIONS.get(SHORT.get(name, name)) or OPTIONS.get(f"--{name}")
    lines = [usage(name)] if name in SUBCOMMANDS else []
    if option is not None:
        written = SHORT.get(name, name if name.startswith("-") else f"--{name}")
        lines.append(f"%%mmsp {written}{': ' if option.read is None else ' '}{option.about}")
    if (trait := _settings().get(setting := name.removeprefix("MMSPMagics."))) is not None:
        lines.append(f"%config MMSPMagics.{setting} = VALUE: {trait.help}")
    if not lines:
        near = did_you_mean(name, [*SUBCOMMANDS, *OPTIONS, *_settings()])
        raise OptionError(f"there is no option, subcommand or setting {name}{near}")
    return "\n".join(lines)


def usage(name: str) -> str:
    """``%mmsp NAME ARGUMENTS: what it does``."""
    about = SUBCOMMANDS[name]
    first = about.split()[0].rstrip(":")
    arguments = ":" in about and (about[0] == "[" or first.isupper() or name == "rerun")
    return f"%mmsp {name}{' ' if arguments else ': '}{about}"


def _settings() -> Mapping[str, Any]:
    from .magics import MMSPMagics

    traits: Mapping[str, Any] = MMSPMagics.class_traits(config=True)
    return traits


def _budgets(chat: Conversation) -> list[str]:
    from mmsp_nb.money import dollars, spending

    limits = [] if chat.budget is None else [f"{dollars(chat.spent)} of {dollars(chat.budget)} for this chat"]
    if spending.budget is not None:
        limits.append(f"{dollars(spending.spent)} of {dollars(spending.budget)} for this kernel")
    return [f"budget {', '.join(limits)}"] if limits else []


def _spent(chat: Conversation) -> str:
    from mmsp_nb.money import dollars
    from mmsp_nb.protocol.usage import totals

    if chat.usage is None:
        return ""
    counted = totals(chat.usage)
    cost = f", {dollars(chat.cost)}" if chat.cost is not None else ""
    return f"{counted.input or 0:,} tokens in, {counted.output or 0:,} out{cost}"
