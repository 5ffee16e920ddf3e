"""The rows of the fault matrix: what goes wrong, how it is played, and what it has to end in."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mmsp_nb.testing import Gate, Reply, encode, faults, streams
from mmsp_nb.testing.parts import text
from mmsp_nb.transport.wire import Timeouts

__all__ = ["ROWS", "SAID", "Row"]

SAID = "Ebb and flow, "
"""The text before the faults that come in the middle of a text."""

SHORT = Timeouts(read=0.15, loopback_connect=0.15)
MANY = 12
"""Places at which an answer is cut, unless it is cut at every byte."""


@dataclass(frozen=True)
class Row:
    """A fault.

    Attributes:
        errors: Names of the errors that it may end in; none when the answer has to come whole.
        perhaps: It may come whole as well.
        make: The reply in a dialect; None when ``address`` leads to a place where nobody replies.
        address: Name of an attribute of the `Site`, or an address.
        options: Of the transport. Then, and with an address, the next question is asked by a client without them.
        says: Text that comes before the fault.
        relayed: An MMSP server's own stop says that this is a complete answer.
        reported: An MMSP server reports this in its own kind of error.
    """

    name: str
    summary: str
    errors: frozenset[str] = frozenset()
    make: Callable[[str], Reply] | None = None
    perhaps: bool = False
    address: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""
    relayed: bool = False
    reported: bool = False
    cuts: str = ""

    def happens_to(self, client_type: str) -> bool:
        # MiniMax sends calls whole
        return client_type != "minimax-official" or self.name not in ("interleaved", "bad-arguments", "budget")

    def expected(self, client_type: str) -> frozenset[str]:
        if client_type == "mmsp" and self.relayed:
            return frozenset()
        return frozenset({"UpstreamError"}) if client_type == "mmsp" and self.reported else self.errors

    def may_be_whole(self, client_type: str) -> bool:
        # in Interactions a final event without usage counts as a report of nothing
        told = self.name == "no-usage" and client_type == "google-official"
        return self.perhaps or told or not self.expected(client_type)

    def variants(self, dialect: str, every_byte: bool) -> Iterator[tuple[str, Reply | None]]:
        """(what it is, the reply)."""
        if not self.cuts:
            yield "", None if self.make is None else self.make(dialect)
            return
        whole = streams.reply("text", dialect)
        size = len(whole.content)
        for at in range(1, size) if every_byte else range(1, size, max(size // MANY, 1)):
            yield f"at {at}", whole.end(at) if self.cuts == "end" else whole.cut(at, self.cuts)  # type: ignore[arg-type]


def named(name: str, *errors: str, says: str = "", **more: Any) -> Row:
    """A fault that the fake provider has by name."""
    found = faults.FAULTS[name if name in faults.FAULTS else name.rpartition("-")[0]]
    return Row(name, found.summary, frozenset(errors), lambda dialect: faults.reply(name, dialect), says=says, **more)


def status(number: int, error: str = "HTTPStatusError") -> Row:
    return replace(named(f"status-{number}", error, reported=True), summary=f"an HTTP refusal with {number}")


def begun(dialect: str) -> list[bytes]:
    chunks = encode(streams.DIALECTS[dialect].frames([text("Ebb ", "and flow, ")]))
    return chunks[: next(n for n, chunk in enumerate(chunks) if b"and flow" in chunk) + 1]


def stream(dialect: str, *more: bytes) -> Reply:
    return Reply([*begun(dialect), *more], headers={"content-type": "text/event-stream"})


def limited_after(seconds: str) -> Callable[[str], Reply]:
    return lambda dialect: faults.refused(dialect, 429, "too many", "rate_limit_error", retry_after=seconds)


def error_first(dialect: str) -> Reply:
    return Reply.stream([streams.DIALECTS[dialect].error()])


def endless_refusal(dialect: str) -> Reply:
    return Reply([], 500, {"content-type": "text/plain"}).endless(b"x" * 65536)


KILO = 1024
FAILED, CUT, LATE, LARGE = "ConnectionFailedError", "ConnectionCutError", "RequestTimeoutError", "ResponseTooLargeError"
REFUSED, LIMITED, FORMAT, HALF = "HTTPStatusError", "RateLimitError", "ResponseFormatError", "IncompleteStreamError"
BAD_CALL, EMPTY, TOLD = "ToolCallArgumentParseError", "EmptyResponseError", "ProviderStreamError"
WHOLE = (
    *("interleaved", "shared-index", "repeated-name", "crlf", "cr", "bom", "no-space", "comments", "multiline"),
    *("no-final-blank-line", "bytewise", "drops-connection", "gzip", "wrong-type", "broken-text"),
)


def row(name: str, summary: str, errors: str, make: Callable[[str], Reply] | None = None, **more: Any) -> Row:
    return Row(name, summary, frozenset(errors.split()), make, **more)


def limit(**options: int) -> dict[str, Any]:
    return {"says": SAID, "options": options}


def bomb(dialect: str) -> Reply:
    body = gzip.compress(b"data: " + b"x" * (4 * KILO * KILO))
    return Reply([body], headers={"content-type": "text/event-stream", "content-encoding": "gzip"})


def again(dialect: str) -> Reply:
    return faults.reply("endless", dialect)


def endless(chunk: bytes, after: bytes = b"") -> Callable[[str], Reply]:
    return lambda dialect: stream(dialect, after).endless(chunk)


def silent(dialect: str) -> Reply:
    return stream(dialect).hold(Gate(), len(b"".join(begun(dialect))))


ROWS: tuple[Row, ...] = (
    # no connection
    row("refused", "nobody listens", FAILED, address="http://127.0.0.1:1"),
    row("dns", "no such name", FAILED, address="http://no-such-host.invalid"),
    row("deaf", "the connection never comes about", FAILED, address="deaf", options={"timeout": SHORT}),
    row("tls-untrusted", "a certificate nobody has signed", FAILED, address="tls"),
    row("tls-plain", "TLS to a port that does not speak it", FAILED, address="plain"),
    row("tls-closed", "closed in the middle of the TLS handshake", FAILED, address="closing"),
    named("no-answer", FAILED),
    named("reset", FAILED),
    # refusals
    *(status(number) for number in (400, 402, 404, 408, 409, 413, 422, 500, 502, 503, 504)),
    status(401, "AuthenticationError"),
    status(403, "AuthenticationError"),
    named("rate-limited", LIMITED, reported=True),
    row(
        "rate-limited-date", "429 until a date", LIMITED, limited_after("Wed, 21 Oct 2015 07:28:00 GMT"), reported=True
    ),
    row("rate-limited-long", "429 for a day", LIMITED, limited_after("86400"), reported=True),
    row("rate-limited-odd", "429 until a time without a meaning", LIMITED, limited_after("soon"), reported=True),
    named("overloaded", REFUSED, reported=True),
    named("bad-gateway", REFUSED, reported=True),
    named("redirect", REFUSED, reported=True),
    row("endless-refusal", "500 with a body that does not end", REFUSED, endless_refusal, reported=True),
    # no answer of a model
    named("html", FORMAT),
    named("json", FORMAT),
    named("plain-text", FORMAT, HALF),
    named("noise", FORMAT, HALF),
    named("empty", HALF),
    named("only-comments", HALF),
    # no HTTP
    named("no-http", FAILED),
    named("huge-headers", FAILED),
    named("cut-headers", FAILED),
    named("short-body", CUT, says=SAID),
    named("broken-chunks", CUT, says=SAID),
    named("gzip-untold", FORMAT, HALF),
    named("no-gzip", FORMAT),
    # silence
    named("stall-0", LATE, options={"timeout": SHORT}),
    row("stall-later", "nothing more comes in mid-text", LATE, silent, says=SAID, options={"timeout": SHORT}),
    named("stalled-headers", LATE, options={"timeout": SHORT}),
    # streams that break
    named("cut-after", CUT),
    named("fin-after", CUT),
    named("end-after", CUT, HALF, BAD_CALL),
    row("cut-reset", "the connection is torn at any byte", CUT, perhaps=True, cuts="reset"),
    row("cut-fin", "the connection is closed at any byte", CUT, perhaps=True, cuts="fin"),
    row("cut-end", "the answer ends at any byte", f"{CUT} {HALF} {EMPTY}", perhaps=True, cuts="end"),
    row("error-first", "an error event before anything else", TOLD, error_first, reported=True),
    named("error-in-stream", TOLD, says=SAID, reported=True),
    named("not-json", FORMAT, says=SAID),
    named("odd-values", FORMAT, says=SAID),
    named("deep", FORMAT, says=SAID),
    # complete, but for the connection; where nothing in the stream says so, it may be lost
    named("unended", CUT, perhaps=True),
    named("held-open", LATE, perhaps=True, options={"timeout": SHORT}),
    # without an end
    row(
        "long-line",
        "a line beyond the limit",
        LARGE,
        endless(b"x" * 65536, after=b"data: "),
        **limit(max_event=256 * KILO),
    ),
    row(
        "long-event",
        "an event of many lines beyond the limit",
        LARGE,
        endless(b"data: " + b"x" * 8000 + b"\n"),
        **limit(max_event=256 * KILO),
    ),
    row("zip-bomb", "a compressed line beyond the limit", LARGE, bomb, options={"max_event": 256 * KILO}),
    row("endless-item", "a text beyond the limit", LARGE, again, **limit(max_item=4 * KILO, max_answer=KILO * KILO)),
    row("endless-answer", "an answer beyond the limit", LARGE, again, **limit(max_answer=64 * KILO)),
    row(
        "endless-comments",
        "keep-alive comments for ever",
        LARGE,
        endless(b": keep-alive\n\n" * 50),
        **limit(max_answer=64 * KILO),
    ),
    # answers that lack something
    named("no-usage", HALF, relayed=True),
    named("thinking-only", EMPTY, relayed=True),
    named("nothing-said", EMPTY),
    named("bad-arguments", BAD_CALL, reported=True),
    named("budget", BAD_CALL, reported=True),
    named("duplicates", BAD_CALL, "StreamProtocolError", FORMAT, perhaps=True),
    # odd, but whole
    *(named(name) for name in WHOLE),
)
