"""Canned faults and oddities by name: what a provider can do wrong, ready to be asked for.

A name is a word or ends in a number: ``"rate-limited"``, ``"status-503"``, ``"cut-after-200"``. The prefix ``fake:`` is
allowed everywhere, so that a model id can name a fault: a `FakeProvider` whose script is `answer` plays the fault
that the request's model names, in the dialect of the request's path.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mmsp_nb.testing import malformed, streams
from mmsp_nb.testing.connection import RecordedRequest
from mmsp_nb.testing.gate import Gate
from mmsp_nb.testing.parts import Part, call, text, thinking
from mmsp_nb.testing.reply import Cut, Reply
from mmsp_nb.testing.sse import Frame, Style, encode
from mmsp_nb.testing.wire import mmsp

__all__ = ["FAULTS", "Fault", "answer", "check", "dialect_of", "reply"]

PREFIX = "fake:"


@dataclass(frozen=True, slots=True)
class Fault:
    """``make(dialect, number)`` gives the reply; ``number`` is the default for names without one, None = no number."""

    name: str
    summary: str
    make: Callable[[str, int], Reply]
    number: int | None = None


FAULTS: dict[str, Fault] = {}
"""All faults by name, without their numbers."""


def fault(name: str, summary: str, number: int | None = None) -> Callable[[Callable[[str, int], Reply]], None]:
    """Register a fault under ``name``; a notebook or a test may add its own."""

    def register(make: Callable[[str, int], Reply]) -> None:
        FAULTS[name] = Fault(name, summary, make, number)

    return register


def reply(name: str, dialect: str = "chat") -> Reply:
    """The reply of the fault, or canonical answer, ``name`` in ``dialect``. ValueError names the nearest one."""
    wanted = name.removeprefix(PREFIX)
    if wanted in streams.NAMES and wanted not in FAULTS:
        return streams.reply(wanted, dialect)
    fault, number = _found(wanted, name)
    return fault.make(dialect, number)


def check(name: str) -> None:
    """ValueError when ``name`` is neither a fault nor one of the canonical answers of `streams`."""
    wanted = name.removeprefix(PREFIX)
    if wanted not in streams.NAMES:
        _found(wanted, name)


def _found(wanted: str, name: str) -> tuple[Fault, int]:
    found, number = FAULTS.get(wanted), None
    if found is None and (match := re.fullmatch(r"(.+)-(\d+)", wanted)):
        found, number = FAULTS.get(match[1]), int(match[2])
    if found is None or (number is not None and found.number is None):
        near = difflib.get_close_matches(wanted, [*FAULTS, *streams.NAMES], 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join([*FAULTS, *streams.NAMES])}"
        raise ValueError(f"no fault {name!r}; {hint}")
    return found, found.number or 0 if number is None else number


def answer(request: RecordedRequest) -> Reply:
    """A script for `FakeProvider`: the request's model names the fault, its path the dialect.

    Any other model gets the canonical text.
    """
    dialect = dialect_of(request.path)
    body = request.body if isinstance(request.body, dict) else {}
    model = str(body.get("model") or request.path.rpartition("/")[2].partition(":stream")[0])
    if not model.startswith(PREFIX):
        return streams.reply("text", dialect)
    try:
        return reply(model, dialect)
    except ValueError as error:
        return refused(dialect, 404, str(error), "model_not_found")


def dialect_of(path: str) -> str:
    """The dialect spoken at a request path. ValueError when it is none of the streaming ones."""
    for ending, dialect in _PATHS.items():
        if path.endswith(ending):
            return dialect
    raise ValueError(f"no streaming dialect is spoken at {path!r}")


_PATHS = {
    "/chat/completions": "chat",
    "/messages": "messages",
    "/responses": "responses",
    "/interactions": "interactions",
    ":streamGenerateContent": "generate_content",
    "/stream": "mmsp",
}


def refused(dialect: str, status: int, message: str, code: str, **headers: str) -> Reply:
    """An HTTP refusal with the dialect's error body. ``retry_after="2"`` becomes a header."""
    body = streams.DIALECTS[dialect].refusal(status, message, code)
    return Reply.json(body, status).with_status(status, **headers)


# refusals and dead connections

_CODES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
_CODES |= {429: "rate_limit_error", 500: "server_error", 503: "unavailable", 529: "overloaded_error"}


@fault("status", "an HTTP refusal with this status", 500)
def _(dialect: str, number: int) -> Reply:
    return refused(dialect, number, f"the fake provider refuses with {number}", _CODES.get(number, "error"))


@fault("unauthorized", "401: the key is wrong")
def _(dialect: str, number: int) -> Reply:
    return refused(dialect, 401, "invalid key", "authentication_error")


@fault("rate-limited", "429 with Retry-After in seconds", 1)
def _(dialect: str, number: int) -> Reply:
    return refused(dialect, 429, "too many requests", "rate_limit_error", retry_after=str(number))


@fault("overloaded", "529, as Anthropic says it")
def _(dialect: str, number: int) -> Reply:
    return refused(dialect, 529, "overloaded", "overloaded_error")


@fault("no-answer", "the connection is closed before a byte of the answer")
def _(dialect: str, number: int) -> Reply:
    return Reply.no_answer("fin")


@fault("reset", "the connection is torn before a byte of the answer")
def _(dialect: str, number: int) -> Reply:
    return Reply.no_answer("reset")


@fault("html", "an HTML page with status 200, as a proxy's login page")
def _(dialect: str, number: int) -> Reply:
    return Reply.data(b"<!DOCTYPE html><html><body>Please log in</body></html>", "text/html")


@fault("json", "one JSON document with status 200 instead of a stream")
def _(dialect: str, number: int) -> Reply:
    return Reply.json({"object": "chat.completion", "choices": []})


@fault("empty", "status 200 and not a byte of a body")
def _(dialect: str, number: int) -> Reply:
    return Reply.stream([])


# streams that break


@fault("cut-after", "the connection is torn after so many bytes of an answer with tool calls", 400)
def _(dialect: str, number: int) -> Reply:
    return streams.reply("tools", dialect).cut(number, "reset")


@fault("fin-after", "the connection is closed in the middle of the body after so many bytes", 400)
def _(dialect: str, number: int) -> Reply:
    return streams.reply("tools", dialect).cut(number, "fin")


@fault("end-after", "the answer ends properly, but after so many bytes", 400)
def _(dialect: str, number: int) -> Reply:
    return streams.reply("tools", dialect).end(number)


@fault("error-in-stream", "some text, then an error event, all with status 200")
def _(dialect: str, number: int) -> Reply:
    return _broken(dialect, streams.DIALECTS[dialect].error())


@fault("not-json", "a frame in the middle that is no JSON")
def _(dialect: str, number: int) -> Reply:
    return _broken(dialect, Frame('{"choices": [{"delta"', "message"))


@fault("no-usage", "a complete answer whose usage is never reported")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("text", dialect, usage=None)


@fault("thinking-only", "a complete answer that only thought")
def _(dialect: str, number: int) -> Reply:
    return _stream(dialect, [thinking("Hm.", signature="c2ln")])


@fault("nothing-said", "a complete answer without any content, as when the prompt exceeds the context")
def _(dialect: str, number: int) -> Reply:
    return _stream(dialect, [])


@fault("stall", "after so many bytes nothing more comes, and the connection stays open", 0)
def _(dialect: str, number: int) -> Reply:
    return streams.reply("text", dialect).hold(Gate(), number)


@fault("endless", "the model repeats itself until the client leaves")
def _(dialect: str, number: int) -> Reply:
    start, again = _without_end(dialect)
    return Reply(start, headers={"content-type": "text/event-stream"}).endless(again)


# tool calls


@fault("bad-arguments", "a tool call whose arguments are no JSON")
def _(dialect: str, number: int) -> Reply:
    return _bad_call(dialect, '{"port": ', "Brest}")


@fault("budget", "the output budget ends the answer in the middle of a call's arguments")
def _(dialect: str, number: int) -> Reply:
    ending = {"status": "incomplete"} if dialect == "responses" else {"finish": "length"}
    return _bad_call(dialect, '{"port": ', '"Bre', **ending)


@fault("interleaved", "two parallel calls whose pieces come mixed")
def _(dialect: str, number: int) -> Reply:
    options: dict[str, Any] = {"interleave": True} if dialect in _PIECEWISE else {}
    return streams.reply("tools", dialect, **options)


@fault("shared-index", "parallel calls that all carry index 0 (Chat Completions)")
def _(dialect: str, number: int) -> Reply:
    options: dict[str, Any] = {"shared_index": True, "calls": "whole"} if dialect == "chat" else {}
    return streams.reply("tools", dialect, **options)


@fault("repeated-name", "the tool's name and the call's id in every chunk (Chat Completions)")
def _(dialect: str, number: int) -> Reply:
    options: dict[str, Any] = {"calls": "name-in-every-chunk"} if dialect == "chat" else {}
    return streams.reply("tools", dialect, **options)


# nothing wrong, only odd


@fault("crlf", "lines end in CR LF")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("tools", dialect, style=Style(newline="\r\n"))


@fault("cr", "lines end in CR")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("tools", dialect, style=Style(newline="\r"))


@fault("bom", "a byte order mark first")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("tools", dialect, style=Style(bom=True))


@fault("no-space", "no space after `data:`")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("tools", dialect, style=Style(space=False))


@fault("comments", "a keep-alive comment before every frame, with id and retry lines")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("tools", dialect, style=Style(comments=1, ids=True))


@fault("multiline", "every event spreads over several data lines")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("tools", dialect, style=Style(multiline=True))


@fault("no-final-blank-line", "the last frame is not terminated")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("text", dialect, style=Style(final_blank_line=False))


@fault("bytewise", "every byte is a chunk of its own, characters torn apart")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("text", dialect).bytewise()


@fault("drops-connection", "keep-alive is promised, the connection closed after the answer all the same")
def _(dialect: str, number: int) -> Reply:
    return Reply.stream(streams.frames("text", dialect), drop_after=True)


@fault("unended", "a complete answer, then the connection is closed without an end of the body")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("text", dialect).then(Cut("fin"))


@fault("held-open", "a complete answer whose connection stays open")
def _(dialect: str, number: int) -> Reply:
    return streams.reply("text", dialect).then(Gate())


for _name, _summary, _make in malformed.MALFORMED:
    fault(_name, _summary)(lambda dialect, number, make=_make: make(dialect))  # type: ignore[misc]

_PIECEWISE = ("chat", "messages", "responses", "interactions")


def _stream(dialect: str, parts: list[Part], **options: Any) -> Reply:
    return Reply.stream(streams.DIALECTS[dialect].frames(parts, **options))


def _bad_call(dialect: str, *arguments: str, **ending: Any) -> Reply:
    """A call with these fragments of arguments, or what comes nearest to it in the dialect."""
    if dialect == "generate_content":  # calls come parsed: the worst are arguments that are no object
        part = {"functionCall": {"id": "call_1", "name": "tide_table", "args": "Brest"}}
        return Reply.stream([Frame({"candidates": [{"content": {"role": "model", "parts": [part]}}]})])
    if dialect == "mmsp":  # a server never sends such a call: it reports what happened
        failed = mmsp.error("the arguments of 'tide_table' are no JSON object", "ToolCallArgumentParseError")
        return Reply.stream([*mmsp.frames([text("Let me look.")], stop=False, done=False), failed, Frame("[DONE]")])
    return _stream(dialect, [call("tide_table", *arguments)], **ending)


def _broken(dialect: str, last: Frame) -> Reply:
    start, _ = _without_end(dialect)
    return Reply([*start, *encode([last])], headers={"content-type": "text/event-stream"})


def _without_end(dialect: str) -> tuple[list[bytes], bytes]:
    """The frames of a text up to its second piece, and that piece's frame."""
    chunks = encode(streams.DIALECTS[dialect].frames([text("Ebb ", "and flow, ")]))
    last = next(n for n, chunk in enumerate(chunks) if b"and flow" in chunk)
    return chunks[: last + 1], chunks[last]
