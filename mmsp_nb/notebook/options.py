"""What stands after ``%%mmsp`` and ``%mmsp``: text in, a value out. Nothing is run here, nothing of IPython is known.

Options may be quoted; the text of a prompt may not, so that an apostrophe is an apostrophe. A ``#`` after
white space ends the options as in Python.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from mmsp_nb.protocol.suggestions import did_you_mean

__all__ = [
    "FORMATS",
    "HELP",
    "OPTIONS",
    "SHORT",
    "SUBCOMMANDS",
    "OptionError",
    "Options",
    "parse_cell",
    "parse_line",
    "quoted",
    "spelled",
]

FORMATS = ("markdown", "text", "code", "json", "math", "raw", "html")

THINKING = ("none", "low", "medium", "high", "xhigh", "max")

SUBCOMMANDS: dict[str, str] = {
    "status": "what is in use now (also without a subcommand)",
    "ask": "[options] PROMPT: ask in one line",
    "continue": "[options]: go on where the last answer stopped, or ask again what failed",
    "approve": "[NAMES] [argument=value ...]: let calls run that wait for your word, changed if you like",
    "deny": "[REASON]: leave them undone, and tell the model why",
    "model": "[ID [CLIENT_TYPE]]: show or change the model of this chat",
    "models": "[WORD]: the models that can be used, or those with WORD in their name",
    "tools": "[add | remove NAMES]: show or change the tools that models may call",
    "mcp": "[add NAME [--ask | --no-ask] COMMAND or URL | remove NAME]: tools of MCP servers",
    "retry": "[options]: ask the last question again, in place of its answer",
    "rerun": "stale [--dry-run]: ask again, in order, what was answered on a history that has changed since",
    "apply": "[CELL | N | all]: put what --edit or --format code has brought into the next cell: a cell, block N, all",
    "history": "the last turns of this chat",
    "usage": "tokens and list price of this chat, turn by turn",
    "why": "[QUESTION]: ask the model about the last exception, with its frames and the shapes of the values there",
    "cells": "[FILE]: write this chat as a notebook of its own, a cell for each question, with a link to it",
    "browse": "look into this chat: branches, requests, events, live",
    "traces": "[ID]: browse the trace files",
    "reset": "forget this chat's turns; undo brings them back",
    "undo": "take back the last turn, a reset, or that a chat was begun anew",
    "redo": "do again what undo took back",
    "fork": "[NAME]: a chat of its own that begins like this one, and go on there",
    "branch": "[NAME]: the branches of this chat, or go on with one; a cell run again leaves its old branch here",
    "keep": "NAME: make one answer of the last --compare the answer of this chat",
    "stop": "[CHAT]: stop what is answered in the background, and forget what waits for it",
    "new": "[NAME]: begin a new chat, with the model of this one",
    "chats": "all chats",
    "use": "NAME: go on with another chat, or with a Conversation in that variable",
    "save": "FILE: write this chat to a file, all branches included",
    "load": "FILE [NAME]: go on with a chat that was saved, or with a trace",
    "export": "FILE: write this chat as .md, .html, .ipynb or .py",
    "record": "FILE [all | once | new]: record what is asked and answered; off ends it",
    "replay": "FILE [SPEED]: answer from a recording, without a key; off ends it",
    "help": "[NAME]: this page, or its line about an option or subcommand",
}


HELP = ("--help", "-h")

VERBATIM = ("approve", "deny", "mcp", "why")
"""Subcommands whose words are read by themselves: values may be JSON, a reason may have any character."""


class OptionError(ValueError):
    """What was typed cannot be understood; one line that says what to write. What it quotes is shortened."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= 800 else f"{message[:500]} … {message[-300:]}")


@dataclass
class Options:
    """What the user asked for. None means: not given."""

    model: str | None = None
    client: str | None = None
    client_type: str | None = None
    chat: str | None = None
    new: bool = False
    system: str | None = None
    tools: list[str] | None = None
    ask: list[str] | None = None
    type: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: str | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: list[str] | None = None
    trace: str | None = None
    image: list[Any] = field(default_factory=list)
    file: list[str] = field(default_factory=list)
    format: str | None = None
    compare: list[str] | None = None
    background: bool = False
    max_turns: int | None = None
    max_calls: int | None = None
    budget: Decimal | None = None
    edit: str | None = None
    out: str | None = None
    quiet: bool = False
    dry_run: bool = False
    help: bool = False
    prompt: str = ""
    given: list[str] = field(default_factory=list)
    deferred: list[tuple[str, str]] = field(default_factory=list)
    """Options whose values have ``{{expressions}}``, as they were typed; see `resolving`."""

    def config(self) -> dict[str, Any]:
        """The part that goes into a request's config."""
        named = {
            "system_prompt": self.system,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "thinking_level": self.thinking,
            "top_p": self.top_p,
            "seed": self.seed,
            "stop": self.stop,
            "trace_id": self.trace,
        }
        return {key: value for key, value in named.items() if value is not None}


def _name(option: str, value: str) -> str:
    if not value.isidentifier() or keyword.iskeyword(value):
        raise OptionError(f"{option} needs the name of a variable, and {value!r} cannot be one")
    return value


def _whole(option: str, value: str) -> int:
    try:
        number = int(value.replace("_", ""))
    except ValueError:
        number = 0
    if number < 1:
        raise OptionError(f"{option} needs a whole number from 1 on, not {value!r}")
    return number


def _number(option: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 10:
        raise OptionError(f"{option} needs a number from 0 on, not {value!r}")
    return number


def _share(option: str, value: str) -> float:
    number = _number(option, value)
    if number > 1:
        raise OptionError(f"{option} needs a number from 0 to 1, not {value!r}")
    return number


def _integer(option: str, value: str) -> int:
    try:
        return int(value.replace("_", ""))
    except ValueError:
        raise OptionError(f"{option} needs a whole number, not {value!r}") from None


def _dollars(option: str, value: str) -> Decimal:
    from mmsp_nb.money import checked_budget

    try:
        amount = checked_budget(value)
    except ValueError:
        amount = None
    if not amount:
        raise OptionError(f"{option} needs US dollars above 0, such as 0.05, not {value!r}")
    return amount


def _format(option: str, value: str) -> str:
    if value.lower() not in FORMATS:
        raise OptionError(f"{option} is one of {', '.join(FORMATS)}, not {value!r}{did_you_mean(value, FORMATS)}")
    return value.lower()


def _some(option: str, value: str) -> list[str]:
    if not (names := _names(option, value)):
        raise OptionError(f"{option} needs a value: {option} {OPTIONS[option].about.partition(':')[0]}")
    if len(set(names)) < len(names):
        raise OptionError(f"{option} names one of them twice")
    return names


def _level(option: str, value: str) -> str:
    if value.lower() not in THINKING:
        raise OptionError(f"{option} is one of {', '.join(THINKING)}, not {value!r}{did_you_mean(value, THINKING)}")
    return value.lower()


def _names(option: str, value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


def _text(option: str, value: str) -> str:
    return value


def _filled(option: str, value: str) -> str:
    if not value:
        raise OptionError(f"{option} needs some text, not {value!r}")
    return value


@dataclass(frozen=True)
class Option:
    """One option: the attribute it sets, and how its value is read (None: it takes none). ``many``: may be repeated."""

    attribute: str
    read: Callable[[str, str], Any] | None
    about: str
    constant: Any = True
    many: bool = False


OPTIONS: dict[str, Option] = {
    "--model": Option("model", _filled, "ID: the model for this cell and those after it in this chat"),
    "--client": Option("client", _name, "NAME: the client in this variable answers from now on, in this chat"),
    "--client-type": Option("client_type", _text, "TYPE: the client type, for ids that do not tell"),
    "--chat": Option("chat", _filled, "NAME: the chat to use; made if it is not there"),
    "--new": Option("new", None, "begin the chat anew; %mmsp undo goes back to the one before"),
    "--system": Option("system", _text, "TEXT: the system prompt of this cell"),
    "--tools": Option("tools", _names, "A,B: only these tools for this cell"),
    "--no-tools": Option("tools", None, "no tools for this cell", constant=[]),
    "--ask": Option("ask", _names, "A,B: these tools wait for your word in this cell; * stands for any"),
    "--type": Option("type", _filled, "TYPE: the answer is an object of this type, as in list[Invoice]; see --out"),
    "--max-tokens": Option("max_tokens", _whole, "N: budget of an answer"),
    "--temperature": Option("temperature", _number, "X: sampling temperature"),
    "--thinking": Option("thinking", _level, f"LEVEL: {', '.join(THINKING)}"),
    "--top-p": Option("top_p", _share, "X: nucleus sampling, from 0 to 1"),
    "--seed": Option("seed", _integer, "N: for the same answer again, where the vendor has seeds"),
    "--stop": Option("stop", _filled, "TEXT: end the answer where it would say this; may be repeated", many=True),
    "--image": Option(
        "image", _filled, "X: a picture beside the prompt: variable, path or URL; may be repeated", many=True
    ),
    "--file": Option("file", _filled, "PATH: a text file below the prompt, bounded; may be repeated", many=True),
    "--trace": Option("trace", _filled, "ID: write trace files under this id; see %mmsp traces"),
    "--format": Option("format", _format, f"FORM: how the answer is shown: {', '.join(FORMATS)}"),
    "--compare": Option(
        "compare", _some, "A,B,C: these models (or variables with clients) side by side; see %mmsp keep"
    ),
    "--background": Option("background", None, "let the cell end at once; the answer comes into its output"),
    "--max-turns": Option("max_turns", _whole, "N: requests that this cell may make"),
    "--max-calls": Option("max_calls", _whole, "N: tool calls that this cell may make"),
    "--budget": Option(
        "budget",
        _dollars,
        "X: US dollars this cell may cost: not sent when estimated above, no more calls once reached",
    ),
    "--max-cost": Option("budget", _dollars, "X: the same as --budget"),
    "--edit": Option(
        "edit", _filled, "CELL: let the model rewrite In[7], or the cell with that id or tag; see %mmsp apply"
    ),
    "--out": Option("out", _name, "NAME: put the Answer into this variable"),
    "--quiet": Option("quiet", None, "draw nothing"),
    "--dry-run": Option("dry_run", None, "show what would be sent, send and change nothing"),
    "--help": Option("help", None, "show the options with what holds now, and an example"),
}
SHORT = {"-m": "--model", "-o": "--out", "-q": "--quiet", "-n": "--new", "-h": "--help"}
"""Other ways to write options."""


def spelled(name: str) -> str:
    """An option with its short forms, as help lists it: ``--model, -m``."""
    return ", ".join([name, *(short for short, long in SHORT.items() if long == name)])


ALONE = {
    "compare": ("background", "edit"),
    "edit": ("background", "type", "format"),
}
"""Options that do not go together with others, by their attributes."""


def parse_cell(line: str, body: str) -> Options:
    """``%%mmsp LINE`` with ``BODY`` below it. The body is taken byte for byte."""
    options, rest = _read_options(line)
    if options.help:
        return options
    if rest:
        word, hint = rest.split()[0], _meant(line, rest, options)
        raise OptionError(f"unexpected {word!r} after %%mmsp: the prompt goes on the lines below{hint}")
    options.prompt = body
    if not body.strip():
        raise OptionError("the prompt is empty: write it below the %%mmsp line")
    return options


_LAST_VALUE = re.compile(r"(?:^|\s)(?P<option>-[-\w]+)(?:=|\s+)(?P<value>[^\s\"'=-][^\s\"']*)\s*\Z")


def _meant(line: str, rest: str, options: Options) -> str:
    """What was probably meant by words behind the options of a cell, as the end of a message."""
    words = rest.split()
    before = _LAST_VALUE.search(line[: line.rindex(rest)])
    if before and (name := SHORT.get(before["option"], before["option"])) in OPTIONS:
        value, option = before["value"], OPTIONS[name]
        opened = value.endswith((",", "|")) or words[0] in ("|", ",") or value.count("[") > value.count("]")
        if option.read is not None and (opened or option.attribute in ("system", "stop", "chat")):
            whole = f"{value} {rest.partition(' -')[0]}".strip()
            return f"; a value with spaces is quoted: {name} {shorten_words(repr(whole))}"
    if words[0] in SUBCOMMANDS:
        return f"; %mmsp {words[0]}, with one %, is a line of its own"
    return f"; write -m {words[0]} for a model" if len(words) == 1 and options.model is None else ""


def parse_line(line: str) -> tuple[str, Options | list[str]]:
    """``%mmsp LINE``: the subcommand, and for ``ask`` its options and prompt, for the others their words."""
    command, _, rest = line.strip().partition(" ")
    if not command:
        return "status", []
    if command in HELP:
        return "help", []
    if command.startswith("-"):
        raise OptionError("options come after ask: %mmsp ask [options] PROMPT")
    if command not in SUBCOMMANDS:
        near = "" if len(rest.split()) > 1 else did_you_mean(command, SUBCOMMANDS)  # several words are a question
        hint = near or f"; to ask something, write %mmsp ask {shorten_words(line)}"
        raise OptionError(f"there is no %mmsp {command}{hint}")
    if rest.strip() in HELP and command != "ask":
        return "help", [command]
    if command == "ask":
        options, prompt = _read_options(rest, prompt=True)
        options.prompt = prompt
        if not options.prompt and not options.help:
            raise OptionError("%mmsp ask needs a prompt")
        return command, options
    if command in ("retry", "continue"):
        options, rest = _read_options(rest)
        if rest:
            raise OptionError(f"%mmsp {command} takes options only, not {rest.split()[0]!r}; to ask, write %mmsp ask")
        return command, options
    if command in VERBATIM:
        return command, [rest.strip()]
    words = rest.split("#", 1)[0] if rest.lstrip().startswith("#") or " #" in rest else rest
    return command, [one or other or word for one, other, word in _WORDS.findall(words)]


_WORDS = re.compile(r"""'([^']+)'(?!\S)|"([^"]+)"(?!\S)|(\S+)""")
"""A name with spaces is quoted as a whole; any other quote is a character of its word."""


def shorten_words(text: str) -> str:
    """The first words of ``text``, for a message."""
    words = " ".join(text.split())
    return words if len(words) <= 30 else words[:29] + "…"


def _read_options(line: str, *, prompt: bool = False) -> tuple[Options, str]:
    """The options at the start of ``line``, and what follows them."""
    options, position = Options(), 0
    by: dict[str, str] = {}  # how what is given was written
    while True:
        while position < len(line) and line[position].isspace():
            position += 1
        rest = line[position:]
        if not rest or (rest.startswith("#") and not prompt):
            return _together(options), ""
        if not rest.startswith("-") or rest[1:2] in ("", " "):
            return _together(options), rest.strip()
        word = rest.split()[0]
        if word == "--":
            return _together(options), rest[2:].strip()
        name, equals, _ = word.partition("=")
        name = SHORT.get(name, name)
        option = OPTIONS.get(name)
        if option is None:
            if prompt and not word.startswith("--"):
                return _together(options), rest.strip()  # "-5 degrees, is that cold?"
            raise OptionError(f"there is no option {name}{did_you_mean(name, [*OPTIONS, *SHORT])}")
        position += len(word.partition("=")[0])
        if option.attribute in by and not option.many:
            other = by[option.attribute]
            raise OptionError(f"{name} is given twice" if other == name else f"{other} and {name} do not go together")
        by[option.attribute] = name
        if option.attribute not in options.given:
            options.given.append(option.attribute)
        if option.read is None:
            if equals:
                raise OptionError(f"{name} takes no value")
            setattr(options, option.attribute, option.constant)
            continue
        value, position = _value(name, line, position + (1 if equals else 0))
        if "{{" in value:
            options.deferred.append((name, value))
            if option.read not in (_text, _filled):  # what it is shows when the expression has a value
                continue
        read = option.read(name, value)
        if option.many:
            read = [*(getattr(options, option.attribute) or []), read]
        setattr(options, option.attribute, read)


def _together(options: Options) -> Options:
    """``options``, if they go together."""
    for one, others in ALONE.items():
        for other in others:
            if one in options.given and other in options.given:
                raise OptionError(f"--{one} and --{other} do not go together")
    return options


def _value(name: str, line: str, position: int) -> tuple[str, int]:
    """The value at ``position``: a quoted string or a word."""
    while position < len(line) and line[position].isspace():
        position += 1
    if position >= len(line) or (line[position] == "#" and line[position - 1].isspace()):
        raise OptionError(f"{name} needs a value: {name} {OPTIONS[name].about.partition(':')[0]}")
    quote = line[position]
    if quote not in "\"'":
        end = position
        depth = 0
        while end < len(line) and (depth or not line[end].isspace()):
            if depth or line.startswith("{{", end):  # an {{expression}} may have spaces; other braces are text
                depth += {"{": 1, "}": -1}.get(line[end], 0)
            end += 1
        if line[position] == "-" and line[position:end] in OPTIONS:
            raise OptionError(f"{name} needs a value, and {line[position:end]} is the next option")
        return line[position:end], end
    parts: list[str] = []
    end = position + 1
    while end < len(line) and line[end] != quote:
        if line[end] == "\\" and line[end + 1 : end + 2] in (quote, "\\"):
            end += 1
        parts.append(line[end])
        end += 1
    if end >= len(line):
        raise OptionError(f"the quote {quote} after {name} is never closed")
    return "".join(parts), end + 1


def quoted(name: str) -> str:
    """``name`` as it can be read again: in quotes if it has spaces, such as that of a chat or a file."""
    if not re.search(r"\s", name):
        return name
    return f"'{name}'" if "'" not in name else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
