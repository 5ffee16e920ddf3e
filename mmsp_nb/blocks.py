"""The fenced code blocks of a Markdown text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["CodeBlock", "code_blocks", "parse_json"]

_OPEN = re.compile(r"(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\n]*)")


@dataclass(frozen=True)
class CodeBlock:
    """One block. ``str(block)`` is its code.

    Attributes:
        language: As it was written after the fence, in lower case; empty when nothing was.
        code: The text between the fences.
        complete: Whether its end was written.
    """

    language: str
    code: str
    complete: bool = True

    def __str__(self) -> str:
        return self.code


def code_blocks(text: str) -> list[CodeBlock]:
    """The fenced blocks in ``text``, in order; one that is never closed goes to the end."""
    blocks: list[CodeBlock] = []
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if opened is None:
            match = _OPEN.fullmatch(line)
            if match and not (match["fence"][0] == "`" and "`" in match["info"]):
                opened, lines = match, []
            continue
        fence = opened["fence"]
        bare = line.strip()
        closing = len(line) - len(line.lstrip(" ")) <= 3 and len(bare) >= len(fence) and not bare.strip(fence[0])
        if closing:
            blocks.append(_block(opened, lines, complete=True))
            opened = None
        else:
            indent = len(opened["indent"])
            lines.append(line[indent:] if not line[:indent].strip() else line)
    if opened is not None:
        blocks.append(_block(opened, lines, complete=False))
    return blocks


def _block(opened: re.Match[str], lines: list[str], *, complete: bool) -> CodeBlock:
    words = opened["info"].strip().split()
    language = words[0].strip("{}.").lower() if words else ""
    return CodeBlock(language, "\n".join(lines), complete)


def parse_json(text: str) -> Any:
    """The JSON value that ``text`` is, or that stands in its only block of JSON.

    Raises ValueError with one line that says what is wrong.
    """
    candidates = [text.strip()]
    blocks = [block for block in code_blocks(text) if block.language in ("json", "jsonc", "")]
    if len(blocks) == 1:
        candidates.insert(0, blocks[0].code.strip())
    error: json.JSONDecodeError | None = None
    for candidate in candidates:
        try:
            return json.loads(candidate)
        except json.JSONDecodeError as caught:
            error = error or caught
        except RecursionError:
            raise ValueError("the answer is not JSON that can be read: it is nested too deeply") from None
    assert error is not None
    if not text.strip():
        raise ValueError("the answer is empty, so there is no JSON in it")
    raise ValueError(f"the answer is not JSON: {error.msg} in line {error.lineno}, column {error.colno}")
