"""All targets by name: what is run on the bytes, the seeds, and words that a fuzzer should know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import fuzz_files as files
import fuzz_texts as texts
import fuzz_wire as wire

__all__ = ["TARGETS", "Target"]

_NAMES = ("type", "text", "delta", "id", "index", "usage", "error", "data", "arguments", "name")
_JSON = [*"{}[]:,", '""', "null", "true", "\\u0000", *map('"{}"'.format, _NAMES)]
_STREAM = [
    *_JSON,
    "data: ",
    "event: ",
    "\n\n",
    "\r\n",
    "[DONE]",
    '"finish_reason"',
    '"content"',
    '"item"',
    '"step"',
    '"parts"',
]
_MARKDOWN = [
    "```",
    "$$",
    "\\(",
    "\\[",
    "](",
    "<a ",
    "<!--",
    "javascript:",
    "| ",
    "---",
    "- ",
    "> ",
    "# ",
    "\n\n",
    "**",
    "http://",
]


@dataclass(frozen=True)
class Target:
    """``run`` raises for a fault. ``words``: a dictionary for the fuzzer. ``longest``: bytes of an input."""

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    words: Iterable[str] = ()
    longest: int = 4_096


TARGETS: dict[str, Target] = {
    "sse": Target(wire.sse, wire.sse_seeds, ["data: ", "event:", "\r", "\r\n", "\n\n", "\ufeff", ":"]),
    "aws": Target(wire.aws, wire.aws_seeds, [":event-type", ":message-type", "error", ":error-code"], 1_024),
    **{name: Target(wire.stream_target(name), wire.stream_seeds(name), _STREAM) for name in wire.CLIENTS},
    "assembler": Target(wire.assembler, wire.assembler_seeds, (), 512),
    "cassette": Target(
        files.cassette, files.cassette_seeds, [*_JSON, '"request"', '"response"', '"end"', '"t"', '"url"']
    ),
    "saved": Target(files.saved, files.saved_seeds, [*_JSON, '"is"', '"turn"', '"branch"', '"item"', '"message"']),
    "trace": Target(files.trace, files.trace_seeds, [*_JSON, '"history"', '"content_items"', '"role"']),
    "prompt": Target(
        texts.prompt_text, texts.prompt_seeds, ["{{", "}}", "\\{{", "lambda ", "f'", '"""', "for ", "#"], 512
    ),
    "magics": Target(texts.magics, texts.magics_seeds, ["ask ", "--", "-m", "{{", "}}", '"', "'", " # ", "="], 512),
    "arguments": Target(texts.tool_arguments, texts.tool_seeds, _JSON, 1_024),
    "markdown": Target(texts.markdown_html, texts.markdown_seeds, _MARKDOWN, 2_048),
    "drawing": Target(texts.drawing, texts.drawing_seeds, _MARKDOWN, 1_024),
    "fences": Target(texts.fences, texts.fences_seeds, ["```", "~~~", "json", "\n", "{", "["]),
    "suggestions": Target(texts.suggestions, lambda: [b"\x03abc\x03abd"], (), 256),
}
