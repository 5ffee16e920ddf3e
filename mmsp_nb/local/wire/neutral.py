"""What a request asks and what an answer says, without any vendor's names.

A wire module turns a request body into an `Ask`, and `Says` (or single `Delta`s) into the bytes that its
vendor would send. Whoever answers (the demo's rules, the local model) only ever sees these shapes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

CREATED = 1_767_225_600
"""The moment that every answer claims to be made at (2026-01-01, Unix seconds): answers are reproducible."""

Finish = Literal["stop", "length", "tool_call"]


@dataclass(frozen=True, slots=True)
class Text:
    """Prose, of either side."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning that is shown to the reader before the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a prompt or a tool's result: a ``data:`` URL or an address."""

    url: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. ``raw`` replaces the JSON of ``arguments`` on the wire (to send a broken one on purpose)."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    raw: str | None = None

    @property
    def json(self) -> str:
        """The arguments as the text that travels."""
        return json.dumps(dict(self.arguments), ensure_ascii=False) if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool returned. ``name`` is that of the call with this id, or the id when there was no such call."""

    call_id: str
    text: str
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    images: int = 0


Part = Text | Thinking | Image | Call | Result
Say = Text | Thinking | Call


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def results(self) -> list[Result]:
        return [part for part in self.parts if isinstance(part, Result)]

    @property
    def calls(self) -> list[Call]:
        return [part for part in self.parts if isinstance(part, Call)]

    @property
    def images(self) -> list[Image]:
        return [part for part in self.parts if isinstance(part, Image)]


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared function; ``parameters`` is a JSON Schema object."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request.

    ``tool_choice`` is ``"auto"``, ``"none"``, ``"required"`` or the names that may be called (one must be).
    ``think`` says that reasoning is wanted, ``show_thoughts`` that it is to be readable.
    ``schema`` is a JSON Schema for the whole answer; ``{}`` means any JSON object.
    ``options`` holds what only the wire module itself understands.
    """

    model: str
    turns: tuple[Turn, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: str | tuple[str, ...] = "auto"
    parallel: bool = True
    think: bool = False
    show_thoughts: bool = True
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    stream: bool = False
    digest: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        """The text of the last user message that has any."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user" and turn.text.strip()), "")

    def new_results(self) -> list[Result]:
        """The results of the calls made since the last user text, oldest first."""
        found: list[Result] = []
        for turn in reversed(self.turns):
            found[:0] = turn.results
            if turn.role == "user" and turn.text.strip():
                break
        return found

    def ident(self, prefix: str, number: int = 0, length: int = 24) -> str:
        """An id that follows from the request alone: ``prefix`` and ``length`` hexadecimal digits."""
        return prefix + hashlib.sha256(f"{self.digest}/{prefix}/{number}".encode()).hexdigest()[:length]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one exchange: ``cached`` is part of ``input``; ``thoughts`` come on top of ``output``."""

    input: int = 0
    cached: int = 0
    output: int = 0
    thoughts: int = 0


class Delta(NamedTuple):
    """A fragment of an answer. ``call`` opens a tool call, ``arguments`` continues it."""

    kind: Literal["text", "thinking", "call", "arguments"]
    text: str = ""
    call: Call | None = None


class BadRequest(Exception):
    """The request cannot be served: an HTTP status and a sentence, worded and wrapped as the vendor would."""

    def __init__(self, message: str, status: int = 400, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.code, self.param = message, status, code, param


def digest(body: Mapping[str, Any]) -> str:
    """A fingerprint of a request that does not depend on whether the answer is streamed."""
    rest = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def add_user(turns: list[Turn], parts: Iterable[Part]) -> None:
    """Append what the user side says. Results and the text after them are one turn; two texts are two turns."""
    parts = tuple(parts)
    spoken = any(isinstance(part, Text) for part in parts)
    if turns and turns[-1].role == "user" and not (spoken and turns[-1].text):
        turns[-1] = Turn("user", (*turns[-1].parts, *parts))
    else:
        turns.append(Turn("user", parts))


def name_results(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Give every result the name and the arguments of the call it answers."""
    calls: dict[str, Call] = {}
    named: list[Turn] = []
    for turn in turns:
        parts: list[Part] = []
        for part in turn.parts:
            if isinstance(part, Call):
                calls[part.id or part.name] = part
            elif isinstance(part, Result):
                call = calls.get(part.call_id) or calls.get(part.name)
                name = call.name if call else part.name or part.call_id
                part = Result(part.call_id, part.text, name, call.arguments if call else {}, part.images)
            parts.append(part)
        named.append(Turn(turn.role, tuple(parts)))
    return tuple(named)


def arguments_of(value: Any) -> dict[str, Any]:
    """A call's arguments from a request: an object, or JSON text of one; anything else counts as none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


def gather(deltas: Iterator[Delta]) -> list[Say]:
    """Put single deltas together again: what a request without streaming answers."""
    says: list[Say] = []
    kind, texts = "", [""]
    call: Call | None = None

    def flush() -> None:
        joined = "".join(texts)
        if call is not None:
            says.append(Call(call.name, arguments_of(joined), call.id, joined))
        elif joined:
            says.append(Thinking(joined) if kind == "thinking" else Text(joined))
        texts.clear()

    for delta in deltas:
        if delta.kind == "call" or (delta.kind != kind and delta.kind != "arguments"):
            flush()
            kind, call = delta.kind, delta.call
        texts.append(delta.text)
    flush()
    return says
