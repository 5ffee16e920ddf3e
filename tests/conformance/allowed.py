"""Where this package differs from the reference on purpose, and why.

An entry names a quirk of the protocol's register (``Q-02``), or ``better`` for an improvement of our own. It must
cover as little as possible: beside globs of cases and paths most have a check of what this package does instead. An
entry that covers nothing any more is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from .rig import MISSING, Difference

Check = Callable[[Difference, dict[str, Any], dict[str, Any]], bool]


@dataclass(frozen=True)
class Allowed:
    """One reason for differences.

    why: one line, printed in the report.
    cases, paths: globs of case ids and of paths within the result; any of them may match.
    check: more conditions on the difference and the two whole results.
    """

    quirk: str
    why: str
    cases: tuple[str, ...]
    paths: tuple[str, ...] = ("*",)
    check: Check | None = None

    def covers(self, case: str, difference: Difference, reference: dict[str, Any], ours: dict[str, Any]) -> bool:
        if not any(fnmatchcase(case, pattern) for pattern in self.cases):
            return False
        if not any(fnmatchcase(difference.path, pattern) for pattern in self.paths):
            return False
        return self.check is None or self.check(difference, reference, ours)


# what the checks are made of


def errors(result: dict[str, Any]) -> list[dict[str, Any]]:
    if "construction" in result:
        return [result["construction"]]
    return [step["error"] for step in result["steps"] if "error" in step]


def fails_with(name: str, **attributes: Any) -> Check:
    """Ours ends in this error of the package, once, with these attributes."""

    def check(difference: Difference, reference: dict[str, Any], ours: dict[str, Any]) -> bool:
        found = [error for error in errors(ours) if error["class"] == name]
        return len(found) == 1 and all(found[0].get(key) == value for key, value in attributes.items())

    return check


def succeeds(difference: Difference, reference: dict[str, Any], ours: dict[str, Any]) -> bool:
    """The reference fails, ours delivers an answer to its stop."""
    if not errors(reference) or errors(ours):
        return False
    return all(list(step["events"][-1]) == ["stop", "usage"] for step in ours["steps"] if "events" in step)


def changes(reference_value: Any, our_value: Any) -> Check:
    """Exactly this value became exactly that one."""
    return lambda difference, *_: (difference.reference, difference.ours) == (reference_value, our_value)


def says_more(difference: Difference, reference: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Ours has all the events of the reference in order, some more, and no error."""
    for theirs, own in zip(reference["steps"], ours["steps"], strict=True):
        remaining = iter(own.get("events", []))
        if "error" in own or not all(event in remaining for event in theirs.get("events", [])):
            return False
    return True


CLASSES = {400: "HTTPStatusError", 401: "AuthenticationError", 403: "AuthenticationError", 404: "HTTPStatusError"}
CLASSES |= {422: "HTTPStatusError", 429: "RateLimitError"}


def own_class_same_status(difference: Difference, reference: dict[str, Any], ours: dict[str, Any]) -> bool:
    """An exception of a vendor's SDK became the package's error for the same status."""
    for theirs, own in zip(errors(reference), errors(ours), strict=True):
        numbers = (theirs.get("status_code"), theirs.get("code"), theirs.get("status"))
        status = next((number for number in numbers if isinstance(number, int)), None)
        if theirs["own"] or not own["own"] or own.get("status") != status or own["class"] != CLASSES[status]:
            return False
    return bool(errors(ours))


def own_class(*names: str) -> Check:
    """An exception that is none of the protocol's became one of these."""

    def check(difference: Difference, reference: dict[str, Any], ours: dict[str, Any]) -> bool:
        pairs = list(zip(errors(reference), errors(ours), strict=True))
        return bool(pairs) and all(not theirs["own"] and own["class"] in names for theirs, own in pairs)

    return check


ERROR = ("steps.*.error", "steps.*.error.*")
OUTCOME = (*ERROR, "steps.*.events", "steps.*.events.*", "steps.*.message", "requests")
FINISH = ("*.stop", "*.finish_reason")
RESPONSES = ("openai-official/*", "openai-responses/*", "deepseek-official/*", "minimax-official/*")


ALLOWED: list[Allowed] = [
    # what is sent
    Allowed(
        "better",
        "a data URL that is none is refused before sending, by every client alike",
        ("*/items/user-image-bad-data-url",),
        OUTCOME,
        fails_with("InvalidMessageError", item_type="image_url"),
    ),
    Allowed(
        "Q-31",
        "a list of tools demands one of them, in the form that the vendor documents",
        ("*/tool-choice-*",),
        ("requests.0.body.tool_choice.*",),
        lambda d, *_: (d.reference, d.ours) in (("auto", "required"), (MISSING, "allowed_tools"), ("any", "tool")),
    ),
    Allowed(
        "Q-05", "prompt_caching None counts as absent", ("*/config/caching-null",), ("requests.0.body.cache_control",)
    ),
    Allowed(
        "better",
        "a tool without parameters gets the empty schema that Messages insists on",
        ("anthropic-official/config*", "ant-messages/config*"),
        ("requests.0.body.tools.1.input_schema",),
        changes(MISSING, {"type": "object", "properties": {}}),
    ),
    Allowed(
        "better",
        "an empty generationConfig is left out",
        ("google-genai/*",),
        ("requests.*.body.generationConfig",),
        changes({}, MISSING),
    ),
    Allowed(
        "better",
        "a downloaded image's type is read from its bytes where the URL does not tell",
        ("*/items/user-image-remote-unknown",),
        ("requests.1.body.*",),
        lambda d, *_: (
            "image" in str(d.ours) and str(d.reference).startswith(("data:application", "application", "doc"))
        ),
    ),
    Allowed(
        "Q-24",
        "results of calls without an id, and of unknown calls, are sent without one",
        ("google-official/items/call-id-equals-name", "google-official/items/result-for-unknown-call"),
        OUTCOME,
        succeeds,
    ),
    Allowed(
        "better",
        "schemas that the SDK chokes on are sent as they are",
        ("google-genai/schemas/ref", "google-genai/schemas/type-list"),
        OUTCOME,
        succeeds,
    ),
    Allowed(
        "better",
        "an empty list of messages is the server's to judge",
        ("google-genai/items/empty-list",),
        OUTCOME,
        succeeds,
    ),
    Allowed("better", "blanks around a base URL do no harm", ("*/clients/blank-base",), OUTCOME, succeeds),
    # what is refused before sending
    Allowed(
        "Q-15",
        "item_type is always spelt without its suffix",
        ("*",),
        ("steps.*.error.item_type",),
        lambda d, *_: d.reference == f"{d.ours}.done",
    ),
    Allowed(
        "Q-18",
        "unknown keys and values of a config are refused by name",
        ("*/undefined/*",),
        OUTCOME,
        fails_with("UnsupportedParameterError"),
    ),
    Allowed(
        "better",
        "a tool result without an id is refused by every client, as the protocol has it",
        ("*/items/result-without-id",),
        OUTCOME,
        fails_with("InvalidMessageError", item_type="tool_result"),
    ),
    Allowed(
        "better",
        "an unknown item is an InvalidMessageError for embeddings too",
        ("openai-embedding/embeddings/unknown-item",),
        ERROR,
        fails_with("InvalidMessageError", item_type="weird.done"),
    ),
    Allowed(
        "better",
        "an item that cannot be embedded is refused before any message is sent",
        ("google-genai/embeddings/thinking",),
        OUTCOME,
        fails_with("InvalidMessageError", item_type="thinking"),
    ),
    Allowed(
        "better",
        "a Bedrock key in the wrong form is an ApiKeyRequiredError",
        ("anthropic-official/clients/bedrock-bad-key",),
        ("construction.*",),
        own_class("ApiKeyRequiredError"),
    ),
    # tool calls in a stream
    Allowed("Q-02", "interleaved parallel calls are told apart", ("*/streams/calls-interleaved",), OUTCOME, succeeds),
    Allowed("Q-03", "a name in every chunk is one call", ("*/streams/call-name-in-every-chunk",), OUTCOME, succeeds),
    Allowed(
        "Q-13",
        "NaN is no JSON",
        ("*/streams/call-nan",),
        OUTCOME,
        fails_with("ToolCallArgumentParseError", tool_name="f"),
    ),
    Allowed(
        "Q-22",
        "a call's input in its start block counts",
        ("*/streams/input-in-start",),
        OUTCOME,
        lambda d, reference, ours: any(event.get("arguments") == {"a": 1} for event in ours["steps"][0]["events"]),
    ),
    Allowed("better", "a call that comes only when it is done counts", ("*/streams/calls-at-end",), OUTCOME, succeeds),
    Allowed(
        "better",
        "a call without an id gets one of its own, so that two calls of one tool stay apart",
        ("openai-chat/streams/odd-call-without-id", "openai-chat-vllm-adapter/streams/odd-call-without-id"),
        ("steps.0.events.*.tool_call_id",),
        changes("f", "call_0"),
    ),
    Allowed(
        "better",
        "an item that was complete before a fault is delivered with its done",
        ("*/streams/odd-call-without-*",),
        ("steps.0.events",),
        lambda d, *_: d.ours == [*d.reference, {"type": "text.done", "text": "x"}],
    ),
    Allowed(
        "Q-01",
        "a turn with tool calls finishes with tool_call",
        RESPONSES,
        FINISH,
        changes("stop", "tool_call"),
    ),
    # the rest of a stream
    Allowed(
        "Q-17",
        "a refusal is the answer's text",
        ("*/streams/refusal", "*/streams/odd-chunk-refusal"),
        OUTCOME,
        says_more,
    ),
    Allowed(
        "Q-19",
        "tokens are never negative",
        ("*/streams/usage-reasoning-outside",),
        ("steps.0.events.*.usage.3",),
        changes(-3, 5),
    ),
    Allowed(
        "Q-20", "two signed texts in a row are two items", ("google-genai/streams/two-signed-texts",), OUTCOME, succeeds
    ),
    Allowed("Q-21", "blocks of a server's own tools are skipped", ("*/streams/server-tool",), OUTCOME, succeeds),
    Allowed(
        "Q-23",
        "late encrypted reasoning makes no stray item and splits no text",
        ("*/streams/late-reasoning-done",),
        OUTCOME,
        lambda d, reference, ours: (
            [e["type"] for e in ours["steps"][0]["events"][:-1]]
            == ["thinking.delta", "thinking.done", "text.delta", "text.delta", "text.done"]
        ),
    ),
    Allowed(
        "Q-25",
        "usage may lack its details, a chunk its delta",
        ("*/streams/usage-without-details", "*/streams/odd-chunk-no-delta"),
        OUTCOME,
        succeeds,
    ),
    Allowed(
        "Q-25",
        "a call without its function is a StreamProtocolError",
        ("*/streams/odd-call-without-function",),
        ERROR,
        own_class("StreamProtocolError"),
    ),
    Allowed(
        "Q-25",
        "an answer without usage is an IncompleteStreamError",
        ("*/streams/no-usage",),
        OUTCOME,
        own_class("IncompleteStreamError"),
    ),
    Allowed(
        "Q-28",
        "one tolerant reader: comments, ids, byte order marks, missing blanks and names",
        (
            "*/streams/style-*",
            "*/streams/nameless-frames",
            "google-genai/streams/*event*",
            "google-genai/streams/debug-off",
        ),
        OUTCOME,
        lambda d, reference, ours: succeeds(d, reference, ours) or says_more(d, reference, ours),
    ),
    Allowed(
        "Q-28",
        "a named event does not hide the others from debug mode",
        ("google-genai/streams/unknown-event-debug",),
        ERROR,
        own_class("UnknownEventError"),
    ),
    Allowed(
        "better",
        "only CR and LF end a line of a stream",
        ("mmsp/streams/text-with-line-separators",),
        OUTCOME,
        succeeds,
    ),
    Allowed(
        "better",
        "an unknown event is shown as it was sent",
        ("*/streams/unknown-event-debug",),
        ("steps.0.error.event",),
        lambda d, *_: "novelty" in d.ours,
    ),
    Allowed(
        "better",
        "usage in the first event counts behind a byte order mark",
        ("anthropic-official/streams/style-bom",),
        ("steps.0.events.3.usage.*",),
    ),
    Allowed(
        "better",
        "an abort after the stop has no effect",
        ("mmsp/history/abort-after-the-stop",),
        ("steps.0.error",),
        lambda d, *_: d.ours == MISSING,
    ),
    # failures
    Allowed(
        "Q-08",
        "a refusal by HTTP is the package's own error with the same status",
        ("*/errors/status-*", "*/errors/rate-limited-for-good", "*/models/refused", "*/embeddings/refused"),
        ERROR,
        own_class_same_status,
    ),
    Allowed(
        "Q-08",
        "a broken connection is a ConnectionCutError",
        ("*/errors/torn", "*/errors/closed-in-the-middle"),
        ERROR,
        own_class("ConnectionCutError"),
    ),
    Allowed(
        "Q-08",
        "what is no JSON is a ResponseFormatError",
        ("*/errors/not-json", "*/errors/html", "*/embeddings/html"),
        ERROR,
        own_class("ResponseFormatError"),
    ),
    Allowed(
        "better",
        "a web page with status 200 is told apart from a stream that ended early",
        ("*/errors/html",),
        ERROR,
        fails_with("ResponseFormatError", status=200),
    ),
    Allowed(
        "better",
        "an answer that ends inside a line has been cut",
        ("*/errors/ended-in-the-middle",),
        OUTCOME,
        fails_with("ConnectionCutError"),
    ),
    Allowed(
        "Q-04",
        "an error event of Responses is raised with its code",
        tuple(f"{client}{case}" for client in RESPONSES for case in ("streams/failed", "errors/error-in-stream")),
        OUTCOME,
        fails_with("ProviderStreamError", code="server_error", status=500),
    ),
    Allowed(
        "Q-29",
        "an error inside a stream has the status that is usual for its code",
        ("*/errors/error-in-stream",),
        ERROR,
        lambda d, reference, ours: (
            ours["steps"][0]["error"]["class"] == "ProviderStreamError"
            and ours["steps"][0]["error"]["status"] in (500, 503, 529)
        ),
    ),
    Allowed(
        "better",
        "the text of an error is no part of the contract",
        ("mmsp/errors/status-redirect", "mmsp/errors/not-an-error-object"),
        ("steps.0.error.error.message",),
        lambda d, *_: d.ours and d.ours in d.reference,
    ),
    Allowed(
        "better",
        "a refusal for lack of capacity is retried by every client",
        ("google-genai/errors/rate-limited-*", "mmsp/errors/rate-limited-*"),
        ("requests", *OUTCOME),
        lambda d, reference, ours: len(ours["requests"]) > len(reference["requests"]) == 1,
    ),
]
