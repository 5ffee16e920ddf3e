"""The shape of a Markdown text that is still being written: where it may be cut, and how it would look if it ended now.

Two questions, both answered from the text alone:

* `splits`: where can the text so far be divided, so that its first part never has to be drawn again? Cuts between
  blocks are invisible; a code block or a table that grows without end can be cut too, and is opened again after it.
* `provisional`: what has to be added for the tail to look as it will look once it is complete? Otherwise half a link,
  a lone ``**`` or half a table would flicker, or hide text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["BETWEEN_BLOCKS", "IN_BLOCK", "IN_LINE", "Split", "cut_anywhere", "provisional", "splits"]

BETWEEN_BLOCKS, IN_BLOCK, IN_LINE = 1, 2, 3
"""How visible a cut is: not at all; a joint in a list, code block or table; a line break in a paragraph."""

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})[ \t]*([^\n]*?)[ \t]*$")
_LIST_ITEM = re.compile(r"^(?:[*+-]|\d{1,9}[.)])(?:[ \t]|$)")
_HEADING = re.compile(r"^#{1,6}(?:[ \t]|$)")
_MATH_OPEN = re.compile(r"^ {0,3}(\$\$|\\\[|\\begin\{([a-zA-Z]+\*?)\})")
_TABLE_RULE = re.compile(r"^ {0,3}\|?[ \t:-]*-[ \t:-]*(?:\|[ \t:-]*)*$")
_RULE_PART = re.compile(r"[ \t|:-]*")


@dataclass(frozen=True, slots=True)
class Split:
    """A place to cut at offset ``at``. ``reopen`` is the Markdown that the next part has to begin with."""

    at: int
    kind: int
    reopen: str = ""


@dataclass(slots=True)
class _State:
    fence: str = ""  # the marker that closes the open code block
    opening: str = ""  # its first line
    math: str = ""  # what closes the open formula
    math_at: int = 0
    block: str = ""  # "list", "quote", "table" or "text": the kind of the block that runs
    table: str = ""  # head and rule of the running table
    block_at: int = 0  # where the running block began
    blank: bool = True  # the line before was blank
    previous: str = ""


def _scan(text: str, opened: str = "") -> tuple[list[Split], _State]:
    """All cuts of ``text``, and the state at its end. ``opened`` is Markdown that stands before it, whole lines."""
    found: list[Split] = []
    state, offset = _State(), -len(opened)
    for line in (opened + text).splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if offset > 0:
            _add_split(found, state, bare, offset)
        _step(state, bare, offset)
        offset += len(line)
    return found, state


def _add_split(found: list[Split], state: _State, line: str, offset: int) -> None:
    if state.math:
        return
    if state.fence:
        found.append(Split(offset, IN_BLOCK, state.opening + "\n"))
        return
    outside = bool(line) and not line[0].isspace()
    item = bool(_LIST_ITEM.match(line))
    if outside and (state.blank or state.block == "") and not (state.block == "list" and item):
        found.append(Split(offset, BETWEEN_BLOCKS))
    elif outside and state.block == "list" and item:
        found.append(Split(offset, IN_BLOCK))
    elif state.block == "table" and state.table and "|" in line and not _TABLE_RULE.match(line):
        found.append(Split(offset, IN_BLOCK, state.table))
    elif outside and state.block == "text" and not state.blank:
        found.append(Split(offset, IN_LINE))


def _step(state: _State, line: str, offset: int) -> None:
    """Take one line (without its end) into account."""
    if state.fence:
        body = line.strip(" \t")
        if body and set(body) == {state.fence[0]} and len(body) >= len(state.fence):
            state.fence = state.opening = ""
            state.block, state.blank = ("list" if state.block == "list" else ""), False
        return
    if state.math:
        if state.math in line:
            state.math, state.block, state.blank = "", "", False
        return
    if not line.strip():
        state.blank, state.table = True, ""
        if state.block in ("text", "table", "quote"):
            state.block = ""
        state.previous = ""
        return
    indented = line[0].isspace()
    if state.blank or not state.block:
        state.block_at = offset
    fence = _FENCE.match(line) or (_FENCE.match(line.lstrip()) if indented and state.block == "list" else None)
    math = _MATH_OPEN.match(line)
    if fence and not (fence[2][0] == "`" and "`" in fence[3]):
        state.fence, state.opening = fence[2], fence[0].strip()
        if state.block == "list" and not indented:
            state.block = ""
    elif math and (closing := "\\]" if math[1] == "\\[" else "$$" if math[1] == "$$" else f"\\end{{{math[2]}}}"):
        if closing not in line[math.end() :]:
            state.math, state.math_at = closing, offset
        state.block = ""
    elif _LIST_ITEM.match(line) or (state.block == "list" and (indented or not state.blank)):
        state.block = "list"
    elif _HEADING.match(line):
        state.block = ""
    elif line.lstrip().startswith(">"):
        state.block = "quote"
    elif "|" in state.previous and _TABLE_RULE.match(line) and "|" in line:
        state.block, state.table = "table", f"{state.previous}\n{line}\n"
    elif state.block not in ("table", "quote"):
        state.block = "text"
    state.blank, state.previous = False, line


def splits(text: str, opened: str = "") -> list[Split]:
    """Every place inside ``text`` where it may be cut at a line, in order.

    ``opened`` is the ``reopen`` of the cut before this text. The unfinished last line is never cut.
    """
    return _scan(text, opened)[0]


def cut_anywhere(text: str, opened: str = "") -> Split | None:
    """A place in the second half of a text without line ends: after a space if there is one. None inside a formula."""
    _, state = _scan(text, opened)
    if state.math:
        return None
    space = text.rstrip().rfind(" ", len(text) // 2)
    return Split(space + 1 if space > 0 else len(text) - 1, IN_LINE, f"{state.opening}\n" if state.fence else "")


# --- the tail -------------------------------------------------------------------------------------------------------

_OPAQUE = re.compile(r"\\\((?:[^\\]|\\[^()])*?\\\)|\\(?!\()[!-/:-@\[-`{-~]|`+|https?://[^\s<>]*[^\s<>*_]")
_TICKS = re.compile(r"`+")
_DELIMITER = re.compile(r"\*+|_+|~~")
_HALF_LINK = re.compile(r"(!?)\[([^\[\]]*)\](?:\([^()\s]*(?:\s+\"[^\"]*\"?)?|)$")
_HALF_ANGLE = re.compile(r"<(?=https?:|mailto:|br\b)[^<>\s]*$")
_HALF_MARKER = re.compile(r"(?:^|\n)[ \t]{0,3}(?:[-=*_+>]{1,3}|#{1,6}|\d{1,9}[.)]?|`{1,2}|~{1,2}|\\\[?|\$\$?)[ \t]*$")


def provisional(text: str, opened: str = "") -> tuple[str, str]:
    """``text`` (with ``opened`` before it) as Markdown that could end here, and the raw tail not to be typeset yet.

    The second string is a formula that has begun and not ended: half a formula is an error to MathJax.
    """
    _, state = _scan(text, opened)
    whole = opened + text
    if state.fence:
        return _close_fence(whole, state), ""
    if state.math:
        at = state.math_at + len(opened)
        return whole[:at], whole[at:]
    start = max(state.block_at + len(opened), 0)
    head, tail = whole[:start], whole[start:]
    last = tail.rpartition("\n")[2]
    half_rule = last and f"{state.previous}\n" in state.table and _RULE_PART.fullmatch(last)
    if half_rule or (state.block == "text" and not state.blank):
        tail = _half_table(tail)
    return head + _close_inline(tail), ""


def _close_fence(whole: str, state: _State) -> str:
    last = whole.rpartition("\n")[2]
    if last and last.strip(" \t") and set(last.strip(" \t")) == {state.fence[0]}:
        whole = whole[: len(whole) - len(last)]  # the closing fence, half here
    return whole + ("" if whole.endswith("\n") else "\n") + state.fence


def _half_table(tail: str) -> str:
    """A table whose head is there and whose rule is not, or only in part."""
    lines = tail.rstrip("\n").split("\n")
    above = lines[-2].strip() if len(lines) > 1 else ""
    if above.startswith("|") and not tail.endswith("\n"):
        rule_here = above.endswith("|") and _RULE_PART.fullmatch(lines[-1])
        return "\n".join([*lines[:-1], _rule(above)]) if rule_here else tail
    head = lines[-1].strip()
    if not head.startswith("|") or len(head) < 3 or above.startswith("|"):
        return tail
    if not head.endswith("|"):
        if tail.endswith("\n"):
            return tail
        head += " |"  # the head itself is still being written
    return "\n".join([*lines[:-1], head, _rule(head)])


def _rule(head: str) -> str:
    """The line below the head of a table."""
    return "|" + "---|" * (head.replace("\\|", "").count("|") - 1)


def _mask(tail: str) -> tuple[str, int]:
    """``tail`` with escapes, addresses and code as letters, and where an unfinished code span begins (or -1)."""
    parts: list[str] = []
    position = 0
    while match := _OPAQUE.search(tail, position):
        end = match.end()
        if match.group()[0] == "`":
            closing = next((run for run in _TICKS.finditer(tail, end) if run.group() == match.group()), None)
            if closing is None:
                return "".join(parts) + tail[position:], match.start()
            end = closing.end()
        parts.append(tail[position : match.start()] + "x" * (end - match.start()))
        position = end
    return "".join(parts) + tail[position:], -1


def _close_inline(tail: str) -> str:
    tail = _HALF_MARKER.sub(lambda match: "\n" if match.group().startswith("\n") else "", tail)
    # marks in an earlier row of a table cannot be closed in this one
    row_at = tail.rfind("\n|") + 1 if "|" in tail.rpartition("\n")[2] else 0
    head, tail = tail[:row_at], tail[row_at:]
    space = tail[len(tail.rstrip()) :]
    tail = tail.rstrip()
    masked, code_at = _mask(tail)
    if code_at >= 0:
        ticks = _TICKS.match(tail, code_at).group()  # type: ignore[union-attr]
        before = masked[:code_at]
        if tail.endswith(ticks) and code_at + len(ticks) == len(tail):
            before = before.rstrip()
            return head + tail[: len(before)] + _closers(before) + space
        return head + tail + (" " if tail.endswith("`") else "") + ticks + _closers(before) + space
    formula = masked.rfind("\\(")
    if formula >= 0:
        marks = "`" * (1 + max((len(run) for run in _TICKS.findall(tail[formula:])), default=0))
        return head + f"{tail[:formula]}{marks} {tail[formula:]} {marks}" + _closers(masked[:formula]) + space
    link = _HALF_LINK.search(masked)
    if link:
        tail = tail[: link.start()] + tail[link.start(2) : link.end(2)]
        masked = masked[: link.start()] + link[2]
    tail = _HALF_ANGLE.sub("", tail)
    masked = masked[: len(tail)]
    trailing = re.search(r"(?:[*_]+|~~|~)$", masked)
    if trailing and not _can_close(masked, trailing.start(), trailing.group()):
        masked = masked[: trailing.start()].rstrip()
        tail = tail[: len(masked)]
    return head + tail + _closers(masked) + space


def _open_marks(masked: str) -> list[str]:
    stack: list[str] = []
    for match in _DELIMITER.finditer(masked):
        marks = match.group()
        before = masked[match.start() - 1] if match.start() else " "
        after = masked[match.end()] if match.end() < len(masked) else " "
        if marks[0] == "_" and before.isalnum() and after.isalnum():
            continue
        if not before.isspace() and stack and stack[-1][0] == marks[0]:
            while marks and stack and stack[-1][0] == marks[0]:
                taken = min(len(marks), len(stack[-1]))
                rest = stack[-1][taken:]
                stack[-1:] = [rest] if rest else []
                marks = marks[taken:]
            continue
        if not after.isspace() and len(marks) <= 3:
            stack.append(marks)
    return stack


def _can_close(masked: str, start: int, marks: str) -> bool:
    """Whether the marks at the end close something, rather than open what has not come yet."""
    before = masked[:start]
    return (
        marks != "~"
        and bool(before)
        and not before[-1].isspace()
        and any(mark[0] == marks[0] for mark in _open_marks(before))
    )


def _closers(masked: str) -> str:
    return "".join(reversed(_open_marks(masked)))
