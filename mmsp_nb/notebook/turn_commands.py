"""Subcommands about turns, branches and files of a chat."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmsp_nb.protocol.errors import MMSPError
from mmsp_nb.protocol.suggestions import did_you_mean

from .chats import Chats
from .options import OptionError, quoted
from .resolving import near_file
from .sanitize import single_line

if TYPE_CHECKING:
    from mmsp_nb.conversation import Conversation
    from mmsp_nb.turns import Turn

__all__ = ["TurnCommands", "named"]

MAX_TURNS = 40
"""Turns that ``usage`` lists at most."""


class TurnCommands:
    """``redo``, ``fork``, ``branch``, ``usage``, ``save``, ``load``, ``export``, ``stop``, ``keep``."""

    _chats: Chats
    _begun: Callable[[str], Conversation]

    def do_redo(self) -> str:
        concerned = self._tried(self._begun("redo").redo)
        return f"did again: {named(concerned)}" if concerned else "done again"

    def do_fork(self, name: str | None = None) -> str:
        chat = self._begun("fork")
        if name is None:
            names = (f"{self._chats.current}-{number}" for number in itertools.count(2))
            name = next(each for each in names if self._chats.find(each) is None)
        elif self._chats.find(name) is not None:
            raise OptionError(f"there is a chat {name!r} already; %mmsp chats lists them")
        before = self._chats.current
        self._chats.put(name, self._tried(chat.fork, name=name))
        return f"chat {name} goes on from here; %mmsp use {before} goes back"

    def do_branch(self, name: str | None = None) -> str:
        chat = self._begun("branch")
        if name is None:
            lines = []
            for each, turns in chat.branches.items():
                mark = "*" if each == chat.branch else " "
                last = f": {single_line(turns[-1].prompt, 50)}" if turns else ""
                lines.append(f"{mark} {each}  {_turns(turns)}{last}")
            return "\n".join([*lines, "go on with one: %mmsp branch NAME"])
        self._tried(chat.checkout, name)
        return f"branch {name}, {_turns(chat.turns)}"

    def do_usage(self) -> str:
        from mmsp_nb.protocol.usage import totals

        chat = self._chats.find()
        if chat is None or not chat.turns:
            return "nothing has been asked yet"
        rows = [("turn", "in", "out", "price", "time", "")]
        left_out = max(len(chat.turns) - MAX_TURNS, 0)
        for number, turn in list(enumerate(chat.turns, 1))[left_out:]:
            counted = totals(turn.usage) if turn.usage else None
            rows.append(
                (
                    str(number),
                    _count(counted and counted.input),
                    _count(counted and counted.output),
                    _price(turn.cost),
                    "" if turn.duration is None else f"{turn.duration:.1f} s",
                    f"{turn.model}{_state(turn)}  {single_line(turn.prompt, 40)}",
                )
            )
        total = totals(chat.usage) if chat.usage else None
        rows.append(("all", _count(total and total.input), _count(total and total.output), _price(chat.cost), "", ""))
        widths = [max(len(row[n]) for row in rows) for n in range(5)]
        lines = [
            "  ".join([*(cell.rjust(w) for cell, w in zip(row, widths, strict=False)), row[5]]).rstrip() for row in rows
        ]
        if left_out:
            lines.insert(1, f"({left_out} earlier turns)")
        lines.append(f"next request: {chat.estimate()}")
        return "\n".join(lines)

    def do_save(self, file: str | None = None) -> str:
        chat = self._begun("save")
        path = self._tried(chat.save, _path("save", file, "talk.jsonl"))
        return f"saved {path}: {_turns(chat.turns)}; %mmsp load {quoted(str(path))} goes on with it"

    def do_load(self, file: str | None = None, name: str | None = None) -> str:
        from mmsp_nb import files
        from mmsp_nb.protocol.errors import MMSPError

        path = _path("load", file, "talk.jsonl")
        try:
            chat = files.load(path)
        except FileNotFoundError:
            raise OptionError(f"there is no file {path}{near_file(Path(path).expanduser())}") from None
        except OSError as error:
            raise OptionError(f"{path}: {error.strerror or error}") from None
        except (ValueError, MMSPError) as error:  # it names the file and the line
            raise OptionError(str(error)) from None
        name = name or Path(path).stem
        found = self._chats.find(name)
        if found is not None and found.turns:
            raise OptionError(
                f"there is a chat {name!r} already: %mmsp load {quoted(str(path))} NAME gives it another name"
            )
        chat.name = name  # else the inspector shows the name it was saved under
        self._chats.put(name, chat)
        return f"chat {name} with {chat.model}, {_turns(chat.turns)}"

    def do_export(self, file: str | None = None) -> str:
        path = _path("export", file, "talk.md")
        self._tried(self._begun("export").export, path)
        return f"wrote {path}"

    def do_stop(self, name: str | None = None) -> str:
        chat = None if name is None else self._chats.find(name)
        if name is not None and chat is None:
            raise OptionError(f"there is no chat {name!r}{did_you_mean(name, self._chats.names())}")
        count = self._chats.behind.stop(chat)
        if not count:
            return "nothing is being answered in the background"
        return f"stopping {count} answer{'' if count == 1 else 's'}; what had come so far is kept"

    def do_keep(self, name: str | None = None) -> str:
        chat = self._begun("keep")
        compared = self._chats.compared.get(chat)
        if compared is None:
            raise OptionError("there is nothing to keep: this chat has compared nothing yet; see --compare")
        label = self._tried(compared.keep, name)
        return f"the answer of {label} is the answer of this chat now; %mmsp undo takes it back"

    def _tried(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            return call(*given, **named)
        except (MMSPError, ValueError) as error:
            raise OptionError(str(error)) from None
        except OSError as error:
            raise OptionError(f"{error.filename or 'the file'}: {error.strerror or error}") from None


def named(turns: Sequence[Turn]) -> str:
    """What an undo or redo was about: the question, and how many more."""
    first = single_line(turns[0].prompt, 60) or "what went on after an answer"
    return first if len(turns) == 1 else f"{first} (and {_turns(turns[1:])} more)"


def _path(command: str, file: str | None, example: str) -> str:
    if not file:
        raise OptionError(f"%mmsp {command} needs the name of a file: %mmsp {command} {example}")
    if len(file) > 1 and file[0] == file[-1] and file[0] in "\"'":
        return file[1:-1]
    return file


def _turns(turns: Sequence[Turn]) -> str:
    return f"{len(turns)} turn{'' if len(turns) == 1 else 's'}"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _price(cost: Any) -> str:
    from mmsp_nb.money import dollars

    return "-" if cost is None else dollars(cost)


def _state(turn: Turn) -> str:
    notes: list[str] = [turn.state] if turn.state != "done" else []
    notes += [name for name in ("hidden", "stale") if getattr(turn, name)]
    return f" ({', '.join(notes)})" if notes else ""
